package dev.outbox4j.test;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.spi.PayloadCodec;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * A delivery made by hand, to call a handler without a subscriber:
 *
 * <pre>{@code
 * var delivery = TestDelivery.of(new OrderPlaced("o-1")).type("order.placed").attempt(2);
 * Outcome outcome = handler.handle(delivery.body(), delivery);
 * assertThat(outcome).isEqualTo(Outcome.ack());
 * }</pre>
 *
 * <p>What is not said has a default: row 1 of queue {@code test}, created and due now, the first
 * attempt, under a lease that is held.
 *
 * <p>The methods that set something return this very delivery. Set it up before a handler gets it;
 * from then on it is thread-safe, and only {@link #loseLease()} and {@link #stopSubscriber()} are
 * for use while a handler runs.
 *
 * @param <T> the type of the body
 */
public final class TestDelivery<T> implements Delivery {
  private final T body;
  private final Map<String, String> headers = new LinkedHashMap<>();
  private final AtomicReference<@Nullable Outcome> decided = new AtomicReference<>();
  private @Nullable PayloadCodec codec;
  private @Nullable Payload payload;
  private long id = 1;
  private String queue = "test";
  private @Nullable String type;
  private @Nullable String orderingKey;
  private @Nullable String timerId;
  private Instant createdAt;
  private Instant availableAt;
  private @Nullable Instant expiresAt;
  private int attempt = 1;
  private int deliveries;
  private long leaseToken;
  private volatile boolean leaseLost;
  private volatile Duration leaseLeft = Duration.ofSeconds(60);
  private volatile boolean stopping;

  private TestDelivery(T body) {
    this.body = Objects.requireNonNull(body, "body");
    this.createdAt = Clock.systemUTC().instant().truncatedTo(ChronoUnit.MICROS);
    this.availableAt = createdAt;
  }

  /**
   * Makes a delivery.
   *
   * @param body what a typed handler is given. Bytes, {@link Payload} and text are the payload as
   *     well; any other body has one only by {@link #codec} or {@link #payload(Payload)}
   * @param <T> its type
   * @return the delivery, to be set up further
   */
  public static <T> TestDelivery<T> of(T body) {
    return new TestDelivery<>(body);
  }

  /** {@return the body, to hand to the handler} */
  public T body() {
    return body;
  }

  /** {@return the last decision by {@link #decide}, if there was one} */
  @Override
  public Optional<Outcome> decided() {
    return Optional.ofNullable(decided.get());
  }

  /**
   * Sets what makes the payload of the body, and so its content type.
   *
   * @param codec the codec
   * @return this
   */
  public TestDelivery<T> codec(PayloadCodec codec) {
    this.codec = Objects.requireNonNull(codec, "codec");
    return this;
  }

  /**
   * Sets the bytes as published, for a handler that looks at them beside the body.
   *
   * @param payload the bytes
   * @return this
   */
  public TestDelivery<T> payload(Payload payload) {
    this.payload = Objects.requireNonNull(payload, "payload");
    return this;
  }

  /**
   * Sets the row's id.
   *
   * @param id the id; default 1
   * @return this
   */
  public TestDelivery<T> id(long id) {
    this.id = id;
    return this;
  }

  /**
   * Sets the queue.
   *
   * @param queue the queue, by the rules of {@link OutboxMessage#to}; default {@code test}
   * @return this
   * @throws IllegalArgumentException if no message can have it
   */
  public TestDelivery<T> queue(String queue) {
    this.queue = OutboxMessage.to(queue).build().queue(); // the rules for every message
    return this;
  }

  /**
   * Sets the message type.
   *
   * @param type the type, by the rules of {@link OutboxMessage.Builder#type}; none by default
   * @return this
   * @throws IllegalArgumentException if no message can have it
   */
  public TestDelivery<T> type(String type) {
    anyMessage().type(type);
    this.type = type;
    return this;
  }

  /**
   * Sets the ordering key.
   *
   * @param orderingKey the key, by the rules of {@link OutboxMessage.Builder#orderingKey}; none by
   *     default
   * @return this
   * @throws IllegalArgumentException if no message can have it
   */
  public TestDelivery<T> orderingKey(String orderingKey) {
    anyMessage().orderingKey(orderingKey);
    this.orderingKey = orderingKey;
    return this;
  }

  /**
   * Sets the timer id.
   *
   * @param timerId the id, by the rules of {@link OutboxMessage.Builder#timerId}; none by default
   * @return this
   * @throws IllegalArgumentException if no message can have it
   */
  public TestDelivery<T> timerId(String timerId) {
    anyMessage().timerId(timerId);
    this.timerId = timerId;
    return this;
  }

  /**
   * Adds a header, replacing one of the same name.
   *
   * @param name its name, by the rules of {@link OutboxMessage.Builder#header}
   * @param value its value
   * @return this
   * @throws IllegalArgumentException if no message can have it
   */
  public TestDelivery<T> header(String name, String value) {
    anyMessage().header(name, value);
    headers.put(name, value);
    return this;
  }

  /**
   * Sets the media type of the payload. By default it is that of the codec, {@code text/plain} for
   * a body that is text, and none for bytes.
   *
   * @param contentType a media type
   * @return this
   */
  public TestDelivery<T> contentType(String contentType) {
    return header(OutboxMessage.CONTENT_TYPE, contentType);
  }

  /**
   * Sets the correlation id.
   *
   * @param correlationId the id; none by default
   * @return this
   */
  public TestDelivery<T> correlationId(String correlationId) {
    return header(OutboxMessage.CORRELATION_ID, correlationId);
  }

  /**
   * Sets when the publishing transaction began.
   *
   * @param createdAt the instant; default now
   * @return this
   */
  public TestDelivery<T> createdAt(Instant createdAt) {
    this.createdAt = Objects.requireNonNull(createdAt, "createdAt");
    return this;
  }

  /**
   * Sets from when on the message was due.
   *
   * @param availableAt the instant; default now
   * @return this
   */
  public TestDelivery<T> availableAt(Instant availableAt) {
    this.availableAt = Objects.requireNonNull(availableAt, "availableAt");
    return this;
  }

  /**
   * Sets from when on no handler would be called with the message.
   *
   * @param expiresAt the instant; the message does not expire unless it is set
   * @return this
   */
  public TestDelivery<T> expiresAt(Instant expiresAt) {
    this.expiresAt = Objects.requireNonNull(expiresAt, "expiresAt");
    return this;
  }

  /**
   * Sets which handler run this is.
   *
   * @param attempt 1 or more; default 1
   * @return this
   * @throws IllegalArgumentException if it is less than 1
   */
  public TestDelivery<T> attempt(int attempt) {
    this.attempt = positive("attempt", attempt);
    return this;
  }

  /**
   * Sets how often the row was claimed.
   *
   * @param deliveries 1 or more; default as many as the attempt says
   * @return this
   * @throws IllegalArgumentException if it is less than 1
   */
  public TestDelivery<T> deliveries(int deliveries) {
    this.deliveries = positive("deliveries", deliveries);
    return this;
  }

  /**
   * Sets the fencing token.
   *
   * @param leaseToken 1 or more; default as many as {@link #deliveries()}
   * @return this
   * @throws IllegalArgumentException if it is less than 1
   */
  public TestDelivery<T> leaseToken(long leaseToken) {
    if (leaseToken < 1) {
      throw new IllegalArgumentException("leaseToken is " + leaseToken + "; it must be 1 or more");
    }
    this.leaseToken = leaseToken;
    return this;
  }

  /**
   * Loses the lease: from now on {@link #leaseLost()} is true. May be called while a handler runs,
   * by any thread.
   *
   * @return this
   */
  public TestDelivery<T> loseLease() {
    this.leaseLost = true;
    return this;
  }

  /**
   * Sets how long the lease lasts yet, until {@link #loseLease()}.
   *
   * @param leaseLeft zero or more; default 60 s
   * @return this
   * @throws IllegalArgumentException if it is negative
   */
  public TestDelivery<T> leaseLeft(Duration leaseLeft) {
    if (leaseLeft.isNegative()) {
      throw new IllegalArgumentException("leaseLeft is " + leaseLeft + "; it must be zero or more");
    }
    this.leaseLeft = leaseLeft;
    return this;
  }

  /**
   * Stops the subscriber: from now on {@link #stopping()} is true. May be called while a handler
   * runs, by any thread.
   *
   * @return this
   */
  public TestDelivery<T> stopSubscriber() {
    this.stopping = true;
    return this;
  }

  @Override
  public long id() {
    return id;
  }

  @Override
  public String queue() {
    return queue;
  }

  @Override
  public Optional<String> type() {
    return Optional.ofNullable(type);
  }

  @Override
  public Optional<String> orderingKey() {
    return Optional.ofNullable(orderingKey);
  }

  @Override
  public Optional<String> timerId() {
    return Optional.ofNullable(timerId);
  }

  /**
   * {@return the bytes as published}
   *
   * @throws IllegalStateException if the body is neither bytes nor text, and there is neither a
   *     codec nor a payload
   */
  @Override
  public Payload payload() {
    if (payload != null) {
      return payload;
    }
    if (codec == null && Bodies.needsCodec(body)) {
      throw new IllegalStateException(
          "This delivery has a body ("
              + body.getClass().getName()
              + ") and no payload; give it one with codec(...) or payload(...), or make it of bytes, Payload or String");
    }
    return Bodies.encode(body, codec);
  }

  @Override
  public Map<String, String> headers() {
    return Bodies.headers(headers, payload == null ? body : payload, codec);
  }

  @Override
  public Instant createdAt() {
    return createdAt;
  }

  @Override
  public Instant availableAt() {
    return availableAt;
  }

  @Override
  public Optional<Instant> expiresAt() {
    return Optional.ofNullable(expiresAt);
  }

  @Override
  public int attempt() {
    return attempt;
  }

  @Override
  public int deliveries() {
    return deliveries == 0 ? attempt : deliveries;
  }

  @Override
  public long leaseToken() {
    return leaseToken == 0 ? deliveries() : leaseToken;
  }

  @Override
  public boolean leaseLost() {
    return leaseLost;
  }

  @Override
  public Duration leaseLeft() {
    return leaseLost ? Duration.ZERO : leaseLeft;
  }

  @Override
  public boolean stopping() {
    return stopping;
  }

  /** Keeps the outcome, also once the lease is lost; see {@link #decided()}. */
  @Override
  public void decide(Outcome outcome) {
    decided.set(Objects.requireNonNull(outcome, "outcome"));
  }

  @Override
  public String toString() {
    return "TestDelivery[id=%d, queue=%s, type=%s, attempt=%d]".formatted(id, queue, type, attempt);
  }

  private static OutboxMessage.Builder anyMessage() {
    return OutboxMessage.to("test");
  }

  private static int positive(String what, int value) {
    if (value < 1) {
      throw new IllegalArgumentException(what + " is " + value + "; it must be 1 or more");
    }
    return value;
  }
}
