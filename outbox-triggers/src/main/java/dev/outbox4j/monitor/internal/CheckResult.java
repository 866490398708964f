package dev.outbox4j.monitor.internal;

import dev.outbox4j.OutboxMessage;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a check has said, with its values as JSON.
 *
 * @param kind what becomes of the instance
 * @param delay how long to wait, if it is to be checked again
 * @param output what was found
 * @param reason why it has failed or is canceled
 * @param keepsState whether the state stays as it was
 * @param state the state otherwise; null for none
 * @param customStatus the status to show; null if it stays as it was
 * @param waitsFor the names of events that wake it
 * @param messages what is to be published
 */
public record CheckResult(
    Kind kind,
    Duration delay,
    @Nullable String output,
    @Nullable String reason,
    boolean keepsState,
    @Nullable String state,
    @Nullable String customStatus,
    List<String> waitsFor,
    List<OutboxMessage> messages) {

  /** What may become of an instance. */
  public enum Kind {
    /** It is checked again. */
    AGAIN,
    /** It is completed. */
    DONE,
    /** It has failed. */
    FAIL,
    /** It is canceled. */
    CANCEL
  }

  /** Copies the lists. */
  public CheckResult {
    waitsFor = List.copyOf(waitsFor);
    messages = List.copyOf(messages);
  }
}
