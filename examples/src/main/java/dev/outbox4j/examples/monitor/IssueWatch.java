package dev.outbox4j.examples.monitor;

import java.util.Objects;
import java.util.regex.Pattern;

/**
 * What is to be watched.
 *
 * @param repository the repository, such as {@code acme/shop}
 * @param threshold how many open issues are too many
 */
public record IssueWatch(String repository, int threshold) {
  private static final Pattern REPOSITORY = Pattern.compile("[\\w-][\\w.-]*/[\\w-][\\w.-]*");

  /** Checks the components. */
  public IssueWatch {
    if (!REPOSITORY.matcher(Objects.requireNonNull(repository, "repository")).matches()) {
      throw new IllegalArgumentException("the repository's name is none, such as acme/shop");
    }
    if (threshold < 1) {
      throw new IllegalArgumentException("threshold is " + threshold + "; it must be 1 or more");
    }
  }
}
