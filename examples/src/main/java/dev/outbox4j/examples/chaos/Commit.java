package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** The commit that a report is of. */
final class Commit {
  private Commit() {}

  /** Its name, with what Git says of changes; or that it is unknown. */
  static String current() {
    try {
      Process git =
          new ProcessBuilder("git", "describe", "--always", "--dirty", "--abbrev=12")
              .redirectError(ProcessBuilder.Redirect.DISCARD)
              .start();
      String said = new String(git.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
      return git.waitFor() == 0 && !said.isEmpty() ? said : "unknown";
    } catch (IOException noGit) {
      return "unknown";
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      return "unknown";
    }
  }
}
