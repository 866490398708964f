package dev.outbox4j.dlq;

import java.util.List;

/**
 * What became of a redrive, a discard or a purge.
 *
 * @param done how many letters it was done to; in a dry run, how many it would have been done to
 * @param refused how many it was not done to, since a check, a live message or the server was
 *     against it
 * @param passedBy how many it was not done to, since somebody else had them in hand or was faster,
 *     or since an older letter of their ordering key stays
 * @param refusals the first 100 of the refused ones, with the reasons
 * @param finished whether it came to the end of the letters, or to its limit; false if its thread
 *     was interrupted
 */
public record DeadLetterReport(
    long done, long refused, long passedBy, List<Refusal> refusals, boolean finished) {
  /** Copies the list. */
  public DeadLetterReport {
    refusals = List.copyOf(refusals);
  }

  /**
   * A letter that it was not done to.
   *
   * @param id its own id
   * @param reason why, at most 2,000 bytes in UTF-8
   */
  public record Refusal(long id, String reason) {}
}
