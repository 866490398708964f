package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Batch;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.SubscriberHealth.Order;
import dev.outbox4j.SubscriberState;
import dev.outbox4j.TypedHandler;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TcpProxy;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/** Messages of a key are handled one at a time and in their order, whoever comes and goes. */
@ExtendWith(PostgresExtension.class)
class OrderedIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();
  private static final Duration LEASE = Duration.ofSeconds(2);

  private final TestDatabase database;
  private final Map<String, List<Integer>> handled = new ConcurrentHashMap<>();
  private final Set<String> running = ConcurrentHashMap.newKeySet();
  private final AtomicBoolean overlapped = new AtomicBoolean();
  private EngineFixture engine;
  private String queue;

  OrderedIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 12);
    queue = "ordered-" + QUEUES.incrementAndGet();
    OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
  }

  @AfterEach
  void tearDown() {
    engine.close();
  }

  private OutboxSubscriber.Builder subscriber(String name) {
    return engine.subscriber(queue).name(name).ordered().lease(LEASE).workers(4);
  }

  private static OutboxMessage message(String queue, String key, int number) {
    return OutboxMessage.to(queue).type("t").orderingKey(key).body(String.valueOf(number)).build();
  }

  private List<Long> publish(String key, int from, int to) {
    return engine.inTransaction(
        IntStream.range(from, to).mapToObj(number -> message(queue, key, number)).toList());
  }

  private void handle(String text, Delivery delivery) {
    note(text, delivery, () -> {});
  }

  /** Notes a message, and whether one of its key runs already. */
  private void note(String text, Delivery delivery, Runnable meanwhile) {
    String key = delivery.orderingKey().orElse("none");
    boolean alone = running.add(key);
    if (!alone && delivery.orderingKey().isPresent()) {
      overlapped.set(true);
    }
    meanwhile.run();
    handled.computeIfAbsent(key, each -> new CopyOnWriteArrayList<>()).add(Integer.valueOf(text));
    running.remove(key);
  }

  private static List<Integer> numbers(int count) {
    return IntStream.range(0, count).boxed().toList();
  }

  private int bucketsOf(String owner) {
    return database
        .one(
            Long.class,
            "select count(*) from outbox_buckets where queue = ? and owner like ?",
            queue,
            owner + "%")
        .intValue();
  }

  /** No other process could have it: its buckets are this one's. */
  @Test
  void whatIsLeftComesAgainBeforeWhatIsBehindItAndCountsNothing() {
    List<String> seen = new CopyOnWriteArrayList<>();
    engine.inTransaction(List.of(message(queue, "k", 1), message(queue, "k", 2)));
    engine.start(
        subscriber("only")
            .on(
                "t",
                String.class,
                (text, delivery) -> {
                  seen.add(text + " " + delivery.attempt() + " " + delivery.deliveries());
                  return text.equals("1") && seen.size() < 4
                      ? Outcome.leave(Duration.ofMillis(1))
                      : Outcome.ack();
                }));
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(2));
    assertThat(seen).containsExactly("1 1 1", "1 1 1", "1 1 1", "1 1 1", "2 1 1");
    assertThat(engine.events.rescheduled).hasSize(3);
    assertThat(engine.rows(queue)).isZero();
  }

  @Test
  void whatIsLeftForLongHoldsUpItsKeyForSoLongAndNoOther() {
    List<String> seen = new CopyOnWriteArrayList<>();
    engine.inTransaction(List.of(message(queue, "left", 1), message(queue, "left", 2)));
    engine.start(
        subscriber("only")
            .on(
                "t",
                String.class,
                (text, delivery) -> {
                  if (delivery.orderingKey().orElseThrow().equals("left")) {
                    seen.add(text);
                    return Outcome.leave(Duration.ofHours(1));
                  }
                  return Outcome.ack();
                }));
    await().untilAsserted(() -> assertThat(engine.events.rescheduled).hasSize(1));
    for (int i = 0; i < 50; i++) {
      engine.inTransaction(List.of(message(queue, "other", i)));
    }
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(50));
    assertThat(seen).containsExactly("1");
    assertThat(engine.rows(queue)).isEqualTo(2);
  }

  @Test
  void messagesOfAKeyAreHandledOneAtATimeInTheOrderOfTheirPublishing() {
    for (int i = 0; i < 3; i++) {
      engine.start(subscriber("s" + i).on("t", String.class, this::handle));
    }
    int each = 200;
    for (int from = 0; from < each; from += 10) {
      List<OutboxMessage> messages = new ArrayList<>();
      for (int number = from; number < from + 10; number++) {
        for (int key = 0; key < 20; key++) {
          messages.add(message(queue, "k" + key, number));
        }
        messages.add(OutboxMessage.to(queue).type("t").body(String.valueOf(number)).build());
      }
      engine.inTransaction(messages);
    }
    await().until(() -> engine.rows(queue) == 0);
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(21 * each));
    for (int key = 0; key < 20; key++) {
      assertThat(handled.get("k" + key)).isEqualTo(numbers(each));
    }
    assertThat(handled.get("none")).containsExactlyInAnyOrderElementsOf(numbers(each));
    assertThat(overlapped).isFalse();
    assertThat(engine.events.leaseLost).isEmpty();
  }

  /** Handlers of four keys take as long as forty messages after them, while buckets move. */
  @Test
  void noOtherMessageOfAKeyBeginsWhileOneIsHandledThoughWorkersAreFree() {
    List<String> held = List.of("held0", "held1", "held2", "held3");
    List<String> free =
        database.list(
            String.class,
            """
            select 'free' || n from generate_series(1, 1000) n
            where hashtextextended('free' || n, 0) & 63 not in (
              select hashtextextended('held' || h, 0) & 63 from generate_series(0, 3) h)
            order by n limit 10""");
    AtomicInteger next = new AtomicInteger();
    Set<Integer> others = ConcurrentHashMap.newKeySet();
    Runnable outlastForty =
        () -> {
          List<Integer> forty =
              IntStream.range(0, 40).mapToObj(each -> next.getAndIncrement()).toList();
          engine.inTransaction(
              forty.stream().map(n -> message(queue, free.get(n % 10), n)).toList());
          await().atMost(Duration.ofSeconds(30)).until(() -> others.containsAll(forty));
        };
    TypedHandler<String> handler =
        (text, delivery) -> {
          if (!held.contains(delivery.orderingKey().orElseThrow())) {
            others.add(Integer.valueOf(text));
            return;
          }
          note(
              text,
              delivery,
              () -> {
                outlastForty.run();
                if (text.equals("2")) { // buckets with no handler go to the other one meanwhile
                  await().atMost(Duration.ofSeconds(30)).until(() -> bucketsOf("second") >= 28);
                  outlastForty.run();
                }
              });
        };
    engine.start(subscriber("first").workers(8).on("t", String.class, handler));
    await().until(() -> bucketsOf("first") == 64);
    engine.inTransaction(
        IntStream.range(0, 5)
            .boxed()
            .flatMap(number -> held.stream().map(key -> message(queue, key, number)))
            .toList());
    await()
        .atMost(Duration.ofSeconds(30))
        .until(() -> overlapped.get() || handled.keySet().containsAll(held));
    assertThat(overlapped).isFalse();
    engine.start(subscriber("second").workers(8).on("t", String.class, handler));
    await().atMost(Duration.ofMinutes(1)).until(() -> engine.rows(queue) == 0);
    assertThat(overlapped).isFalse();
    for (String key : held) {
      assertThat(handled.get(key)).isEqualTo(numbers(5));
    }
    await().until(() -> bucketsOf("second") == 32);
  }

  @Test
  void aMessageThatFailsHoldsUpItsKeyAndNothingElse() {
    CountDownLatch others = new CountDownLatch(50);
    AtomicInteger failures = new AtomicInteger();
    engine.start(
        subscriber("s")
            .retry(RetryPolicy.constant(Duration.ofMillis(100)).attempts(3))
            .on(
                "t",
                String.class,
                (text, delivery) -> {
                  if (delivery.orderingKey().equals(Optional.of("bad"))
                      && text.equals("3")
                      && delivery.attempt() < 3) {
                    failures.incrementAndGet();
                    assertThat(others.await(10, TimeUnit.SECONDS)).isTrue();
                    throw new IllegalStateException("not yet");
                  }
                  handle(text, delivery);
                  if (delivery.orderingKey().equals(Optional.of("good"))) {
                    others.countDown();
                  }
                }));
    publish("bad", 0, 30);
    publish("good", 0, 50);
    await().until(() -> engine.rows(queue) == 0);
    assertThat(failures).hasValue(2);
    assertThat(handled.get("bad")).isEqualTo(numbers(30));
    assertThat(handled.get("good")).isEqualTo(numbers(50));
  }

  @Test
  void aRetriedMessageIsTheNextOfItsKeyWhenItIsDue() {
    AtomicBoolean rescheduled = new AtomicBoolean();
    OutboxSubscriber subscriber =
        engine.start(
            subscriber("s")
                .on(
                    "t",
                    String.class,
                    (text, delivery) -> {
                      if (text.equals("0") && delivery.attempt() == 1) {
                        return Outcome.retryAfter(Duration.ofSeconds(3));
                      }
                      if (text.equals("5") && rescheduled.compareAndSet(false, true)) {
                        return Outcome.reschedule(Duration.ofMillis(300));
                      }
                      handle(text, delivery);
                      return Outcome.ack();
                    }));
    publish("a", 0, 10);
    await().until(() -> subscriber.health().order().equals(Optional.of(new Order(64, 1, 0))));
    await().until(() -> engine.rows(queue) == 0);
    assertThat(handled.get("a")).isEqualTo(numbers(10));
    assertThat(subscriber.health().order()).contains(new Order(64, 0, 0));
  }

  @Test
  void aDeadLetterFreesItsKey() {
    engine.start(
        subscriber("s")
            .on(
                "t",
                String.class,
                (text, delivery) -> {
                  if (text.equals("2")) {
                    return Outcome.reject("bad");
                  }
                  handle(text, delivery);
                  return Outcome.ack();
                }));
    List<Long> ids = publish("a", 0, 5);
    await().until(() -> engine.rows(queue) == 0);
    assertThat(handled.get("a")).containsExactly(0, 1, 3, 4);
    assertThat(engine.deadLetter(String.class, "failure_reason", ids.get(2))).isEqualTo("rejected");
    assertThat(engine.deadLetter(Integer.class, "deliveries_count", ids.get(2))).isEqualTo(1);
  }

  /** Reads and messages are counted rather than time: the hot key alone has far more of both. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aKeyBehindManyOfAnotherBeginsAfterFewReads(boolean isStuck) throws Exception {
    CountDownLatch go = new CountDownLatch(1);
    String cold =
        database.one(
            String.class,
            """
            select 'cold' || n from generate_series(1, 10000) n
            where hashtextextended('cold' || n, 0) & 63 = hashtextextended('hot', 0) & 63 limit 1""");
    AtomicInteger readsBefore = new AtomicInteger();
    AtomicInteger hotBefore = new AtomicInteger();
    OutboxSubscriber subscriber =
        engine.start(
            subscriber("s")
                .on(
                    "t",
                    String.class,
                    (text, delivery) -> {
                      boolean isHot = delivery.orderingKey().orElseThrow().equals("hot");
                      if (!isHot) {
                        readsBefore.set(engine.events.claims.get());
                        hotBefore.set(handled.get("hot").size());
                      }
                      handle(text, delivery);
                      if (isHot && isStuck && text.equals("0")) {
                        go.await();
                      }
                    }));
    await().until(() -> bucketsOf("s") == 64);
    List<OutboxMessage> messages = new ArrayList<>();
    for (int number = 0; number < 100_000; number++) {
      messages.add(message(queue, "hot", number));
    }
    messages.add(message(queue, cold, 0));
    engine.inTransaction(messages);
    int before = engine.events.claims.get();
    await().atMost(Duration.ofSeconds(60)).until(() -> handled.containsKey(cold));
    assertThat(readsBefore.get() - before).as("reads").isLessThan(500);
    assertThat(hotBefore.get()).as("messages of the other key").isLessThan(isStuck ? 2 : 25_000);
    go.countDown();
    await().atMost(Duration.ofSeconds(60)).until(() -> handled.get("hot").size() > 20_000);
    subscriber.stop();
    assertThat(handled.get("hot")).isEqualTo(numbers(handled.get("hot").size()));
    database.update("truncate outbox");
  }

  @Test
  void whatIsCommittedLateIsHandled() throws Exception {
    engine.start(subscriber("s").on("t", String.class, this::handle));
    try (Connection late = database.plain().getConnection()) {
      late.setAutoCommit(false);
      engine.publisher.publish(
          late,
          List.of(message(queue, "late", 0), OutboxMessage.to(queue).type("t").body("0").build()));
      publish("a", 0, 500);
      await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(500));
      await().pollDelay(Duration.ofSeconds(3)).until(() -> true); // longer than any first look
      late.commit();
    }
    await().atMost(Duration.ofSeconds(5)).until(() -> engine.rows(queue) == 0);
    assertThat(handled.get("late")).containsExactly(0);
    assertThat(handled.get("none")).containsExactly(0);
  }

  @Test
  void delayedMessagesAreHandledWhenTheyAreDue() {
    Map<Integer, Long> at = new ConcurrentHashMap<>();
    engine.start(
        subscriber("s")
            .on(
                "t",
                String.class,
                (text, delivery) -> {
                  at.put(Integer.valueOf(text), System.nanoTime());
                }));
    long published = System.nanoTime();
    List<Integer> delays = List.of(0, 400, 900, 1_500, 3_500);
    List<OutboxMessage> messages = new ArrayList<>();
    for (int i = 0; i < delays.size(); i++) {
      messages.add(
          OutboxMessage.to(queue)
              .type("t")
              .orderingKey("k" + i % 2)
              .deliverIn(Duration.ofMillis(delays.get(i)))
              .body(String.valueOf(i))
              .build());
    }
    engine.inTransaction(messages);
    await().until(() -> at.size() == delays.size());
    for (int i = 0; i < delays.size(); i++) {
      long late = at.get(i) - published - Duration.ofMillis(delays.get(i)).toNanos();
      assertThat(Duration.ofNanos(late))
          .as("message %d", i)
          .isBetween(Duration.ZERO, Duration.ofSeconds(2));
    }
  }

  @Test
  void whoJoinsGetsAShareAndNothingIsHandledTwice() {
    OutboxSubscriber first = engine.start(subscriber("first").on("t", String.class, this::handle));
    await().until(() -> bucketsOf("first") == 64);
    AtomicBoolean publishing = new AtomicBoolean(true);
    List<Integer> sent = new CopyOnWriteArrayList<>();
    Thread publisher =
        new Thread(
            () -> {
              for (int number = 0; publishing.get() || number < 20; number++) {
                int of = number;
                engine.inTransaction(
                    IntStream.range(0, 10).mapToObj(key -> message(queue, "k" + key, of)).toList());
                sent.add(number);
              }
            });
    publisher.start();
    engine.start(subscriber("second").on("t", String.class, this::handle));
    await().until(() -> bucketsOf("first") == 32 && bucketsOf("second") == 32);
    first.stop();
    await().until(() -> bucketsOf("second") == 64);
    publishing.set(false);
    await()
        .atMost(Duration.ofMinutes(1))
        .until(() -> !publisher.isAlive() && engine.rows(queue) == 0);
    for (int key = 0; key < 10; key++) {
      assertThat(handled.get("k" + key)).isEqualTo(numbers(sent.size()));
    }
    assertThat(overlapped).isFalse();
  }

  @Test
  void theBucketsOfOneThatIsCutOffAreTakenWhenItsLeaseEnds() {
    CountDownLatch never = new CountDownLatch(1);
    try (TcpProxy network = new TcpProxy(database.server().host(), database.server().port())) {
      PGSimpleDataSource through = database.plain();
      through.setServerNames(new String[] {"localhost"});
      through.setPortNumbers(new int[] {network.port()});
      through.setSocketTimeout(1);
      HikariDataSource cut = new HikariDataSource();
      cut.setDataSource(through);
      cut.setMaximumPoolSize(4);
      cut.setConnectionTimeout(1_000);
      List<String> elsewhere = new CopyOnWriteArrayList<>();
      OutboxSubscriber first =
          engine.start(
              OutboxSubscriber.builder(queue)
                  .name("first")
                  .ordered()
                  .lease(LEASE)
                  .gracefulTimeout(Duration.ofMillis(100))
                  .store(PostgresOutbox.on(cut, database.table()).store(Duration.ofSeconds(1)))
                  .deadLetters(DeadLetterQueue.in("outbox_dlq"))
                  .on(
                      "t",
                      String.class,
                      (text, delivery) -> {
                        if (text.equals("3")) {
                          never.await();
                        }
                        handle(text, delivery);
                      }));
      publish("a", 0, 10);
      await().until(() -> handled.getOrDefault("a", List.of()).size() == 3);
      await().until(() -> engine.rows(queue) == 7);
      network.cut();
      long began = System.nanoTime();
      engine.start(
          subscriber("second")
              .on(
                  "t",
                  String.class,
                  (text, delivery) -> {
                    elsewhere.add(text + "/" + delivery.deliveries());
                  }));
      await().until(() -> !elsewhere.isEmpty());
      assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(LEASE.plusSeconds(2));
      await().until(() -> engine.rows(queue) == 0);
      assertThat(elsewhere).containsExactly("3/1", "4/1", "5/1", "6/1", "7/1", "8/1", "9/1");
      never.countDown();
      first.stop();
      cut.close();
    }
  }

  @Test
  void afterAnOwnerDiedDeliveriesAreCountedBeforeTheyBegin() {
    List<Long> ids = publish("a", 0, 3);
    database.update(
        "insert into outbox_bucket_owners values (?, 'dead', now() - interval '1 second', ?, 0)",
        queue,
        ids.get(1));
    database.update("update outbox_buckets set owner = 'dead', epoch = 7 where queue = ?", queue);
    database.update("update outbox set deliveries_count = 100 where id = ?", ids.get(0));
    List<Integer> counts = new CopyOnWriteArrayList<>();
    engine.start(
        subscriber("s")
            .on(
                "t",
                String.class,
                (text, delivery) -> {
                  counts.add(
                      database.one(
                          Integer.class,
                          "select deliveries_count from outbox where id = ?",
                          delivery.id()));
                  handle(text, delivery);
                }));
    await().until(() -> engine.rows(queue) == 0);
    assertThat(engine.deadLetter(String.class, "failure_reason", ids.get(0)))
        .isEqualTo("max_deliveries");
    assertThat(engine.deadLetter(Integer.class, "deliveries_count", ids.get(0))).isEqualTo(101);
    assertThat(handled.get("a")).containsExactly(1, 2);
    assertThat(counts).as("what a kill would leave behind").containsExactly(1, 0);
  }

  @Test
  void theAckOfAnOwnerThatLostItsBucketChangesNothing() {
    CountDownLatch go = new CountDownLatch(1);
    AtomicInteger runs = new AtomicInteger();
    engine.start(
        subscriber("s")
            .on(
                "t",
                String.class,
                (text, delivery) -> {
                  if (runs.incrementAndGet() == 1) {
                    go.await();
                  }
                }));
    publish("a", 0, 1);
    await().until(() -> runs.get() == 1);
    database.update(
        "insert into outbox_bucket_owners values (?, 'other', now() + interval '3 seconds', 0, 0)",
        queue);
    database.update(
        "update outbox_buckets set owner = 'other', epoch = epoch + 1 where queue = ?", queue);
    go.countDown();
    await().until(() -> !engine.events.leaseLost.isEmpty());
    assertThat(engine.rows(queue)).isEqualTo(1);
    await().until(() -> engine.rows(queue) == 0); // once the other is gone
    assertThat(runs).hasValue(2);
  }

  @Test
  void aHandlerMayRunInTheTransactionOfItsAck() {
    Effects effects = new Effects(database, queue);
    PostgresOutbox outbox = PostgresOutbox.on(engine.pool, database.table());
    engine.start(
        subscriber("s")
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      effects.write(connection, text);
                      if (text.equals("4") && delivery.attempt() == 1) {
                        throw new IllegalStateException("rolled back");
                      }
                    })));
    publish("a", 0, 20);
    await().until(() -> engine.rows(queue) == 0);
    assertThat(database.list(String.class, "select what from effect where queue = ?", queue))
        .as("in the order in which they were written")
        .containsExactlyElementsOf(numbers(20).stream().map(String::valueOf).toList());
  }

  @Test
  void aBatchHoldsOneMessageOfAKeyAtMost() {
    engine.start(
        subscriber("s")
            .onBatch(
                "t",
                String.class,
                Batch.of(50),
                messages -> {
                  assertThat(messages.stream().map(m -> m.delivery().orderingKey().get()))
                      .doesNotHaveDuplicates();
                  messages.forEach(m -> handle(m.body(), m.delivery()));
                }));
    List<OutboxMessage> messages = new ArrayList<>();
    for (int number = 0; number < 20; number++) {
      for (int key = 0; key < 30; key++) {
        messages.add(message(queue, "k" + key, number));
      }
    }
    engine.inTransaction(messages);
    await().until(() -> engine.rows(queue) == 0);
    for (int key = 0; key < 30; key++) {
      assertThat(handled.get("k" + key)).isEqualTo(numbers(20));
    }
    assertThat(engine.events.retried).isEmpty();
  }

  @Test
  void theSchemaIsValidWithOrderedQueues() {
    assertThat(
            PostgresOutbox.on(engine.pool, database.table())
                .validator()
                .deadLetters("outbox_dlq")
                .orderedQueues(queue)
                .checkStorage()
                .checkGrants()
                .validateSchema()
                .faults())
        .isEmpty();
  }

  @Test
  void aStopGivesTheBucketsUpAndLeavesTheRows() throws Exception {
    CountDownLatch begun = new CountDownLatch(1);
    OutboxSubscriber subscriber =
        engine.start(
            subscriber("s")
                .workers(1)
                .on(
                    "t",
                    String.class,
                    (text, delivery) -> {
                      begun.countDown();
                      await().until(() -> subscriberIsDraining());
                      handle(text, delivery);
                    }));
    draining = subscriber;
    publish("a", 0, 10);
    begun.await();
    subscriber.stop();
    assertThat(bucketsOf("s")).isZero();
    assertThat(
            database.count(
                "outbox_bucket_owners where lease_until > now() and queue = '" + queue + "'"))
        .isZero();
    assertThat(handled.get("a")).containsExactly(0);
    assertThat(engine.rows(queue)).isEqualTo(9);
    assertThat(
            database.list(
                Integer.class,
                "select distinct deliveries_count from outbox where queue = ?",
                queue))
        .containsExactly(0);
  }

  private volatile OutboxSubscriber draining;

  private boolean subscriberIsDraining() {
    OutboxSubscriber known = draining;
    return known != null && known.health().state() == SubscriberState.DRAINING;
  }

  @Test
  void aSleeperIsWokenByThePublisher() {
    OutboxSubscriber subscriber =
        engine.start(
            subscriber("s")
                .listen(PgjdbcListen.on(database.plain()))
                .poll(Duration.ofMillis(10), Duration.ofSeconds(50))
                .on("t", String.class, this::handle));
    publish("a", 0, 1);
    await().until(() -> handled.containsKey("a"));
    await()
        .atMost(Duration.ofSeconds(30))
        .until(() -> EngineFixture.sleepsFor(subscriber, Duration.ofSeconds(2)));
    long began = System.nanoTime();
    publish("b", 0, 1);
    await().until(() -> handled.containsKey("b"));
    assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofSeconds(2));
  }

  @Test
  void aQueueThatIsNotSetUpIsToldByHealth() {
    OutboxSubscriber subscriber =
        engine.start(
            engine
                .subscriber("not-set-up")
                .ordered()
                .lease(LEASE)
                .on("t", String.class, this::handle));
    await()
        .until(
            () ->
                subscriber
                    .health()
                    .lastFailure()
                    .filter(t -> t.contains("OrderedMigrations"))
                    .isPresent());
    assertThat(subscriber.health().failing()).isTrue();
  }

  @Test
  void anOrderedSubscriberWaitsForOneThatClaimsRowByRow() {
    OutboxSubscriber other =
        engine.start(
            engine
                .subscriber(queue)
                .name("by-row")
                .listen(PgjdbcListen.on(database.plain()))
                .on("t", String.class, this::handle));
    await().until(() -> database.count("outbox_sleepers where queue = '" + queue + "'") == 1);
    OutboxSubscriber ordered =
        engine.start(subscriber("ordered").on("t", String.class, this::handle));
    await()
        .until(
            () -> ordered.health().lastFailure().filter(t -> t.contains("row by row")).isPresent());
    assertThat(bucketsOf("ordered")).isZero();
    other.stop();
    await().until(() -> bucketsOf("ordered") == 64);
    await().until(() -> !ordered.health().failing());
  }

  @Test
  void anOrderedSubscriberGivesItsBucketsUpWhileAnotherClaimsRowByRow() {
    OutboxSubscriber ordered =
        engine.start(subscriber("ordered").on("t", String.class, this::handle));
    await().until(() -> bucketsOf("ordered") == 64);
    assertThat(ordered.health().healthy()).isTrue();
    OutboxSubscriber other =
        engine.start(
            engine
                .subscriber(queue)
                .name("by-row")
                .listen(PgjdbcListen.on(database.plain()))
                .on("t", String.class, this::handle));
    await().until(() -> !ordered.health().healthy());
    assertThat(ordered.health().lastFailure().orElseThrow())
        .contains("subscriber 'by-row/", "row by row", "those that are owned are given up");
    await().until(() -> bucketsOf("ordered") == 0);
    other.stop();
    await().until(() -> ordered.health().healthy());
    await().until(() -> bucketsOf("ordered") == 64);
  }
}
