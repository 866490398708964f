package dev.outbox4j.dlq;

import java.util.ArrayList;
import java.util.List;

/** What became of the letters of a run so far. Confined to the thread that acts. */
final class Tally {
  private static final int MOST_REFUSALS = 100;

  private long done;
  private long refused;
  private long passedBy;
  private final List<DeadLetterReport.Refusal> refusals = new ArrayList<>();

  void did(long count) {
    done += count;
  }

  /** What the audit says was done; the answer to a statement may have been lost. */
  void settle(long all) {
    done = all;
  }

  void refuse(long id, String reason) {
    refused++;
    if (refusals.size() < MOST_REFUSALS) {
      refusals.add(new DeadLetterReport.Refusal(id, reason));
    }
  }

  void passBy(long count) {
    passedBy += count;
  }

  long done() {
    return done;
  }

  long refused() {
    return refused;
  }

  long passedBy() {
    return passedBy;
  }

  DeadLetterReport report(boolean finished) {
    return new DeadLetterReport(done, refused, passedBy, refusals, finished);
  }
}
