package dev.outbox4j.test;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Payload;
import dev.outbox4j.internal.publish.OrderingKey;
import dev.outbox4j.internal.publish.Replacing;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.Published;
import dev.outbox4j.spi.DeadLetters;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.test.internal.MemoryStore;
import dev.outbox4j.test.internal.StoredRow;
import dev.outbox4j.test.internal.kit.Drain;
import java.sql.Connection;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * An outbox in memory, for tests without a database. It leases, retries and dead-letters by the
 * rules of the one on PostgreSQL, on a clock that the test sets:
 *
 * <pre>{@code
 * InMemoryOutbox outbox = InMemoryOutbox.create();
 * outbox.publish(OutboxMessage.to("orders").type("order.placed").body("o-1").build());
 * outbox.drain("orders", subscriber -> subscriber.on("order.placed", String.class, handler));
 * assertThatOutbox(outbox).hasNoDeadLetters("orders");
 * }</pre>
 *
 * <p><b>There is no transaction.</b> What is published is there at once and stays, whatever becomes
 * of the caller's transaction, and the messages of one call are not seen all at once. Whether a
 * service publishes in the transaction of its data is for a test with {@link OutboxPostgres} to
 * show.
 *
 * <p>Time stands still unless {@link #advance} moves it: a message that is delayed, or waits for a
 * retry, is due then and not before. Leases end by that clock, too.
 *
 * <p>Thread-safe.
 */
public final class InMemoryOutbox {
  private static final Duration DRAIN_LIMIT = Duration.ofSeconds(30);

  private final SettableClock clock;
  private final @Nullable PayloadCodec codec;
  private final MemoryStore store;

  /** Guarded by this object, as is publishing: who sees a row sees it here as well. */
  private final List<OutboxRow> published = new ArrayList<>();

  InMemoryOutbox(SettableClock clock, @Nullable PayloadCodec codec, MemoryStore store) {
    this.clock = Objects.requireNonNull(clock, "clock");
    this.codec = codec;
    this.store = store;
    clock.onChange(store::wakeAll);
  }

  /** {@return an empty outbox without a codec, on a clock that stands at the present instant} */
  public static InMemoryOutbox create() {
    return on(new SettableClock());
  }

  /**
   * Makes an empty outbox without a codec.
   *
   * @param clock its server's clock, which the service under test may read as well
   * @return the outbox
   */
  public static InMemoryOutbox on(SettableClock clock) {
    return new InMemoryOutbox(clock, null, new MemoryStore(clock));
  }

  /**
   * Makes an empty outbox with a codec, which publishers and {@link #drain} use.
   *
   * @param clock its server's clock, which the service under test may read as well
   * @param codec what the service publishes and subscribes with
   * @return the outbox
   */
  public static InMemoryOutbox on(SettableClock clock, PayloadCodec codec) {
    return new InMemoryOutbox(
        clock, Objects.requireNonNull(codec, "codec"), new MemoryStore(clock));
  }

  /**
   * Makes an empty outbox with a codec, on a clock that stands at the present instant.
   *
   * @param codec what the service publishes and subscribes with
   * @return the outbox
   */
  public static InMemoryOutbox with(PayloadCodec codec) {
    return on(new SettableClock(), codec);
  }

  /** {@return the clock of this outbox} */
  public SettableClock clock() {
    return clock;
  }

  /**
   * Moves the clock, so that what is due then may be handled.
   *
   * @param time how far
   */
  public void advance(Duration time) {
    clock.advance(time);
  }

  /**
   * Publishes messages.
   *
   * @param messages any number of them
   * @return what became of each, in their order
   * @throws OutboxException if one cannot be encoded, or messages of one ordering key have
   *     different timer ids; none is published then
   */
  public List<Published> publish(OutboxMessage... messages) {
    return publish(List.of(messages));
  }

  private List<Published> publish(Collection<OutboxMessage> messages) {
    OrderingKey.requireOneTimerEach(messages);
    List<OutboxMessage> encoded = messages.stream().map(this::encoded).toList();
    Set<Integer> leftOut = Replacing.leftOut(encoded);
    List<Published> results = new ArrayList<>();
    synchronized (this) {
      for (int place = 0; place < encoded.size(); place++) {
        OutboxMessage message = encoded.get(place);
        OptionalLong id = leftOut.contains(place) ? OptionalLong.empty() : store.publish(message);
        if (id.isPresent()) {
          published.add(new OutboxRow(asPublished(id.getAsLong(), message), codec));
        }
        results.add(new Published(id));
      }
    }
    return results;
  }

  private OutboxMessage encoded(OutboxMessage message) {
    Object body = message.body();
    if (codec == null && Bodies.needsCodec(body)) {
      throw new OutboxException(
          "the body ("
              + body.getClass().getName()
              + ") of "
              + message
              + " needs a codec and the outbox has none; make it by InMemoryOutbox.with(codec), or give the body as bytes, Payload or String");
    }
    Payload payload = Bodies.encode(body, codec);
    OutboxMessage.Builder copy = OutboxMessage.to(message.queue()).body(payload);
    message.type().ifPresent(copy::type);
    message.orderingKey().ifPresent(copy::orderingKey);
    message.timerId().ifPresent(id -> copy.timerId(id, message.ifLive()));
    message.dedupKey().ifPresent(key -> copy.dedupKey(key, message.dedupWindow().orElseThrow()));
    message.deliverIn().ifPresent(copy::deliverIn);
    message.deliverAt().ifPresent(copy::deliverAt);
    message.expiresIn().ifPresent(copy::expiresIn);
    message.expiresAt().ifPresent(copy::expiresAt);
    Map<String, String> headers = Bodies.headers(message.headers(), body, codec);
    headers.forEach(copy::header);
    return copy.build();
  }

  /** The row as the message made it; a subscriber may have changed or removed it meanwhile. */
  private StoredRow asPublished(long id, OutboxMessage message) {
    return MemoryStore.newRow(id, message, clock.instant());
  }

  /**
   * Returns a publisher to this outbox, to hand to the service under test. It ignores the
   * connection, which may be null or in autocommit mode: see above of transactions.
   *
   * @return the publisher
   */
  public OutboxPublisher publisher() {
    return new Publisher();
  }

  private final class Publisher implements OutboxPublisher {
    @Override
    public Published publish(@Nullable Connection connection, OutboxMessage message) {
      return InMemoryOutbox.this.publish(List.of(message)).get(0);
    }

    @Override
    public List<Published> publish(
        @Nullable Connection connection, Collection<OutboxMessage> messages) {
      return InMemoryOutbox.this.publish(messages);
    }

    @Override
    public boolean cancelTimer(@Nullable Connection connection, String queue, String timerId) {
      return store.cancelTimer(queue, timerId);
    }
  }

  /**
   * Returns the rows, for {@link OutboxSubscriber.Builder#store}.
   *
   * @return the store
   */
  public OutboxStore store() {
    return store;
  }

  /**
   * Returns what wakes a subscriber at once, for {@link OutboxSubscriber.Builder#listen}, also when
   * the clock is moved. Without it a subscriber polls.
   *
   * @return the source
   */
  public NotificationSource notifications() {
    return store.notifications();
  }

  /**
   * Returns the dead letters of this outbox, for {@link OutboxSubscriber.Builder#deadLetters}.
   *
   * @return where they go; {@link #deadLettered} reads them
   */
  public DeadLetters deadLetters() {
    return store.deadLetters();
  }

  /**
   * Handles what is due, until nothing is, by a subscriber of its own that ends with this call.
   * Handlers run one after the other on the calling thread, so a test needs no waiting, sees
   * handlers' breakpoints, and its own thread-locals in them. What handlers publish to the queue
   * meanwhile is handled as well. What waits for a retry is left, until {@link #advance} makes it
   * due.
   *
   * <p>The subscriber is the real one. It has this outbox's codec, unless {@code settings} names
   * another; they add handlers, and what else the service sets, such as its retry policy and ack
   * mode. Its store, notifications, dead letters, executor and number of workers are those of this
   * outbox and this call, whatever the settings say; they must call neither {@code
   * virtualThreads()} nor {@code deleteTerminalFailures()}.
   *
   * <p>A handler that throws is no failure of this call, since it may be what is tested: {@link
   * Drained#failures} has it, and {@link Drained#requireNoFailures} is for all other tests. An
   * {@link AssertionError} is: a check in a handler must fail its test.
   *
   * @param queue the queue
   * @param settings adds handlers and settings to the subscriber
   * @return how many runs there were and what failed
   * @throws AssertionError if a handler threw one, or something is still due after 30 s; a handler
   *     that runs then is interrupted
   * @throws IllegalStateException if the settings are not good; see {@link
   *     OutboxSubscriber.Builder#build}
   */
  public Drained drain(String queue, Consumer<OutboxSubscriber.Builder> settings) {
    return drain(queue, settings, DRAIN_LIMIT);
  }

  Drained drain(String queue, Consumer<OutboxSubscriber.Builder> settings, Duration limit) {
    Objects.requireNonNull(settings, "settings");
    OutboxSubscriber.Builder builder =
        OutboxSubscriber.builder(OutboxMessage.to(queue).build().queue());
    if (codec != null) {
      builder.codec(codec);
    }
    settings.accept(builder);
    // last, or the settings of a service that names its own would drain another outbox
    builder.store(store).listen(notifications()).deadLetters(deadLetters());
    Drain drain = new Drain(limit, () -> isDrained(queue), () -> notDrained(queue, limit));
    drain.run(builder);
    return new Drained(drain.runs(), drain.failures(), drain.retried(), drain.deadLettered());
  }

  /**
   * Waits until nothing of a queue is due, while a subscriber that the test has started handles it.
   * Messages that are due later are left, also those that failed and wait for a retry, unlike with
   * {@link OutboxAssert#awaitEmpty}. Returns at once if nothing is due.
   *
   * @param queue the queue
   * @param limit how long to wait
   * @throws AssertionError if something is still due then; it says what
   */
  public void awaitDrained(String queue, Duration limit) {
    Poll.until(() -> isDrained(queue), limit, () -> notDrained(queue, limit));
  }

  /**
   * Tells whether nothing of a queue is due: all that was has been handled, dead-lettered, or waits
   * for a retry.
   *
   * @param queue the queue
   * @return true if so
   */
  public boolean isDrained(String queue) {
    return store.due(queue) == 0;
  }

  String notDrained(String queue, Duration limit) {
    return "Queue '%s' is not drained after %s: %s".formatted(queue, limit, due(queue));
  }

  List<OutboxRow> due(String queue) {
    Instant now = clock.instant();
    return waiting(queue).stream().filter(row -> !row.availableAt().isAfter(now)).toList();
  }

  /**
   * Returns all that was ever published to a queue, as it was published.
   *
   * @param queue the queue
   * @return the rows, in the order of their ids
   */
  public List<OutboxRow> published(String queue) {
    return published().stream().filter(row -> row.queue().equals(queue)).toList();
  }

  /** {@return all that was ever published, in the order of the ids} */
  public synchronized List<OutboxRow> published() {
    return List.copyOf(published);
  }

  /**
   * Returns what is in a queue now: what is due, being handled, delayed, or waits for a retry.
   *
   * @param queue the queue
   * @return the rows as they stand, in the order of their ids
   */
  public List<OutboxRow> waiting(String queue) {
    return store.rows().stream()
        .filter(row -> row.queue().equals(queue))
        .map(row -> new OutboxRow(row, codec))
        .toList();
  }

  /**
   * Returns what of a queue failed for good.
   *
   * @param queue the queue
   * @return the dead letters, oldest first
   */
  public List<DeadLetter> deadLettered(String queue) {
    return store.deadRows().stream()
        .filter(dead -> dead.row().queue().equals(queue))
        .map(
            dead ->
                new DeadLetter(
                    new OutboxRow(dead.row(), codec),
                    dead.reason(),
                    dead.attempts(),
                    Optional.ofNullable(dead.exception()),
                    dead.failedAt()))
        .toList();
  }

  @Nullable PayloadCodec codec() {
    return codec;
  }

  @Override
  public String toString() {
    return "InMemoryOutbox[" + store.rows().size() + " rows]";
  }
}
