package dev.outbox4j.test;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import dev.outbox4j.TypeRef;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.test.internal.StoredRow;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A row of an outbox as it stood when it was read, for tests to look at. Immutable. {@link
 * #toString} shows the beginning of the payload, as the data of a test is no secret.
 */
public final class OutboxRow {
  private static final int MOST_SHOWN = 200;

  private final StoredRow row;
  private final @Nullable PayloadCodec codec;

  OutboxRow(StoredRow row, @Nullable PayloadCodec codec) {
    this.row = row;
    this.codec = codec;
  }

  OutboxRow with(@Nullable PayloadCodec other) {
    return new OutboxRow(row, other);
  }

  /** {@return the row's id} */
  public long id() {
    return row.id();
  }

  /** {@return the queue} */
  public String queue() {
    return row.queue();
  }

  /** {@return the message type, if it has one} */
  public Optional<String> type() {
    return Optional.ofNullable(row.type());
  }

  /** {@return the ordering key, if it has one} */
  public Optional<String> orderingKey() {
    return Optional.ofNullable(row.orderingKey());
  }

  /** {@return the timer id, if it has one} */
  public Optional<String> timerId() {
    return Optional.ofNullable(row.timerId());
  }

  /** {@return all headers, unmodifiable} */
  public Map<String, String> headers() {
    return row.headers();
  }

  /**
   * Returns a header.
   *
   * @param name its exact name
   * @return its value, or empty if there is none
   */
  public Optional<String> header(String name) {
    return Optional.ofNullable(row.headers().get(name));
  }

  /** {@return the correlation id, if it has one} */
  public Optional<String> correlationId() {
    return header(OutboxMessage.CORRELATION_ID);
  }

  /** {@return the bytes} */
  public Payload payload() {
    return row.payload();
  }

  /**
   * Decodes the payload, as for a handler of that type.
   *
   * @param type what to decode to; {@code byte[]}, {@link Payload} and {@link String} need no codec
   * @param <B> the same
   * @return the body
   * @throws IllegalStateException if it needs a codec and there is none
   * @throws OutboxException if the payload is not of that type
   */
  public <B> B body(Class<B> type) {
    Object body = Bodies.decode(row.payload(), row.headers(), type, codec);
    if (!type.isInstance(body)) {
      throw new OutboxException(
          "The codec decoded the payload to %s where %s is expected"
              .formatted(body.getClass().getName(), type.getName()));
    }
    return type.cast(body);
  }

  /**
   * Decodes the payload to a type with type arguments.
   *
   * @param type what to decode to
   * @param <B> the same
   * @return the body
   * @throws IllegalStateException if there is no codec
   * @throws OutboxException if the payload is not of that type
   */
  @SuppressWarnings("unchecked") // type arguments are the codec's part
  public <B> B body(TypeRef<B> type) {
    return (B) Bodies.decode(row.payload(), row.headers(), type.type(), codec);
  }

  /** {@return when the publishing transaction began} */
  public Instant createdAt() {
    return row.createdAt();
  }

  /** {@return from when on it is due} */
  public Instant availableAt() {
    return row.availableAt();
  }

  /** {@return from when on no handler is called with it, if it expires} */
  public Optional<Instant> expiresAt() {
    return Optional.ofNullable(row.expiresAt());
  }

  /** {@return how often it was claimed, without claims that were given back} */
  public int deliveries() {
    return row.deliveries();
  }

  /** {@return how many handler runs have failed} */
  public int attempts() {
    return row.attempts();
  }

  /** {@return why the last of them failed, if one did} */
  public Optional<String> lastError() {
    return Optional.ofNullable(row.lastError());
  }

  /**
   * Returns what is known of it in a line: its payload as far as it is text, and its last error.
   */
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder("row ").append(row.id());
    text.append(" of queue '").append(row.queue()).append('\'');
    text.append(row.type() == null ? ", no type" : ", type '" + row.type() + "'");
    text.append(", body ").append(Bodies.shown(row.payload(), MOST_SHOWN));
    if (row.attempts() > 0) {
      text.append(", failed attempts ").append(row.attempts());
    }
    String error = row.lastError();
    if (error != null) {
      text.append(", last error: ").append(error.lines().findFirst().orElse(""));
    }
    if (row.leasedBy() != null) {
      text.append(", leased by ").append(row.leasedBy());
    }
    return text.toString();
  }
}
