package dev.outbox4j.job;

import dev.outbox4j.OutboxMessage;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * What jobs of a type have in common: a name, the type of their body, what makes two of them the
 * same job, and what a body must be like. Each setting returns a new definition. Thread-safe if its
 * functions are.
 *
 * @param <T> the body of a job
 */
public final class JobType<T> {
  private final String name;
  private final Class<T> body;
  private final @Nullable Function<? super T, String> key;
  private final @Nullable JobCheck<? super T> check;

  private JobType(
      String name,
      Class<T> body,
      @Nullable Function<? super T, String> key,
      @Nullable JobCheck<? super T> check) {
    this.name = name;
    this.body = body;
    this.key = key;
    this.check = check;
  }

  /**
   * Defines a type. Two jobs are the same if their encoded bodies are, byte for byte.
   *
   * @param name the type of the messages: a stable name, not blank, at most {@value
   *     OutboxMessage#MAX_NAME_BYTES} bytes in UTF-8
   * @param body what the payload is decoded to
   * @param <T> the same
   * @return the definition
   * @throws IllegalArgumentException if the name is not allowed
   */
  public static <T> JobType<T> of(String name, Class<T> body) {
    OutboxMessage.to("any").type(name); // the rules for names
    return new JobType<>(name, Objects.requireNonNull(body, "body"), null, null);
  }

  /**
   * Says what of a body makes the job. Needed where a body has what differs each time, such as the
   * time of a request, or where the codec does not write equal bodies alike.
   *
   * @param key gives a text that is the same for the same job; not blank, at most 500 bytes in
   *     UTF-8, without NUL
   * @return the changed definition
   */
  public JobType<T> identifiedBy(Function<? super T, String> key) {
    return new JobType<>(name, body, Objects.requireNonNull(key, "key"), check);
  }

  /**
   * Sets what a body must be like, such as a schema of the user's.
   *
   * @param check asked when a job is enqueued, and before one is replayed
   * @return the changed definition
   */
  public JobType<T> checking(JobCheck<? super T> check) {
    return new JobType<>(name, body, key, Objects.requireNonNull(check, "check"));
  }

  /** {@return the name} */
  public String name() {
    return name;
  }

  /** {@return what the payload is decoded to} */
  public Class<T> body() {
    return body;
  }

  /** {@return whether a key makes the job, and not the encoded body} */
  boolean hasKey() {
    return key != null;
  }

  /** {@return what the user's function gives, which may be null} */
  @Nullable String key(T of) {
    return key == null ? null : key.apply(of);
  }

  Optional<String> refusal(T of) throws Exception {
    return check == null ? Optional.empty() : check.refusal(of);
  }

  @Override
  public String toString() {
    return "job type '" + name + "'";
  }
}
