package dev.outbox4j;

import dev.outbox4j.internal.CurrentDelivery;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A message to publish. Immutable; made by {@link #to(String)}.
 *
 * <p>Text is refused if it holds a NUL character, which PostgreSQL cannot store in {@code text} or
 * {@code jsonb} (<a
 * href="https://www.postgresql.org/docs/current/datatype-character.html">character types</a>), or
 * half of a surrogate pair, which UTF-8 cannot express.
 */
public final class OutboxMessage {
  /** The header that holds the payload's media type: {@value}. */
  public static final String CONTENT_TYPE = "content-type";

  /** The header that holds the correlation id: {@value}. */
  public static final String CORRELATION_ID = "correlation-id";

  /**
   * The header that holds the place in a trace, as <a
   * href="https://www.w3.org/TR/trace-context/">W3C Trace Context</a> has it: {@value}.
   */
  public static final String TRACEPARENT = "traceparent";

  /** The header that goes with {@link #TRACEPARENT}: {@value}. */
  public static final String TRACESTATE = "tracestate";

  /**
   * The greatest length of a queue, type, ordering key, timer id or dedup key: {@value} bytes in
   * UTF-8.
   */
  public static final int MAX_NAME_BYTES = 255;

  private static final Duration LONGEST_USE = Duration.ofDays(36_500);

  private final String queue;
  private final @Nullable String type;
  private final @Nullable String orderingKey;
  private final @Nullable String timerId;
  private final IfLive ifLive;
  private final @Nullable Duration deliverIn;
  private final @Nullable Instant deliverAt;
  private final @Nullable Duration expiresIn;
  private final @Nullable Instant expiresAt;
  private final @Nullable String dedupKey;
  private final @Nullable DedupWindow dedupWindow;
  private final Map<String, String> headers;
  private final Object body;

  private OutboxMessage(Builder values) {
    this.queue = values.queue;
    this.type = values.type;
    this.orderingKey = values.orderingKey;
    this.timerId = values.timerId;
    this.ifLive = values.ifLive;
    this.deliverIn = values.deliverIn;
    this.deliverAt = values.deliverAt;
    this.expiresIn = values.expiresIn;
    this.expiresAt = values.expiresAt;
    this.dedupKey = values.dedupKey;
    this.dedupWindow = values.dedupWindow;
    this.headers = withContext(values.headers);
    this.body = values.body;
  }

  /** What a handler makes belongs to what it handles, unless it says otherwise. */
  private static Map<String, String> withContext(Map<String, String> own) {
    Delivery handled = CurrentDelivery.get();
    if (handled == null) {
      return Map.copyOf(own);
    }
    Map<String, String> all = new LinkedHashMap<>();
    handled.correlationId().ifPresent(id -> all.put(CORRELATION_ID, id));
    if (!own.containsKey(TRACEPARENT)) { // the state belongs to it
      handled.header(TRACEPARENT).ifPresent(parent -> all.put(TRACEPARENT, parent));
      handled.header(TRACESTATE).ifPresent(state -> all.put(TRACESTATE, state));
    }
    all.putAll(own);
    return Map.copyOf(all);
  }

  /**
   * Starts a message.
   *
   * @param queue where to publish; not blank, at most {@value #MAX_NAME_BYTES} bytes in UTF-8
   * @return a builder
   * @throws IllegalArgumentException if the queue is blank, too long or not storable
   */
  public static Builder to(String queue) {
    return new Builder(requireName("queue", queue));
  }

  /** {@return the queue} */
  public String queue() {
    return queue;
  }

  /** {@return the stable message type, if it has one} */
  public Optional<String> type() {
    return Optional.ofNullable(type);
  }

  /** {@return the ordering key, if it has one} */
  public Optional<String> orderingKey() {
    return Optional.ofNullable(orderingKey);
  }

  /** {@return the dedup key among live rows, if it has one} */
  public Optional<String> timerId() {
    return Optional.ofNullable(timerId);
  }

  /** {@return what becomes of the message if a live one has its timer id} */
  public IfLive ifLive() {
    return ifLive;
  }

  /** {@return the delay until the message is due, by the server's clock, if one was set} */
  public Optional<Duration> deliverIn() {
    return Optional.ofNullable(deliverIn);
  }

  /** {@return the instant from which the message is due, if one was set} */
  public Optional<Instant> deliverAt() {
    return Optional.ofNullable(deliverAt);
  }

  /** {@return for how long after it is due the message is of use, if that was set} */
  public Optional<Duration> expiresIn() {
    return Optional.ofNullable(expiresIn);
  }

  /** {@return from when on the message is of no use, if that was set} */
  public Optional<Instant> expiresAt() {
    return Optional.ofNullable(expiresAt);
  }

  /** {@return the key of which no second message is published within a window, if it has one} */
  public Optional<String> dedupKey() {
    return Optional.ofNullable(dedupKey);
  }

  /** {@return the window of the dedup key, if it has one} */
  public Optional<DedupWindow> dedupWindow() {
    return Optional.ofNullable(dedupWindow);
  }

  /** {@return the headers, unmodifiable; content type and correlation id are among them} */
  public Map<String, String> headers() {
    return headers;
  }

  /** {@return what the publisher's codec will encode, or the {@link Payload} itself} */
  public Object body() {
    return body;
  }

  /** {@return the media type, if one was set} */
  public Optional<String> contentType() {
    return Optional.ofNullable(headers.get(CONTENT_TYPE));
  }

  @Override
  public String toString() {
    return "OutboxMessage[queue=" + queue + ", type=" + type + "]";
  }

  /**
   * Checks a name that PostgreSQL must be able to store and index.
   *
   * @param what the name's role, for the error text
   * @param name the name
   * @return the name
   * @throws IllegalArgumentException if it is blank, longer than {@value #MAX_NAME_BYTES} bytes or
   *     not storable
   */
  static String requireName(String what, String name) {
    Objects.requireNonNull(name, what);
    if (name.isBlank()) {
      throw new IllegalArgumentException(what + " is blank; give it a name");
    }
    requireStorable(what, name);
    int bytes = name.getBytes(StandardCharsets.UTF_8).length;
    if (bytes > MAX_NAME_BYTES) {
      throw new IllegalArgumentException(
          what + " is " + bytes + " bytes long; at most " + MAX_NAME_BYTES + " are allowed");
    }
    return name;
  }

  private static String requireStorable(String what, String text) {
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == 0) {
        throw new IllegalArgumentException(
            what
                + " has a NUL character at position "
                + i
                + "; PostgreSQL cannot store it, remove it");
      }
      if (Character.isSurrogate(c)) {
        if (Character.isHighSurrogate(c)
            && i + 1 < text.length()
            && Character.isLowSurrogate(text.charAt(i + 1))) {
          i++;
        } else {
          throw new IllegalArgumentException(
              what
                  + " has half of a surrogate pair at position "
                  + i
                  + "; UTF-8 cannot express it");
        }
      }
    }
    return text;
  }

  /** Collects the values of a message. Not thread-safe. */
  public static final class Builder {
    private final String queue;
    private final Map<String, String> headers = new LinkedHashMap<>();
    private @Nullable String type;
    private @Nullable String orderingKey;
    private @Nullable String timerId;
    private IfLive ifLive = IfLive.DROP;
    private @Nullable Duration deliverIn;
    private @Nullable Instant deliverAt;
    private @Nullable Duration expiresIn;
    private @Nullable Instant expiresAt;
    private @Nullable String dedupKey;
    private @Nullable DedupWindow dedupWindow;
    private Object body = Payload.empty();

    private Builder(String queue) {
      this.queue = queue;
    }

    /**
     * Sets the message type, which routes to a handler. Use a stable name, never a class name.
     *
     * @param type not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes in UTF-8
     * @return this builder
     * @throws IllegalArgumentException if the type is blank, too long or not storable
     */
    public Builder type(String type) {
      this.type = requireName("type", type);
      return this;
    }

    /**
     * Sets the key whose messages belong in order.
     *
     * @param orderingKey not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes in UTF-8
     * @return this builder
     * @throws IllegalArgumentException if the key is blank, too long or not storable
     */
    public Builder orderingKey(String orderingKey) {
      this.orderingKey = requireName("orderingKey", orderingKey);
      return this;
    }

    /**
     * Sets the dedup key: while a row of the same queue and timer id lives, publishing another one
     * does nothing.
     *
     * @param timerId not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes in UTF-8
     * @return this builder
     * @throws IllegalArgumentException if the id is blank, too long or not storable
     */
    public Builder timerId(String timerId) {
      return timerId(timerId, IfLive.DROP);
    }

    /**
     * Sets the dedup key, and what becomes of this message while a row of the same queue and timer
     * id lives.
     *
     * @param timerId not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes in UTF-8
     * @param ifLive whether it is dropped, or takes the place of the live one, which takes the
     *     rights that {@code OutboxMigrations.timerReplacementGrantsSql} grants
     * @return this builder
     * @throws IllegalArgumentException if the id is blank, too long or not storable
     */
    public Builder timerId(String timerId, IfLive ifLive) {
      this.timerId = requireName("timerId", timerId);
      this.ifLive = Objects.requireNonNull(ifLive, "ifLive");
      return this;
    }

    /**
     * Sets the key of which no second message is published for a time; see {@link #dedupKey(String,
     * DedupWindow)}.
     *
     * @param key not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes in UTF-8
     * @param time from when the first message was published, whatever has become of it; more than
     *     zero, at most 36,500 days
     * @return this builder
     * @throws IllegalArgumentException if the key or the time is not allowed
     */
    public Builder dedupKey(String key, Duration time) {
      return dedupKey(key, DedupWindow.of(time));
    }

    /**
     * Sets the key of which no second message of the queue is published within a window. Publishing
     * one does nothing, and {@code Published.deduplicated()} says so. The outbox needs the table
     * that {@code DedupMigrations} makes. Use the same window wherever a key is published.
     *
     * @param key not blank, at most {@value OutboxMessage#MAX_NAME_BYTES} bytes in UTF-8
     * @param window the window
     * @return this builder
     * @throws IllegalArgumentException if the key is blank, too long or not storable
     */
    public Builder dedupKey(String key, DedupWindow window) {
      this.dedupKey = requireName("dedupKey", key);
      this.dedupWindow = Objects.requireNonNull(window, "window");
      return this;
    }

    /**
     * Delays the message; the server computes the instant from its own clock.
     *
     * @param delay zero or more
     * @return this builder
     * @throws IllegalArgumentException if the delay is negative, or {@link #deliverAt} is set
     */
    public Builder deliverIn(Duration delay) {
      Objects.requireNonNull(delay, "deliverIn");
      if (delay.isNegative()) {
        throw new IllegalArgumentException("deliverIn is " + delay + "; it must be zero or more");
      }
      if (deliverAt != null) {
        throw bothDelays();
      }
      this.deliverIn = delay;
      return this;
    }

    /**
     * Delays the message until an instant; one in the past means at once.
     *
     * @param instant from when on the message is due
     * @return this builder
     * @throws IllegalArgumentException if {@link #deliverIn} is set
     */
    public Builder deliverAt(Instant instant) {
      Objects.requireNonNull(instant, "deliverAt");
      if (deliverIn != null) {
        throw bothDelays();
      }
      this.deliverAt = instant;
      return this;
    }

    private static IllegalArgumentException bothDelays() {
      return new IllegalArgumentException("deliverIn and deliverAt are both set; set one of them");
    }

    /**
     * Sets for how long the message is of use, from when it is due: at once, or when {@link
     * #deliverIn} or {@link #deliverAt} says. The server computes the instant from its own clock. A
     * message whose time is over before a handler begins, in its first or any later attempt, goes
     * to the dead letters as {@link FailureReason#EXPIRED} when its turn comes.
     *
     * @param time more than zero, at most 36,500 days
     * @return this builder
     * @throws IllegalArgumentException if the time is out of range, or {@link #expiresAt} is set
     */
    public Builder expiresIn(Duration time) {
      Objects.requireNonNull(time, "expiresIn");
      if (time.isNegative() || time.isZero() || time.compareTo(LONGEST_USE) > 0) {
        throw new IllegalArgumentException(
            "expiresIn is "
                + time
                + "; it must be more than zero and at most "
                + LONGEST_USE.toDays()
                + " days; leave it out for a message that does not expire");
      }
      if (expiresAt != null) {
        throw bothExpiries();
      }
      this.expiresIn = time;
      return this;
    }

    /**
     * Sets from when on the message is of no use, as {@link #expiresIn} does. The server compares
     * it with its own clock, which may differ from this process's. One that is past when the
     * message is published is no error: the message expires.
     *
     * @param instant the instant; rounded up to the microsecond
     * @return this builder
     * @throws IllegalArgumentException if {@link #expiresIn} is set
     */
    public Builder expiresAt(Instant instant) {
      Objects.requireNonNull(instant, "expiresAt");
      if (expiresIn != null) {
        throw bothExpiries();
      }
      this.expiresAt = instant;
      return this;
    }

    private static IllegalArgumentException bothExpiries() {
      return new IllegalArgumentException("expiresIn and expiresAt are both set; set one of them");
    }

    /**
     * Adds a header, replacing one of the same name.
     *
     * @param name not blank
     * @param value the value
     * @return this builder
     * @throws IllegalArgumentException if the name is blank, or either is not storable
     */
    public Builder header(String name, String value) {
      requireName("header name", name);
      headers.put(
          name, requireStorable("header '" + name + "'", Objects.requireNonNull(value, "value")));
      return this;
    }

    /**
     * Sets the payload's media type; a codec sets its own unless this was called.
     *
     * @param contentType a media type, such as {@code application/json}
     * @return this builder
     */
    public Builder contentType(String contentType) {
      return header(CONTENT_TYPE, contentType);
    }

    /**
     * Sets the id that ties this message to others.
     *
     * @param correlationId the id
     * @return this builder
     */
    public Builder correlationId(String correlationId) {
      return header(CORRELATION_ID, correlationId);
    }

    /**
     * Sets the message's place in a trace.
     *
     * @param traceparent as <a href="https://www.w3.org/TR/trace-context/#traceparent-header">W3C
     *     Trace Context</a> has it; not checked
     * @return this builder
     */
    public Builder traceparent(String traceparent) {
      return header(TRACEPARENT, traceparent);
    }

    /**
     * Sets the body, to be encoded by the publisher's codec. {@code byte[]}, {@link Payload} and
     * {@link String} (as UTF-8) need no codec.
     *
     * @param body the body
     * @return this builder
     */
    public Builder body(Object body) {
      Objects.requireNonNull(body, "body is null; leave body(...) out for a message without one");
      this.body = body instanceof byte[] bytes ? Payload.of(bytes) : body;
      return this;
    }

    /**
     * Returns the message. On a thread that runs a handler it has the correlation id, the {@code
     * traceparent} and the {@code tracestate} of the message that is handled, unless they were set
     * here; not where a handler takes several messages at once, nor in stages that go on elsewhere.
     *
     * @return the message; the builder may be used on without effect on it
     * @throws IllegalArgumentException if {@link #expiresAt} is not after {@link #deliverAt}, or it
     *     has a timer id and a dedup key
     */
    public OutboxMessage build() {
      if (timerId != null && dedupKey != null) {
        throw new IllegalArgumentException(
            "timerId and dedupKey are both set; set one of them: a timer id is free once its message"
                + " is done, a dedup key when its window ends");
      }
      if (expiresAt != null && deliverAt != null && !expiresAt.isAfter(deliverAt)) {
        throw new IllegalArgumentException(
            "expiresAt is "
                + expiresAt
                + " and deliverAt is "
                + deliverAt
                + "; a message must expire after it is due");
      }
      return new OutboxMessage(this);
    }
  }
}
