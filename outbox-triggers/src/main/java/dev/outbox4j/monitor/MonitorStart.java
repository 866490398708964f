package dev.outbox4j.monitor;

import java.time.Duration;
import java.time.Instant;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * What is to be started: a type, an input, and what is said of this instance. Immutable; each
 * setting returns a new one.
 */
public final class MonitorStart {
  private final MonitorType<?> type;
  private final Object input;
  private final @Nullable String id;
  private final @Nullable String parent;
  private final @Nullable Duration firstCheckIn;
  private final @Nullable Duration lifetime;
  private final @Nullable Instant expiresAt;

  private MonitorStart(
      MonitorType<?> type,
      Object input,
      @Nullable String id,
      @Nullable String parent,
      @Nullable Duration firstCheckIn,
      @Nullable Duration lifetime,
      @Nullable Instant expiresAt) {
    this.type = type;
    this.input = input;
    this.id = id;
    this.parent = parent;
    this.firstCheckIn = firstCheckIn;
    this.lifetime = lifetime;
    this.expiresAt = expiresAt;
  }

  /**
   * Starts to say what is to be started.
   *
   * @param type the type
   * @param input the input; at most {@value Json#MAX_BYTES} bytes of JSON
   * @param <I> the type of the input
   * @return with a random id, the expiry of its type, and its first check at once
   */
  public static <I> MonitorStart of(MonitorType<I> type, I input) {
    return new MonitorStart(
        Objects.requireNonNull(type, "type"),
        Objects.requireNonNull(input, "input"),
        null,
        null,
        null,
        type.expiresAfter().orElse(null),
        null);
  }

  /**
   * Starts to say what is to be started, with an input that is JSON already. A control with a codec
   * refuses one that is not of the type's input when it is started.
   *
   * @param type the type
   * @param input the input; at most {@value Json#MAX_BYTES} bytes
   * @return with a random id, the expiry of its type, and its first check at once
   */
  public static MonitorStart ofJson(MonitorType<?> type, Json input) {
    return new MonitorStart(
        Objects.requireNonNull(type, "type"),
        Objects.requireNonNull(input, "input"),
        null,
        null,
        null,
        type.expiresAfter().orElse(null),
        null);
  }

  /**
   * Names the instance.
   *
   * @param id not blank, at most 256 characters, without control characters and {@code / \ # ?},
   *     not beginning with {@code @}, and neither {@code .} nor {@code ..}; default a random UUID
   * @return with the id
   * @throws IllegalArgumentException if it is anything else
   */
  public MonitorStart id(String id) {
    return new MonitorStart(
        type,
        input,
        MonitorNames.requireId("instance id", id),
        parent,
        firstCheckIn,
        lifetime,
        expiresAt);
  }

  /**
   * Says what the instance belongs to, such as the id of a larger flow. It is on record, and can be
   * asked for; nothing else depends on it.
   *
   * @param parent by the rules of ids
   * @return with the parent
   * @throws IllegalArgumentException if it is anything else
   */
  public MonitorStart parent(String parent) {
    return new MonitorStart(
        type,
        input,
        id,
        MonitorNames.requireId("parent", parent),
        firstCheckIn,
        lifetime,
        expiresAt);
  }

  /**
   * Delays the first check.
   *
   * @param delay zero to 36,500 days, by the server's clock; default zero
   * @return with the delay
   * @throws IllegalArgumentException if it is out of range
   */
  public MonitorStart firstCheckIn(Duration delay) {
    if (delay.isNegative() || delay.compareTo(MonitorResult.MAX_DELAY) > 0) {
      throw new IllegalArgumentException(
          "firstCheckIn is " + delay + "; it must be zero to 36,500 days");
    }
    return new MonitorStart(type, input, id, parent, delay, lifetime, expiresAt);
  }

  /**
   * Sets when this instance expires, in place of what its type says.
   *
   * @param lifetime 1 ms to 36,500 days after its start, by the server's clock
   * @return with the expiry
   * @throws IllegalArgumentException if it is out of range
   */
  public MonitorStart expiresAfter(Duration lifetime) {
    if (lifetime.compareTo(Duration.ofMillis(1)) < 0
        || lifetime.compareTo(MonitorResult.MAX_DELAY) > 0) {
      throw new IllegalArgumentException(
          "lifetime is " + lifetime + "; it must be 1 ms to 36,500 days");
    }
    return new MonitorStart(type, input, id, parent, firstCheckIn, lifetime, null);
  }

  /**
   * Sets when this instance expires, in place of what its type says.
   *
   * @param instant when, by the server's clock; in the past it expires at once
   * @return with the expiry
   * @throws IllegalArgumentException if it is before 1970 or after the year 9999
   */
  public MonitorStart expiresAt(Instant instant) {
    if (instant.isBefore(Instant.EPOCH) || instant.isAfter(MonitorNames.LATEST)) {
      throw new IllegalArgumentException(
          "expiresAt is " + instant + "; it must be from 1970 to 9999");
    }
    return new MonitorStart(type, input, id, parent, firstCheckIn, null, instant);
  }

  MonitorType<?> type() {
    return type;
  }

  Object input() {
    return input;
  }

  Optional<String> id() {
    return Optional.ofNullable(id);
  }

  Optional<String> parent() {
    return Optional.ofNullable(parent);
  }

  Optional<Duration> firstCheckIn() {
    return Optional.ofNullable(firstCheckIn);
  }

  Optional<Duration> lifetime() {
    return Optional.ofNullable(lifetime);
  }

  Optional<Instant> expiresAt() {
    return Optional.ofNullable(expiresAt);
  }

  @Override
  public String toString() {
    return "MonitorStart[" + type.name() + (id == null ? "" : ", " + id) + "]";
  }
}
