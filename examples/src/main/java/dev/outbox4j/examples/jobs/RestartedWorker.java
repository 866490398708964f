package dev.outbox4j.examples.jobs;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ProcessBuilder.Redirect;
import java.net.URI;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;

/** A worker process that is started again whenever it ends, as a service is. Thread-safe. */
final class RestartedWorker implements AutoCloseable {
  /** The variable with the database's password. */
  static final String PASSWORD = "TASTE_PASSWORD";

  private static final int LONGEST_STOP_SECONDS = 30;

  private final ProcessBuilder command;

  // guarded by this
  private @Nullable Process process;
  private boolean closed;
  private int ends;

  RestartedWorker(PGSimpleDataSource database, URI api) {
    command =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1", // it lives for seconds only
                "-cp",
                System.getProperty("java.class.path"),
                WorkerProcess.class.getName(),
                database.getURL(),
                String.valueOf(database.getUser()),
                api.toString())
            .redirectErrorStream(true)
            .redirectOutput(Redirect.DISCARD);
    String password = database.getPassword();
    command.environment().put(PASSWORD, password == null ? "" : password);
  }

  /** Starts the first process. */
  @SuppressWarnings("FutureReturnValueIgnored") // the end of a process starts the next one
  synchronized void start() {
    try {
      Process started = command.start();
      process = started;
      started.onExit().thenRun(this::ended);
    } catch (IOException e) {
      throw new UncheckedIOException("a worker process could not be started", e);
    }
  }

  private synchronized void ended() {
    if (!closed) {
      ends++;
      start();
    }
  }

  /** {@return how often a process has ended by itself} */
  synchronized int ends() {
    return ends;
  }

  private synchronized @Nullable Process closing() {
    closed = true;
    return process;
  }

  /** Asks the process to end, and waits until it has; it is killed if it does not. */
  @Override
  public void close() {
    Process last = closing();
    if (last == null) {
      return;
    }
    try {
      last.getOutputStream().close(); // the end of its input
      if (!last.waitFor(LONGEST_STOP_SECONDS, TimeUnit.SECONDS)) {
        last.destroyForcibly();
      }
    } catch (IOException e) {
      last.destroyForcibly();
    } catch (InterruptedException e) {
      last.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }
}
