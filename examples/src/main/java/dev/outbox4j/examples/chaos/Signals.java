package dev.outbox4j.examples.chaos;

import java.io.IOException;

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
}
