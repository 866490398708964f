package dev.outbox4j.examples.monitor;

/**
 * The message that a repository has too many open issues.
 *
 * @param monitor the id of the instance that has found it
 * @param execution which execution of the instance it was
 * @param repository the repository
 * @param openIssues how many there are
 */
public record IssueAlert(String monitor, long execution, String repository, int openIssues) {
  /** The queue of alerts. */
  public static final String QUEUE = "alerts";

  /** The stable message type: never a class name, which may be changed. */
  public static final String TYPE = "issues.too-many";
}
