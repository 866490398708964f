package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** Sends signals to processes. */
final class Signals {
  private Signals() {}

  /** Sends one; a process that is not there is an error. */
  static void send(String signal, long pid, String whose) throws IOException, InterruptedException {
    int status = new ProcessBuilder("kill", "-" + signal, Long.toString(pid)).start().waitFor();
    if (status != 0) {
      throw new IOException("kill -" + signal + " of " + whose + " ended with " + status);
    }
  }

  /** Tells whether a process is stopped, as the operating system shows it. */
  static boolean isStopped(long pid) throws IOException, InterruptedException {
    Process ps = new ProcessBuilder("ps", "-o", "state=", "-p", Long.toString(pid)).start();
    String state = new String(ps.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
    ps.waitFor();
    return state.startsWith("T");
  }
}
