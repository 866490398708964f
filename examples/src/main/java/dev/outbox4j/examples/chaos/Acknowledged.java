package dev.outbox4j.examples.chaos;

import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;

/**
 * The transactions of which the server told a publisher that they are committed, by their first
 * message. They are kept in files, past the server: a crash or a promotion that forgets some would
 * take the ledger's rows along.
 */
final class Acknowledged {
  private static final String PREFIX = "acknowledged-";
  private static final int AT_ONCE = 50_000;

  private final List<Long> firsts;
  private final long messages;

  private Acknowledged(List<Long> firsts, long messages) {
    this.firsts = firsts;
    this.messages = messages;
  }

  static Path file(Path directory, int slot, int incarnation) {
    return directory.resolve(PREFIX + slot + "." + incarnation);
  }

  static Writer writer(Path file) throws IOException {
    return new Writer(Files.newBufferedWriter(file));
  }

  /** Writes one after the other; what is written outlives the process. */
  static final class Writer implements AutoCloseable {
    private final BufferedWriter file;

    private Writer(BufferedWriter file) {
      this.file = file;
    }

    void add(long first, int messages) throws IOException {
      file.write(first + " " + messages + '\n');
      file.flush();
    }

    @Override
    public void close() throws IOException {
      file.close();
    }
  }

  /** All that were noted; a last line without an end was cut off by a kill. */
  static Acknowledged read(Path directory) throws IOException {
    List<Long> firsts = new ArrayList<>();
    long messages = 0;
    try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, PREFIX + "*")) {
      for (Path file : files) {
        String text = Files.readString(file);
        for (String line : text.substring(0, text.lastIndexOf('\n') + 1).lines().toList()) {
          int space = line.indexOf(' ');
          firsts.add(Long.valueOf(line.substring(0, space)));
          messages += Long.parseLong(line.substring(space + 1));
        }
      }
    }
    return new Acknowledged(firsts, messages);
  }

  int transactions() {
    return firsts.size();
  }

  long messages() {
    return messages;
  }

  /** How many transactions the server has not. */
  long gone(DataSource direct) throws SQLException {
    long gone = 0;
    for (int from = 0; from < firsts.size(); from += AT_ONCE) {
      List<Long> some = firsts.subList(from, Math.min(from + AT_ONCE, firsts.size()));
      gone +=
          Database.number(
              direct,
              "select count(*) from unnest(?::bigint[]) as a (no)"
                  + " where not exists (select from committed c where c.no = a.no)",
              (Object) some.toArray(Long[]::new));
    }
    return gone;
  }
}
