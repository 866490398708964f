package dev.outbox4j.dlq.engine;

import static java.util.stream.Collectors.joining;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Batch;
import dev.outbox4j.BatchMessage;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.migrations.PauseMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.QueuePauses;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** While a queue is paused, none of its messages begins, whoever subscribes to it. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class PausedQueuesIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();
  private static final Duration SOON = Duration.ofSeconds(60);

  /** A notification comes at once; this is less than the time between two looks. */
  private static final Duration AT_ONCE = Duration.ofMillis(400);

  private final TestDatabase database;
  private final AtomicLong begun = new AtomicLong();
  private final AtomicLong lastBegunAt = new AtomicLong();
  private final Map<String, List<Integer>> order = new ConcurrentHashMap<>();
  private final CountDownLatch never = new CountDownLatch(1);
  private volatile long millisOfEach;
  private EngineFixture engine;
  private QueuePauses pauses;
  private String queue;

  PausedQueuesIT(TestDatabase database) {
    this.database = database;
  }

  /** How messages are delivered. */
  enum Kind {
    ROW_BY_ROW,
    BATCHES,
    ORDERED
  }

  @BeforeEach
  void setUp() {
    database.migrate(PauseMigrations.of("public", "outbox"), PauseMigrations::migrate);
    engine = new EngineFixture(database, 16);
    pauses = PostgresOutbox.on(engine.pool, database.table()).pauses();
    queue = "paused-" + QUEUES.incrementAndGet();
    OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
  }

  @AfterEach
  void tearDown() {
    pauses.resume(queue, "a test");
    engine.close();
    database.update("delete from outbox where queue = ?", queue);
  }

  private OutboxSubscriber.Builder subscriber(String name, Kind kind) {
    OutboxSubscriber.Builder builder =
        engine
            .subscriber(queue)
            .name(name)
            .workers(4)
            .lease(Duration.ofSeconds(5))
            .pausable()
            .listen(PgjdbcListen.on(database.plain()));
    return switch (kind) {
      case ROW_BY_ROW ->
          builder.on(
              "t",
              String.class,
              (text, delivery) -> {
                begin(delivery.orderingKey().orElseThrow(), text);
              });
      case ORDERED ->
          builder
              .ordered()
              .on(
                  "t",
                  String.class,
                  (text, delivery) -> {
                    begin(delivery.orderingKey().orElseThrow(), text);
                  });
      case BATCHES ->
          builder.onBatch(
              "t",
              String.class,
              Batch.of(10).linger(Duration.ofMillis(20)),
              batch -> {
                for (BatchMessage<String> each : batch) {
                  begin("", each.body());
                }
              });
    };
  }

  private void begin(String key, String text) throws InterruptedException {
    lastBegunAt.set(System.nanoTime());
    order.computeIfAbsent(key, each -> new CopyOnWriteArrayList<>()).add(Integer.valueOf(text));
    begun.incrementAndGet();
    if (millisOfEach > 0 && never.await(millisOfEach, TimeUnit.MILLISECONDS)) {
      throw new IllegalStateException("never");
    }
  }

  /** Without a transaction of the library's own for each: there are many. */
  private void publishMany(int count) {
    database.update(
        """
        insert into outbox (queue, type, ordering_key, payload)
        select ?, 't', (n % 50)::text, convert_to(n::text, 'UTF8') from generate_series(1, ?) n""",
        queue, count);
  }

  private void allSay(List<OutboxSubscriber> subscribers, Set<String> paused) {
    await()
        .atMost(SOON)
        .until(
            () ->
                subscribers.stream()
                    .allMatch(each -> each.health().pausedQueues().orElseThrow().equals(paused)));
  }

  private void nothingBegins() {
    long before = begun.get();
    await()
        .during(Duration.ofMillis(1_500))
        .atMost(Duration.ofSeconds(4))
        .until(() -> begun.get() == before);
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void withinASecondNothingBeginsInAnyProcessAndWhatWaitsGoesOnWhenItIsResumed(Kind kind) {
    int count = 20_000;
    millisOfEach = 1; // eight workers need more than two seconds for all of them
    publishMany(count);
    List<OutboxSubscriber> two =
        List.of(engine.start(subscriber("one", kind)), engine.start(subscriber("two", kind)));
    await().atMost(SOON).until(() -> begun.get() > 2_000);

    assertThat(pauses.pause(queue, "ada", "the receiver is down")).isTrue();
    long askedAt = System.nanoTime();
    allSay(two, Set.of(queue));
    assertThat(Duration.ofNanos(System.nanoTime() - askedAt)).isLessThan(Duration.ofSeconds(1));
    await().atMost(SOON).until(() -> two.stream().allMatch(each -> each.health().inFlight() == 0));
    assertThat(begun.get()).as("it was paused in the middle").isLessThan(count);
    nothingBegins();
    assertThat(Duration.ofNanos(lastBegunAt.get() - askedAt)).isLessThan(Duration.ofSeconds(1));
    assertThat(two).allMatch(each -> each.health().healthy());
    assertThat(engine.rows(queue)).isEqualTo(count - begun.get());
    assertThat(
            database.one(
                Long.class,
                "select count(*) from outbox where queue = ? and lease_until > now()",
                queue))
        .as("rows that are kept from others")
        .isZero();

    assertThat(pauses.resume(queue, "ada")).isTrue();
    await().atMost(Duration.ofMinutes(1)).until(() -> engine.rows(queue) == 0);
    assertThat(begun.get()).isEqualTo(count);
    if (kind == Kind.ORDERED) {
      order.forEach((key, numbers) -> assertThat(numbers).as(key).isSorted());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"return null", "raise exception 'not now'"})
  void withinASecondNothingBeginsThoughClaimsAreSlowOrFail(String end) {
    CountDownLatch never = new CountDownLatch(1);
    OutboxSubscriber subscriber =
        engine.start(
            engine
                .subscriber(queue)
                .workers(1)
                .pausable()
                .on(
                    "t",
                    String.class,
                    (text, delivery) -> {
                      lastBegunAt.set(System.nanoTime());
                      begun.incrementAndGet();
                      return never.await(30, TimeUnit.MILLISECONDS)
                          ? Outcome.reject("never")
                          : Outcome.ack();
                    }));
    publishMany(2_000);
    await().atMost(SOON).until(() -> begun.get() > 10);
    database.update(
        "create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(2); "
            + end
            + "; end $$");
    database.update(
        "create trigger slow before update on outbox for each statement execute function slow()");
    try {
      await()
          .atMost(SOON)
          .pollInterval(Duration.ofMillis(50))
          .until(
              () ->
                  database.one(
                      Boolean.class,
                      """
                      select exists (select from pg_stat_activity
                        where wait_event = 'PgSleep'
                          and clock_timestamp() - query_start < interval '0.3 s')"""));
      long askedAt = System.nanoTime();
      pauses.pause(queue, "ada", "the receiver is down");
      allSay(List.of(subscriber), Set.of(queue));
      assertThat(Duration.ofNanos(System.nanoTime() - askedAt)).isLessThan(Duration.ofSeconds(1));
      nothingBegins();
      assertThat(Duration.ofNanos(lastBegunAt.get() - askedAt)).isLessThan(Duration.ofSeconds(1));
    } finally {
      database.update("drop trigger slow on outbox");
      database.update("drop function slow");
    }
    pauses.resume(queue, "ada");
    long before = begun.get();
    await().atMost(SOON).until(() -> begun.get() > before);
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void outlivesEveryProcess(Kind kind) {
    outlivesEveryProcess(kind, 200_000);
  }

  @Test
  @Tag("large")
  void outlivesEveryProcessWhileAMillionMessagesWait() {
    outlivesEveryProcess(Kind.ROW_BY_ROW, 1_000_000);
  }

  @Test
  @Tag("large")
  void aHandlerThatRunsThroughAPauseIsAckedOnceWhileAMillionMessagesWait() {
    CountDownLatch mayEnd = new CountDownLatch(1);
    OutboxSubscriber subscriber =
        engine.start(
            subscriber("s", Kind.ROW_BY_ROW)
                .workers(1)
                .on(
                    "u",
                    String.class,
                    (text, delivery) -> {
                      begun.incrementAndGet();
                      mayEnd.await();
                    }));
    long held = engine.publish(queue, "u", "held");
    await().atMost(SOON).until(() -> begun.get() == 1);
    publishMany(1_000_000);
    Instant before = engine.column(OffsetDateTime.class, "lease_until", held).toInstant();

    pauses.pause(queue, "ada", "maintenance");
    allSay(List.of(subscriber), Set.of(queue));
    await()
        .atMost(SOON)
        .until(
            () ->
                engine
                    .column(OffsetDateTime.class, "lease_until", held)
                    .toInstant()
                    .isAfter(before.plusSeconds(5))); // longer than its lease
    nothingBegins();
    mayEnd.countDown();
    await().atMost(SOON).until(() -> engine.rows(queue) == 1_000_000);
    nothingBegins();
    assertThat(begun).hasValue(1);
    assertThat(engine.events.acked).hasValue(1);

    pauses.resume(queue, "grace");
    await().atMost(SOON).until(() -> begun.get() > 1_000);
    subscriber.stop();
    database.update("truncate outbox");
  }

  private void outlivesEveryProcess(Kind kind, int messages) {
    publishMany(messages);
    List<OutboxSubscriber> before =
        List.of(engine.start(subscriber("one", kind)), engine.start(subscriber("two", kind)));
    await().atMost(SOON).until(() -> begun.get() > 1_000);
    long askedAt = System.nanoTime();
    pauses.pause(queue, "ada", "maintenance");
    allSay(before, Set.of(queue));
    before.forEach(OutboxSubscriber::stop);
    assertThat(Duration.ofNanos(lastBegunAt.get() - askedAt)).isLessThan(Duration.ofSeconds(1));

    long begunBefore = begun.get();
    assertThat(begunBefore).as("it was paused in the middle").isLessThan(messages);
    List<OutboxSubscriber> after =
        List.of(engine.start(subscriber("three", kind)), engine.start(subscriber("four", kind)));
    allSay(after, Set.of(queue));
    nothingBegins();
    assertThat(begun.get()).isEqualTo(begunBefore);

    long resumedAt = System.nanoTime();
    pauses.resume(queue, "grace");
    await().atMost(SOON).until(() -> begun.get() > begunBefore);
    assertThat(Duration.ofNanos(System.nanoTime() - resumedAt)).isLessThan(Duration.ofSeconds(1));
    after.forEach(OutboxSubscriber::stop);
    database.update("truncate outbox");
  }

  @Test
  void theEndIsNoticedAtOnceByThoseWhoListen() {
    OutboxSubscriber subscriber =
        engine.start(
            subscriber("s", Kind.ROW_BY_ROW).poll(Duration.ofSeconds(5), Duration.ofSeconds(10)));
    for (int i = 1; i <= 5; i++) {
      pauses.pause(queue, "ada", "a try");
      allSay(List.of(subscriber), Set.of(queue));
      publishMany(1);
      long all = i;
      long resumedAt = System.nanoTime();
      pauses.resume(queue, "ada");
      await().pollInterval(Duration.ofMillis(2)).atMost(SOON).until(() -> begun.get() == all);
      if (Duration.ofNanos(System.nanoTime() - resumedAt).compareTo(AT_ONCE) < 0) {
        return; // by a look it takes half a second, less if one was about to come
      }
    }
    throw new AssertionError("five times it took as long as a look takes");
  }

  private OutboxSubscriber.Builder waiting(CountDownLatch mayEnd, List<String> done) {
    return engine
        .subscriber(queue)
        .workers(4)
        .pausable()
        .on(
            "u",
            String.class,
            (text, delivery) -> {
              begun.incrementAndGet();
              mayEnd.await();
              done.add(text);
            });
  }

  private void publishOfOneKey(String... texts) {
    engine.inTransaction(
        Stream.of(texts)
            .map(text -> OutboxMessage.to(queue).type("u").orderingKey("k").body(text).build())
            .toList());
  }

  @ParameterizedTest
  @EnumSource(
      value = Kind.class,
      names = {"ROW_BY_ROW", "ORDERED"})
  void handlersThatRunEndAndTheNextOfTheirKeyWaits(Kind kind) {
    CountDownLatch mayEnd = new CountDownLatch(1);
    List<String> done = new CopyOnWriteArrayList<>();
    OutboxSubscriber.Builder builder = waiting(mayEnd, done);
    OutboxSubscriber subscriber =
        engine.start(kind == Kind.ORDERED ? builder.ordered() : builder.workers(1));
    publishOfOneKey("1", "2", "3");
    await().atMost(SOON).until(() -> begun.get() == 1);
    pauses.pause(queue, "ada", "a try");
    allSay(List.of(subscriber), Set.of(queue));

    mayEnd.countDown();
    await().atMost(SOON).until(() -> engine.rows(queue) == 2);
    nothingBegins();
    assertThat(done).containsExactly("1");

    pauses.resume(queue, "ada");
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(done).containsExactlyInAnyOrder("1", "2", "3");
    if (kind == Kind.ORDERED) {
      assertThat(done).isSorted();
    }
  }

  /** The wait for a connection can be long, such as for a pool that is busy. */
  @ParameterizedTest
  @EnumSource(
      value = Kind.class,
      names = {"ROW_BY_ROW", "ORDERED"})
  void aTransactionalHandlerThatWaitsForItsConnectionDoesNotBeginInAPause(Kind kind)
      throws Exception {
    CountDownLatch asked = new CountDownLatch(1);
    CountDownLatch answer = new CountDownLatch(1);
    List<String> done = new CopyOnWriteArrayList<>();
    OutboxSubscriber.Builder builder =
        engine
            .subscriber(queue)
            .workers(4)
            .pausable()
            .listen(PgjdbcListen.on(database.plain()))
            .on(
                "u",
                String.class,
                slow(asked, answer)
                    .transactional(
                        (text, delivery, connection) -> {
                          begun.incrementAndGet();
                          done.add(text);
                        }));
    OutboxSubscriber subscriber =
        engine.start(kind == Kind.ORDERED ? builder.ordered() : builder.workers(1));
    publishOfOneKey("1", "2", "3");
    asked.await();
    pauses.pause(queue, "ada", "a try");
    allSay(List.of(subscriber), Set.of(queue));

    answer.countDown();
    await().atMost(SOON).until(() -> begun.get() > 0 || subscriber.health().inFlight() == 0);
    nothingBegins();
    assertThat(done).isEmpty();

    pauses.resume(queue, "ada");
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(done).containsExactlyInAnyOrder("1", "2", "3");
    if (kind == Kind.ORDERED) {
      assertThat(done).isSorted();
    }
  }

  /** The outbox, with connections that are not had before a latch says so. */
  private PostgresOutbox slow(CountDownLatch asked, CountDownLatch answer) {
    DataSource source =
        (DataSource)
            Proxy.newProxyInstance(
                getClass().getClassLoader(),
                new Class<?>[] {DataSource.class},
                (proxy, method, args) -> {
                  if (!method.getName().equals("getConnection")) {
                    return method.invoke(engine.pool, args);
                  }
                  asked.countDown();
                  answer.await();
                  return engine.pool.getConnection();
                });
    return PostgresOutbox.on(source, database.table());
  }

  @Test
  void aHandlerThatRunsThroughAPauseIsNotOvertakenAfterIt() throws Exception {
    CountDownLatch mayEnd = new CountDownLatch(1);
    List<String> done = new CopyOnWriteArrayList<>();
    OutboxSubscriber subscriber = engine.start(waiting(mayEnd, done).ordered());
    publishOfOneKey("1", "2");
    await().atMost(SOON).until(() -> begun.get() == 1);

    pauses.pause(queue, "ada", "a try");
    allSay(List.of(subscriber), Set.of(queue));
    pauses.resume(queue, "ada");
    allSay(List.of(subscriber), Set.of());
    nothingBegins();

    mayEnd.countDown();
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(done).containsExactly("1", "2");
  }

  @Test
  void otherQueuesOfTheSubscriberGoOn() {
    String other = queue + "-other";
    List<String> done = new CopyOnWriteArrayList<>();
    OutboxSubscriber subscriber =
        engine.start(
            OutboxSubscriber.builder(queue)
                .queues(other)
                .store(PostgresOutbox.on(engine.pool, database.table()).store())
                .deleteTerminalFailures()
                .poll(Duration.ofMillis(5), Duration.ofMillis(50))
                .pausable()
                .otherwise(
                    (payload, delivery) -> {
                      done.add(delivery.queue());
                    }));
    pauses.pause(queue, "ada", "a try");
    allSay(List.of(subscriber), Set.of(queue));
    for (int i = 0; i < 20; i++) {
      engine.publish(queue, "t", "waits");
      engine.publish(other, "t", "goes");
    }
    await().atMost(SOON).until(() -> engine.rows(other) == 0);
    nothingBegins();
    assertThat(done).hasSize(20).containsOnly(other);
    pauses.resume(queue, "ada");
    await().atMost(SOON).until(() -> done.size() == 40);
  }

  private OutboxSubscriber.Builder gathering(List<String> batches) {
    return engine
        .subscriber(queue)
        .pausable()
        .onBatch(
            "t",
            String.class,
            Batch.of(3).linger(Duration.ofMinutes(1)),
            batch -> {
              batches.add(batch.stream().map(BatchMessage::body).sorted().collect(joining(" ")));
            });
  }

  private void publishOfItsOwnKey(String queue, String text) {
    engine.inTransaction(
        List.of(OutboxMessage.to(queue).type("t").orderingKey(text).body(text).build()));
  }

  private long kept() {
    return database.one(
        Long.class,
        "select count(*) from outbox where queue = ? and (lease_until > now() or deliveries_count > 0)",
        queue);
  }

  @ParameterizedTest
  @EnumSource(
      value = Kind.class,
      names = {"BATCHES", "ORDERED"})
  void whatWaitsForMoreOfItsBatchIsGivenBackAndWaitsAgainWhenItIsResumed(Kind kind) {
    List<String> batches = new CopyOnWriteArrayList<>();
    OutboxSubscriber.Builder builder = gathering(batches);
    OutboxSubscriber subscriber = engine.start(kind == Kind.ORDERED ? builder.ordered() : builder);
    publishOfItsOwnKey(queue, "1");
    publishOfItsOwnKey(queue, "2");
    await().atMost(SOON).until(() -> subscriber.health().inFlight() == 2);
    pauses.pause(queue, "ada", "a try");
    allSay(List.of(subscriber), Set.of(queue));

    await().atMost(SOON).until(() -> subscriber.health().inFlight() == 0);
    assertThat(kept()).as("rows that are kept from others, or count as delivered").isZero();
    publishOfItsOwnKey(queue, "3");
    pauses.resume(queue, "ada");
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(batches).containsExactly("1 2 3");
  }

  @Test
  void whatWaitsForMoreOfItsBatchOfAnotherQueueWaitsOn() {
    String other = queue + "-other";
    List<String> batches = new CopyOnWriteArrayList<>();
    OutboxSubscriber subscriber = engine.start(gathering(batches).queues(other));
    publishOfItsOwnKey(queue, "waits");
    publishOfItsOwnKey(other, "1");
    await().atMost(SOON).until(() -> subscriber.health().inFlight() == 2);
    pauses.pause(queue, "ada", "a try");
    await().atMost(SOON).until(() -> subscriber.health().inFlight() == 1);
    assertThat(kept()).isZero();

    publishOfItsOwnKey(other, "2");
    publishOfItsOwnKey(other, "3");
    await().atMost(SOON).until(() -> engine.rows(other) == 0);
    assertThat(batches).containsExactly("1 2 3");
  }

  @Test
  void anIdleSubscriberLooksForPausesAndClaimsNoMoreThanOthers() {
    OutboxSubscriber subscriber =
        engine.start(
            subscriber("s", Kind.ROW_BY_ROW).poll(Duration.ofSeconds(5), Duration.ofSeconds(10)));
    await()
        .atMost(SOON)
        .until(() -> EngineFixture.sleepsFor(subscriber, Duration.ofSeconds(2))); // four looks
    pauses.pause(queue, "ada", "a try");
    allSay(List.of(subscriber), Set.of(queue));
  }

  @Test
  void aPausedSubscriberIsNotCountedOnByPublishers() {
    OutboxSubscriber subscriber =
        engine.start(
            subscriber("s", Kind.ROW_BY_ROW).poll(Duration.ofMillis(100), Duration.ofSeconds(10)));
    String asleep =
        "select count(*) from outbox_sleepers where queue = ? and subscriber like 's/%' and wake_at > now()";
    await().atMost(SOON).until(() -> database.one(Long.class, asleep, queue) == 1);
    pauses.pause(queue, "ada", "a try");
    allSay(List.of(subscriber), Set.of(queue));
    await().atMost(SOON).until(() -> database.one(Long.class, asleep, queue) == 0);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void whatWasKnownHoldsWhilePausesCannotBeRead(boolean pausedBefore) {
    OutboxSubscriber subscriber = engine.start(subscriber("s", Kind.ROW_BY_ROW));
    allSay(List.of(subscriber), Set.of());
    if (pausedBefore) {
      pauses.pause(queue, "ada", "a try");
      allSay(List.of(subscriber), Set.of(queue));
    }
    database.update("alter table outbox_pauses rename to outbox_pauses_away");
    try {
      await().atMost(SOON).until(() -> subscriber.health().failing());
      publishMany(1);
      if (pausedBefore) {
        nothingBegins();
        assertThat(begun.get()).isZero();
      } else {
        await().atMost(SOON).until(() -> begun.get() == 1);
      }
      assertThat(subscriber.health().failing()).isTrue();
    } finally {
      database.update("alter table outbox_pauses_away rename to outbox_pauses");
    }
    pauses.resume(queue, "ada");
    await().atMost(SOON).until(() -> begun.get() == 1 && subscriber.health().healthy());
  }

  @Test
  void aQueueThatNobodyReadsIsPausedAndNobodySaysThatItHeedsIt() {
    OutboxSubscriber subscriber = engine.start(subscriber("a", Kind.ROW_BY_ROW));
    String misspelt = queue + "s";
    assertThat(pauses.pause(misspelt, "ada", "a misspelt name")).isTrue();
    pauses.pause(queue, "ada", "the right name");

    allSay(List.of(subscriber), Set.of(queue));
    pauses.resume(misspelt, "ada");
  }

  @Test
  void aSubscriberThatIsNotPausableGoesOn() {
    pauses.pause(queue, "ada", "a try");
    engine.start(
        engine
            .subscriber(queue)
            .on(
                "t",
                (payload, delivery) -> {
                  begun.incrementAndGet();
                }));
    publishMany(1);
    await().atMost(SOON).until(() -> begun.get() == 1);
  }

  @Test
  void withoutItsTableNothingBeginsAndHealthSaysWhatToDo() {
    database.update("alter table outbox_pauses rename to outbox_pauses_away");
    try {
      OutboxSubscriber subscriber = engine.start(subscriber("s", Kind.ROW_BY_ROW));
      publishMany(1);
      await().atMost(SOON).until(() -> !subscriber.health().healthy());
      nothingBegins();
      assertThat(begun.get()).isZero();
      assertThat(subscriber.health().lastFailure().orElseThrow())
          .contains("outbox_pauses", "migrations");
      database.update("alter table outbox_pauses_away rename to outbox_pauses");
      await().atMost(SOON).until(() -> begun.get() == 1);
      await().atMost(SOON).until(() -> subscriber.health().healthy());
    } finally {
      database.update("alter table if exists outbox_pauses_away rename to outbox_pauses");
    }
  }
}
