package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.DeadLetterWriter;
import dev.outbox4j.spi.DeadLetters;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What an idle ordered queue waits for begins when it is its time, however rarely it is polled. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class OrderedWakeIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();
  private static final Duration LEASE = Duration.ofSeconds(2);
  private static final Duration SOON = Duration.ofSeconds(60);
  private static final Duration RARELY = Duration.ofSeconds(20);

  private final TestDatabase database;
  private final List<String> begun = new CopyOnWriteArrayList<>();
  private EngineFixture engine;
  private String queue;

  OrderedWakeIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 12);
    queue = "ordered-wake-" + QUEUES.incrementAndGet();
    OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
  }

  @AfterEach
  void tearDown() {
    engine.close();
    database.update("delete from outbox where queue = ?", queue);
  }

  private OutboxSubscriber.Builder subscriber(String name) {
    return engine
        .subscriber(queue)
        .name(name)
        .ordered()
        .lease(LEASE)
        .workers(4)
        .listen(PgjdbcListen.on(database.plain()))
        .poll(RARELY, RARELY.multipliedBy(2));
  }

  private static void note(List<String> begun, String text) {
    begun.add(text);
  }

  private OutboxSubscriber.Builder noting(OutboxSubscriber.Builder builder) {
    return builder.on("t", String.class, (String text, Delivery delivery) -> note(begun, text));
  }

  private void publish(String text, OutboxMessage.Builder message) {
    engine.inTransaction(List.of(message.type("t").body(text).build()));
  }

  private OutboxMessage.Builder message() {
    return OutboxMessage.to(queue);
  }

  private void owns(String subscriber, int buckets) {
    await()
        .atMost(SOON)
        .until(
            () ->
                database.one(
                        Long.class,
                        "select count(*) from outbox_buckets where queue = ? and owner like ?",
                        queue,
                        subscriber + "%")
                    == buckets);
  }

  /** Nothing wakes it but a notification. */
  private void idle(OutboxSubscriber subscriber) {
    await().atMost(SOON).until(() -> EngineFixture.sleepsFor(subscriber, Duration.ofSeconds(3)));
  }

  @Test
  void aDelayedMessageWithAKey() {
    OutboxSubscriber subscriber = engine.start(noting(subscriber("s")));
    owns("s", 64);
    idle(subscriber);
    Duration delay = Duration.ofSeconds(4);
    publish("late", message().orderingKey("k").deliverIn(delay));

    await().atMost(delay.plusSeconds(4)).until(() -> begun.contains("late"));
  }

  @Test
  void aDelayedMessageWithoutAKeyThoughOthersComeMeanwhile() {
    OutboxSubscriber subscriber = engine.start(noting(subscriber("s")));
    owns("s", 64);
    idle(subscriber);
    Duration delay = Duration.ofSeconds(6);
    publish("late", message().deliverIn(delay));
    publish("now", message());
    await().until(() -> begun.contains("now"));
    idle(subscriber);
    database.list(String.class, "select pg_notify('outbox_outbox', ?)::text", queue);

    await().atMost(delay.plusSeconds(4)).until(() -> begun.contains("late"));
  }

  @Test
  void aRowWithoutAKeyThatAnotherKindOfSubscriberHasLeftLeased() {
    engine.publish(queue, "t", 3);
    database.update(
        "update outbox set lease_token = 1, leased_at = now(), leased_by = 'old',"
            + " lease_until = now() + interval '4 seconds', deliveries_count = 1 where queue = ?",
        queue);
    engine.start(noting(subscriber("s")));

    await().atMost(Duration.ofSeconds(10)).until(() -> begun.size() == 3);
  }

  /** As docs/dead-letters.md has it. */
  private void putBack() {
    database.list(
        Long.class,
        """
        with redriven as (
          update outbox_dlq
          set resolved_at = now(), resolved_by = current_user, resolution = 'redriven'
          where queue = '%1$s' and resolved_at is null
          returning *
        ), back as (
        insert into outbox (id, lease_token, queue, type, ordering_key, payload, headers, timer_id)
        select original_id, lease_token, queue, type, ordering_key, payload, headers, timer_id from redriven
        returning id)
        select id from back where pg_notify('outbox_outbox', '%1$s') is not null
        """
            .formatted(queue));
  }

  @Test
  void aDeadLetterThatIsPutBack() {
    AtomicBoolean mended = new AtomicBoolean();
    OutboxSubscriber subscriber =
        engine.start(
            subscriber("s")
                .on(
                    "t",
                    String.class,
                    (String text, Delivery delivery) -> {
                      note(begun, text);
                      return mended.get() ? Outcome.ack() : Outcome.reject("of a test");
                    }));
    owns("s", 64);
    publish("k", message().orderingKey("k"));
    await().until(() -> engine.deadLetters(queue) == 1);
    idle(subscriber);
    mended.set(true);
    putBack();

    await().atMost(Duration.ofSeconds(5)).until(() -> begun.size() == 2);
  }

  @Test
  void aDeadLetterThatIsPutBackBeforeTheAnswerToItsMoveIsHandled() {
    AtomicInteger moves = new AtomicInteger();
    DeadLetters real = DeadLetterQueue.in("outbox_dlq");
    engine.start(
        subscriber("s")
            .deadLetters(store -> puttingBack(real.bind(store), moves))
            .on(
                "t",
                String.class,
                (String text, Delivery delivery) -> {
                  note(begun, text);
                  return begun.size() > 1 ? Outcome.ack() : Outcome.reject("of a test");
                }));
    owns("s", 64);
    publish("k", message().orderingKey("k"));

    await().atMost(SOON).until(() -> moves.get() >= 2);
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(begun).containsExactly("k", "k");
    assertThat(engine.deadLetters(queue)).as("the one that was put back").isEqualTo(1);
  }

  /** The first move takes effect, and its answer is lost. */
  private DeadLetterWriter puttingBack(DeadLetterWriter writer, AtomicInteger moves) {
    return (DeadLetterWriter)
        Proxy.newProxyInstance(
            getClass().getClassLoader(),
            new Class<?>[] {DeadLetterWriter.class},
            (proxy, method, args) -> {
              try {
                Object result = method.invoke(writer, args);
                if (method.getName().equals("write") && moves.incrementAndGet() == 1) {
                  putBack();
                  throw new OutboxStoreException(
                      "the answer was lost", OutboxStoreException.Fault.TRANSIENT, true, null);
                }
                return result;
              } catch (InvocationTargetException thrown) {
                throw thrown.getCause();
              }
            });
  }

  @Test
  void theBucketsOfOneThatStopsThoughItCouldNotSayThatItSleepsNoMore() {
    OutboxSubscriber first =
        engine.start(
            noting(subscriber("first"))
                .store(
                    WatchedBuckets.of(
                        engine.pool,
                        database.table(),
                        (method, argument, call) -> {
                          if (method.equals("forget")) {
                            throw new OutboxStoreException(
                                "of a test", OutboxStoreException.Fault.TRANSIENT, false, null);
                          }
                          return call.call();
                        })));
    engine.start(noting(subscriber("second")));
    owns("first", 32);
    owns("second", 32);
    idle(first);
    first.stop();

    await().atMost(LEASE.plusSeconds(2)).untilAsserted(() -> owns("second", 64));
  }

  @Test
  void anEarlierMessageOfAKeyThatRunsSinceBeforeAGapOfTheLeaseAfterIt() {
    AtomicBoolean failing = new AtomicBoolean();
    CountDownLatch end = new CountDownLatch(1);
    engine.start(
        subscriber("s")
            .poll(Duration.ofMillis(10), Duration.ofSeconds(1))
            .store(
                WatchedBuckets.of(
                    engine.pool,
                    database.table(),
                    (method, argument, call) -> {
                      if (method.equals("join") && failing.get()) {
                        throw new OutboxStoreException(
                            "of a test", OutboxStoreException.Fault.TRANSIENT, false, null);
                      }
                      return call.call();
                    }))
            .on(
                "t",
                String.class,
                (String text, Delivery delivery) -> {
                  note(begun, text);
                  if (text.equals("later")) {
                    end.await();
                    note(begun, "later ends");
                  }
                }));
    owns("s", 64);
    publish("earlier", message().orderingKey("k").deliverIn(Duration.ofSeconds(3)));
    publish("later", message().orderingKey("k"));
    await().until(() -> begun.contains("later"));
    failing.set(true);
    await()
        .atMost(SOON)
        .until(
            () ->
                database.one(
                    Boolean.class,
                    "select bool_and(lease_until < now() - interval '2 seconds')"
                        + " from outbox_bucket_owners where queue = ?",
                    queue));
    failing.set(false);
    await()
        .during(Duration.ofSeconds(2))
        .atMost(SOON)
        .untilAsserted(() -> assertThat(begun).containsExactly("later"));
    end.countDown();

    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(begun).containsExactly("later", "later ends", "earlier");
  }
}
