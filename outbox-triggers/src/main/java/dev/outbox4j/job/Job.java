package dev.outbox4j.job;

import dev.outbox4j.OutboxMessage;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A job that is to be enqueued. Each setting returns a changed copy.
 *
 * @param <T> its body
 */
public final class Job<T> {
  /** The header in which a job's message has the job's id: {@value}. */
  public static final String ID_HEADER = "job-id";

  private final JobType<T> type;
  private final T body;
  private final @Nullable String key;
  private final Duration delay;
  private final Map<String, String> headers;

  private Job(
      JobType<T> type, T body, @Nullable String key, Duration delay, Map<String, String> headers) {
    this.type = type;
    this.body = body;
    this.key = key;
    this.delay = delay;
    this.headers = Map.copyOf(headers);
  }

  /**
   * Names a job.
   *
   * @param type its type
   * @param body its body
   * @param <T> the same as the type's
   * @return the job, which is due at once
   */
  public static <T> Job<T> of(JobType<T> type, T body) {
    Objects.requireNonNull(type, "type");
    Objects.requireNonNull(body, "body");
    return new Job<>(type, body, null, Duration.ZERO, Map.of());
  }

  /**
   * Sets what makes this job, in place of what its type says.
   *
   * @param key not blank, at most 500 bytes in UTF-8, without NUL
   * @return the changed job
   * @throws IllegalArgumentException if the key is not allowed
   */
  public Job<T> key(String key) {
    JobIds.ofKey(type.name(), key);
    return new Job<>(type, body, key, delay, headers);
  }

  /**
   * Sets when the job is due, by the server's clock. The window in flight counts from then.
   *
   * @param delay zero to 36,500 days
   * @return the changed job
   * @throws IllegalArgumentException if it is out of range
   */
  public Job<T> deliverIn(Duration delay) {
    return new Job<>(
        type,
        body,
        key,
        Ranges.require("deliverIn", delay, Duration.ZERO, Duration.ofDays(36_500)),
        headers);
  }

  /**
   * Adds a header of its message. It has no part in what makes the job.
   *
   * @param name by the rules for headers of messages; not {@value #ID_HEADER}
   * @param value its value
   * @return the changed job
   * @throws IllegalArgumentException if no message can have it, or it is the queue's own
   */
  public Job<T> header(String name, String value) {
    if (ID_HEADER.equals(name)) {
      throw new IllegalArgumentException(
          "the header '" + name + "' has the id of the job; give yours another name");
    }
    OutboxMessage.to("any").header(name, value); // the rules for headers
    Map<String, String> all = new LinkedHashMap<>(headers);
    all.put(name, value);
    return new Job<>(type, body, key, delay, all);
  }

  /** {@return its type} */
  public JobType<T> type() {
    return type;
  }

  /** {@return its body} */
  public T body() {
    return body;
  }

  @Nullable String ownKey() {
    return key;
  }

  Duration delay() {
    return delay;
  }

  Map<String, String> headers() {
    return headers;
  }

  /** {@return the type alone; the body may hold secrets} */
  @Override
  public String toString() {
    return "Job[" + type.name() + "]";
  }
}
