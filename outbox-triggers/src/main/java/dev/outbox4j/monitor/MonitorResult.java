package dev.outbox4j.monitor;

import dev.outbox4j.OutboxMessage;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * What a check says. All of it is committed in one transaction: the messages, and the next wake or
 * the end of the instance.
 *
 * <p>A value is a {@link Json}, or anything that the monitors' codec encodes.
 */
public final class MonitorResult {
  /** The longest delay until the next check: 36,500 days. */
  public static final Duration MAX_DELAY = Duration.ofDays(36_500);

  /** How many names an instance may wait for: {@value}. */
  public static final int MAX_NAMES = 100;

  private static final int MAX_MESSAGES = 1_000;

  private final Kind kind;
  private final @Nullable Duration delay;
  private final @Nullable Object value;
  private final @Nullable String reason;
  private final @Nullable Object state;
  private final boolean keepsState;
  private final @Nullable Object customStatus;
  private final List<String> waitsFor;
  private final List<OutboxMessage> messages;

  /** What becomes of the instance. */
  enum Kind {
    AGAIN,
    DONE,
    FAIL,
    CANCEL
  }

  private MonitorResult(
      Kind kind,
      @Nullable Duration delay,
      @Nullable Object value,
      @Nullable String reason,
      @Nullable Object state,
      boolean keepsState,
      @Nullable Object customStatus,
      List<String> waitsFor,
      List<OutboxMessage> messages) {
    this.kind = kind;
    this.delay = delay;
    this.value = value;
    this.reason = reason;
    this.state = state;
    this.keepsState = keepsState;
    this.customStatus = customStatus;
    this.waitsFor = waitsFor;
    this.messages = messages;
  }

  private static MonitorResult of(
      Kind kind, @Nullable Duration delay, @Nullable Object value, @Nullable String reason) {
    return new MonitorResult(kind, delay, value, reason, null, true, null, List.of(), List.of());
  }

  /** {@return not yet: look again after the type's {@linkplain MonitorType#every wait}} */
  public static MonitorResult again() {
    return of(Kind.AGAIN, null, null, null);
  }

  /**
   * Not yet: look again later. The delay counts from when the result is committed, and ends at the
   * expiry at the latest.
   *
   * @param delay zero to 36,500 days
   * @return the result
   * @throws IllegalArgumentException if the delay is out of range
   */
  public static MonitorResult again(Duration delay) {
    if (delay.isNegative() || delay.compareTo(MAX_DELAY) > 0) {
      throw new IllegalArgumentException("delay is " + delay + "; it must be zero to " + MAX_DELAY);
    }
    return of(Kind.AGAIN, delay, null, null);
  }

  /** {@return it is so: the instance is completed, without an output} */
  public static MonitorResult done() {
    return of(Kind.DONE, null, null, null);
  }

  /**
   * It is so: the instance is completed.
   *
   * @param output what was found; at most {@value Json#MAX_BYTES} bytes of JSON
   * @param messages who is to be told: published in the transaction that completes the instance, so
   *     once
   * @return the result
   */
  public static MonitorResult done(Object output, OutboxMessage... messages) {
    return of(Kind.DONE, null, Objects.requireNonNull(output, "output"), null)
        .withMessages(List.of(messages));
  }

  /**
   * It will never be so: the instance has failed, without another attempt.
   *
   * @param reason why; not blank, of which 2,000 bytes in UTF-8 are kept
   * @return the result
   * @throws IllegalArgumentException if the reason is blank
   */
  public static MonitorResult fail(String reason) {
    return of(Kind.FAIL, null, null, requireReason(reason));
  }

  /**
   * Nobody needs to know any more: the instance is canceled.
   *
   * @param reason why; not blank, of which 2,000 bytes in UTF-8 are kept
   * @return the result
   * @throws IllegalArgumentException if the reason is blank
   */
  public static MonitorResult cancel(String reason) {
    return of(Kind.CANCEL, null, null, requireReason(reason));
  }

  private static String requireReason(String reason) {
    if (reason.isBlank()) {
      throw new IllegalArgumentException("the reason is blank; say it in words");
    }
    return reason;
  }

  /**
   * Leaves a state for the next check, in place of the one before. Without it the state stays as it
   * is.
   *
   * @param state at most {@value Json#MAX_BYTES} bytes of JSON; a larger one is a failed check
   * @return the result with it
   */
  public MonitorResult withState(Object state) {
    Objects.requireNonNull(state, "state");
    return new MonitorResult(
        kind, delay, value, reason, state, false, customStatus, waitsFor, messages);
  }

  /**
   * Clears the state.
   *
   * @return the result with it
   */
  public MonitorResult withoutState() {
    return new MonitorResult(
        kind, delay, value, reason, null, false, customStatus, waitsFor, messages);
  }

  /**
   * Shows a status to who asks for the instance, in place of the one before. Without it the status
   * stays as it is.
   *
   * @param customStatus at most {@value MonitorInstance#MAX_STATUS_BYTES} bytes of JSON; a larger
   *     one is a failed check
   * @return the result with it
   */
  public MonitorResult withStatus(Object customStatus) {
    Objects.requireNonNull(customStatus, "customStatus");
    return new MonitorResult(
        kind, delay, value, reason, state, keepsState, customStatus, waitsFor, messages);
  }

  /**
   * Wakes the instance earlier if an event of one of these names is raised, or was raised while the
   * check ran; for {@link #again}. An event of another name waits for the next check.
   *
   * @param names the names of events, at most {@value #MAX_NAMES}
   * @return the result with them
   * @throws IllegalArgumentException if no event can have a name, or they are too many
   * @throws IllegalStateException if the instance ends by this result
   */
  public MonitorResult orOn(String... names) {
    if (kind != Kind.AGAIN) {
      throw new IllegalStateException(
          "orOn(...) was called on " + this + ", which ends the instance; use it on again()");
    }
    List<String> all = new ArrayList<>(waitsFor);
    for (String name : names) {
      all.add(MonitorNames.requireEvent(name));
    }
    if (all.size() > MAX_NAMES) {
      throw new IllegalArgumentException(
          "the result waits for %d events; it may wait for %d".formatted(all.size(), MAX_NAMES));
    }
    return new MonitorResult(
        kind, delay, value, reason, state, keepsState, customStatus, List.copyOf(all), messages);
  }

  /**
   * Publishes messages in the transaction that commits this result, so once.
   *
   * @param more the messages, beside those that were given before; at most 1,000 in all
   * @return the result with them
   * @throws IllegalArgumentException if they are too many
   */
  public MonitorResult withMessages(Collection<OutboxMessage> more) {
    List<OutboxMessage> all = new ArrayList<>(messages);
    all.addAll(more);
    if (all.size() > MAX_MESSAGES) {
      throw new IllegalArgumentException(
          "the result has %d messages; it may have %d".formatted(all.size(), MAX_MESSAGES));
    }
    return new MonitorResult(
        kind, delay, value, reason, state, keepsState, customStatus, waitsFor, List.copyOf(all));
  }

  /**
   * Publishes messages in the transaction that commits this result, so once.
   *
   * @param more the messages, beside those that were given before; at most 1,000 in all
   * @return the result with them
   * @throws IllegalArgumentException if they are too many
   */
  public MonitorResult withMessages(OutboxMessage... more) {
    return withMessages(List.of(more));
  }

  Kind kind() {
    return kind;
  }

  Optional<Duration> delay() {
    return Optional.ofNullable(delay);
  }

  Optional<Object> value() {
    return Optional.ofNullable(value);
  }

  Optional<String> reason() {
    return Optional.ofNullable(reason);
  }

  Optional<Object> state() {
    return Optional.ofNullable(state);
  }

  boolean keepsState() {
    return keepsState;
  }

  Optional<Object> customStatus() {
    return Optional.ofNullable(customStatus);
  }

  List<String> waitsFor() {
    return waitsFor;
  }

  List<OutboxMessage> messages() {
    return messages;
  }

  @Override
  public String toString() {
    return switch (kind) {
      case AGAIN -> delay == null ? "again" : "again after " + delay;
      case DONE -> "done";
      case FAIL -> "fail";
      case CANCEL -> "cancel";
    };
  }
}
