package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.util.concurrent.TimeUnit;

/**
 * The runs of the handlers of one process, each kind in a file: those that were done, those that
 * failed, and those that have begun, if that is to be told. What is written outlives the process,
 * and costs next to nothing. Thread-safe: each run is one write at the end of its file.
 */
final class RunLog implements AutoCloseable {
  static final String DONE = ".done";
  static final String FAILED = ".failed";
  static final String BEGUN = ".begun";
  private static final int BYTES = 5 * Long.BYTES;

  private final FileChannel done;
  private final FileChannel failed;
  private final FileChannel begun;

  private RunLog(FileChannel done, FileChannel failed, FileChannel begun) {
    this.done = done;
    this.failed = failed;
    this.begun = begun;
  }

  /**
   * A run of a handler.
   *
   * @param no the number of its message
   * @param row the message's id
   * @param token under which it was handled
   * @param began when the handler began, in microseconds of the epoch
   * @param ended when it was about to return or throw
   */
  record Run(long no, long row, long token, long began, long ended) {}

  /** Creates the files of a process. */
  static RunLog of(Path directory, String process) throws IOException {
    return new RunLog(
        append(directory, process + DONE),
        append(directory, process + FAILED),
        append(directory, process + BEGUN));
  }

  private static FileChannel append(Path directory, String file) throws IOException {
    return FileChannel.open(
        directory.resolve(file), StandardOpenOption.CREATE_NEW, StandardOpenOption.APPEND);
  }

  /** The time by the clock of the machine, which is the server's, in microseconds of the epoch. */
  static long now() {
    Instant now = Instant.now();
    return TimeUnit.SECONDS.toMicros(now.getEpochSecond())
        + TimeUnit.NANOSECONDS.toMicros(now.getNano());
  }

  void done(Run run) throws IOException {
    write(done, run);
  }

  void failed(Run run) throws IOException {
    write(failed, run);
  }

  /** Of one that has not ended. */
  void begun(Run run) throws IOException {
    write(begun, run);
  }

  private static void write(FileChannel file, Run run) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(BYTES);
    bytes.putLong(run.no()).putLong(run.row()).putLong(run.token());
    bytes.putLong(run.began()).putLong(run.ended()).flip();
    if (file.write(bytes) != BYTES) {
      throw new IOException("a run was written in part");
    }
  }

  @Override
  public void close() throws IOException {
    done.close();
    failed.close();
    begun.close();
  }

  /** How many runs all processes have written. */
  static long count(Path directory, String kind) throws IOException {
    long count = 0;
    try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, "*" + kind)) {
      for (Path file : files) {
        count += Files.size(file) / BYTES;
      }
    }
    return count;
  }

  /** What is to be done with each run. */
  interface Reader {
    void accept(String process, Run run) throws IOException;
  }

  /** Reads the runs of all processes. */
  static void read(Path directory, String kind, Reader reader) throws IOException {
    try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, "*" + kind)) {
      for (Path file : files) {
        String name = String.valueOf(file.getFileName());
        String process = name.substring(0, name.length() - kind.length());
        ByteBuffer all = ByteBuffer.wrap(Files.readAllBytes(file));
        while (all.remaining() >= BYTES) {
          reader.accept(
              process,
              new Run(all.getLong(), all.getLong(), all.getLong(), all.getLong(), all.getLong()));
        }
      }
    }
  }
}
