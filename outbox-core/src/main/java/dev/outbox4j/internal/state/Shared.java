package dev.outbox4j.internal.state;

import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.Warnings;
import dev.outbox4j.internal.state.EngineHealth.Operation;
import java.util.concurrent.TimeUnit;

/**
 * What all parts share.
 *
 * @param owner the name under which this start of the subscriber holds leases
 */
public record Shared(
    String subscriber,
    String owner,
    EngineThreads threads,
    ConnectionBudget connections,
    HeldRows registry,
    Room room,
    EngineHealth health,
    Events events,
    Warnings warnings,
    PausedQueues pauses) {

  /**
   * A driver that never comes back fails nothing, so nothing else would tell. Two loops do, as the
   * one whose statement it is cannot.
   */
  public void tellOfLostStatements() {
    long lost = connections.lostForNanos();
    if (lost == 0) {
      health.succeeded(Operation.STATEMENT);
    } else {
      health.held(
          Operation.STATEMENT,
          "one has not come back for %d s, nor been given up by the driver; if it never does, restart the process"
              .formatted(TimeUnit.NANOSECONDS.toSeconds(lost)));
    }
  }
}
