package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.BucketStore;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.LeaseRef;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.LoggerFactory;

/** Order, and what it costs, when a statement or a piece of the engine does not do as it should. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class OrderedFaultsIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();
  private static final Duration LEASE = Duration.ofSeconds(2);
  private static final Duration SOON = Duration.ofSeconds(60);

  private final TestDatabase database;
  private final List<String> begun = new CopyOnWriteArrayList<>();
  private final Map<String, CountDownLatch> gates = new ConcurrentHashMap<>();
  private EngineFixture engine;
  private String queue;
  private long lastId;

  OrderedFaultsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 12);
    queue = "ordered-faults-" + QUEUES.incrementAndGet();
    OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
  }

  @AfterEach
  void tearDown() {
    gates.values().forEach(CountDownLatch::countDown);
    engine.close();
  }

  private OutboxSubscriber.Builder subscriber(String name) {
    return engine
        .subscriber(queue)
        .name(name)
        .ordered()
        .lease(LEASE)
        .workers(4)
        .on("t", String.class, this::handle);
  }

  private void handle(String text, Delivery delivery) throws InterruptedException {
    String name = delivery.orderingKey().orElse("none") + ":" + text.strip();
    begun.add(name);
    CountDownLatch gate = gates.get(name);
    if (gate != null) {
      gate.await();
    }
  }

  /** Lets the handler of a message wait. */
  private CountDownLatch gate(String name) {
    return gates.computeIfAbsent(name, each -> new CountDownLatch(1));
  }

  private void publish(String key, int from, int to) {
    publishTexts(key, IntStream.range(from, to).mapToObj(String::valueOf).toList());
  }

  /** So many of each key, each in a transaction of its own. */
  private void publishInTurn(List<String> keys, int most) {
    List<List<OutboxMessage>> transactions = new ArrayList<>();
    for (int i = 0; i < most; i++) {
      for (String key : keys) {
        transactions.add(List.of(message(key, String.valueOf(i))));
      }
    }
    List<Long> ids = engine.inTransactions(transactions);
    lastId = ids.get(ids.size() - 1);
  }

  private OutboxMessage message(String key, String text) {
    OutboxMessage.Builder message = OutboxMessage.to(queue).type("t").body(text);
    return (key.equals("none") ? message : message.orderingKey(key)).build();
  }

  private List<Long> publishTexts(String key, List<String> texts) {
    List<Long> ids = engine.inTransaction(texts.stream().map(text -> message(key, text)).toList());
    lastId = ids.get(ids.size() - 1);
    return ids;
  }

  private List<String> begunOf(String key) {
    return begun.stream().filter(each -> each.startsWith(key + ":")).toList();
  }

  private static List<String> names(String key, int to) {
    return IntStream.range(0, to).mapToObj(i -> key + ":" + i).toList();
  }

  private long bucketsOf(String subscriber) {
    return database.one(
        Long.class,
        "select count(*) from outbox_buckets where queue = ? and owner like ?",
        queue,
        subscriber + "%");
  }

  /** A key whose bucket is one of those. */
  private String key(int from, int to) {
    for (int i = 0; ; i++) {
      int bucket =
          database.one(Integer.class, "select (hashtextextended(?::text, 0) & 63)::int", "x" + i);
      if (bucket >= from && bucket < to) {
        return "x" + i;
      }
    }
  }

  private OutboxSubscriber startAndOwnAll(OutboxSubscriber.Builder builder) {
    OutboxSubscriber subscriber = engine.start(builder);
    await().until(() -> bucketsOf(subscriber.name()) == 64);
    return subscriber;
  }

  private void loseAndRegain(String subscriber) {
    giveToAnother();
    await().atMost(SOON).until(() -> bucketsOf(subscriber) == 64);
  }

  /** Another takes all buckets, reads all there is, and dies. */
  private void giveToAnother() {
    database.update(
        "insert into outbox_bucket_owners (queue, owner, lease_until, read_up_to, seen_up_to)"
            + " values (?, 'other', now() + interval '1 second', 0, ?)",
        queue,
        lastId);
    database.update(
        "update outbox_buckets set owner = 'other', epoch = epoch + 1 where queue = ?", queue);
  }

  /** All that was published up to now may have been begun by an owner that was killed. */
  private void killedOwner() {
    database.update(
        "insert into outbox_bucket_owners"
            + " select ?, 'dead', now() - interval '1 second', max(id), 0 from outbox",
        queue);
    database.update("update outbox_buckets set owner = 'dead', epoch = 7 where queue = ?", queue);
  }

  private PostgresStore store(WatchedBuckets.Around around) {
    return WatchedBuckets.of(engine.pool, database.table(), around);
  }

  @Test
  void aBucketThatIsToBeGivenUpAndIsKeptAfterAllIsReadAnew() {
    String key = key(0, 8);
    String slow = key(50, 64);
    CountDownLatch end = gate(key + ":0");
    gate(slow + ":0");
    startAndOwnAll(subscriber("first").workers(2));
    publish(key, 0, 10);
    publish(slow, 0, 1);
    await().until(() -> begun.contains(key + ":0") && begun.contains(slow + ":0"));
    engine.start(subscriber("second"));
    await() // the key's bucket cannot be given while its handler runs, so others are
        .atMost(Duration.ofSeconds(20))
        .until(() -> bucketsOf("first") == 32 && bucketsOf("second") == 32);
    publish(key, 10, 13);

    end.countDown();

    await().atMost(SOON).until(() -> begunOf(key).size() >= 13);
    assertThat(begunOf(key)).isEqualTo(names(key, 13));
  }

  @Test
  void bucketsThatAreLostAndComeBackInOneJoinAreReadAnew() {
    AtomicBoolean losing = new AtomicBoolean();
    AtomicBoolean readMeanwhile = new AtomicBoolean();
    AppenderBase<ILoggingEvent> slowLog =
        new AppenderBase<>() {
          @Override
          protected void append(ILoggingEvent event) {
            if (event.getMessage().contains("were taken by another")) {
              // a read that has begun before comes to the store meanwhile
              await().during(Duration.ofMillis(300)).until(() -> true);
              losing.set(true);
              await().during(Duration.ofMillis(500)).until(() -> true);
              losing.set(false);
            }
          }
        };
    Logger log = (Logger) LoggerFactory.getLogger("dev.outbox4j.internal.order.BucketLeases");
    slowLog.start();
    log.addAppender(slowLog);
    try {
      startAndOwnAll(
          subscriber("s")
              .store(
                  store(
                      (method, argument, real) -> {
                        if (argument instanceof BucketStore.ReadRequest && losing.get()) {
                          readMeanwhile.set(true);
                        }
                        return real.call();
                      })));
      CountDownLatch end = gate("k:0");
      publish("k", 0, 20);
      await().until(() -> begun.contains("k:0"));
      database.update(
          "update outbox_buckets set owner = null, epoch = epoch + 1 where queue = ?", queue);
      await().atMost(SOON).untilTrue(losing);
      await().atMost(SOON).untilFalse(losing);
      end.countDown();

      await().atMost(SOON).until(() -> engine.rows(queue) == 0);
      assertThat(readMeanwhile).as("read while it is told what was lost").isFalse();
      assertThat(begunOf("k").stream().distinct()).isEqualTo(names("k", 20));
    } finally {
      log.detachAppender(slowLog);
    }
  }

  @Test
  @Tag("large")
  void aBucketThatIsGivenUpDuringAReadLetsNothingOfOthersBeOvertaken() {
    String given = key(0, 8);
    String kept = key(50, 64);
    int most = 600;
    publishInTurn(List.of(given, kept), most);
    long seenUpTo = lastId;
    publish(kept, most, most + 20);
    killedOwner(); // so that they are read in parts up to what it has seen
    database.update(
        "update outbox_bucket_owners set read_up_to = ?, seen_up_to = ? where queue = ?",
        seenUpTo,
        seenUpTo,
        queue);
    AtomicInteger joins = new AtomicInteger();
    AtomicInteger sinceLookBack = new AtomicInteger();
    AtomicBoolean shared = new AtomicBoolean();
    engine.start(
        subscriber("s")
            .batchSize(2) // so that few rows are read at once
            .store(
                store(
                    (method, argument, real) -> {
                      Object result = real.call();
                      if (method.equals("join")) {
                        joins.incrementAndGet();
                      }
                      if (argument instanceof BucketStore.ReadRequest request
                          && !request.sweep().isEmpty()
                          && request.timeLimit() == null) { // which would find what is left out
                        sinceLookBack.set(0);
                      }
                      if (result instanceof BucketStore.Read read
                          && read.rows().stream().anyMatch(BucketStore.Row::loaded)
                          && !shared.get()) {
                        if (sinceLookBack.incrementAndGet() > 3) {
                          shared.set(true);
                          anotherOwner();
                          int before = joins.get();
                          await().atMost(SOON).until(() -> joins.get() >= before + 3);
                        } else { // so that its ids settle before all is read
                          await().pollDelay(Duration.ofMillis(40)).until(() -> true);
                        }
                      }
                      return result;
                    })));

    await().atMost(SOON).until(() -> begun.contains(kept + ":" + (most + 19)));
    assertThat(shared).as("half of the buckets were given up during a read").isTrue();
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(begunOf(kept)).isEqualTo(names(kept, most + 20));
    assertThat(begunOf(given)).isEqualTo(names(given, most));
  }

  /** One that takes nothing, but to which half of the buckets are left for a while. */
  private void anotherOwner() {
    database.update(
        "insert into outbox_bucket_owners (queue, owner, lease_until, read_up_to, seen_up_to)"
            + " values (?, 'other', now() + interval '3 seconds', 0, 0)",
        queue);
  }

  @Test
  void bucketsThatAreGivenUpByAStatementThatRunsLateAreNotTakenFromWhoReadsThemAgain()
      throws Exception {
    String key = key(0, 8);
    CountDownLatch end = gate(key + ":0");
    AtomicReference<Callable<Object>> late = new AtomicReference<>();
    startAndOwnAll(
        subscriber("first")
            .lease(Duration.ofSeconds(10))
            .store(
                store(
                    (method, argument, real) -> {
                      if (argument instanceof BucketStore.Join join
                          && !join.given().isEmpty()
                          && late.compareAndSet(null, real)) {
                        database.update(
                            "delete from outbox_bucket_owners where queue = ? and owner = 'other'",
                            queue);
                        throw new OutboxStoreException(
                            "of a test", OutboxStoreException.Fault.TRANSIENT, true, null);
                      }
                      return real.call();
                    })));
    anotherOwner();
    await().atMost(SOON).until(() -> late.get() != null);
    publish(key, 0, 3);
    await().atMost(SOON).until(() -> begun.contains(key + ":0")); // it is read again
    engine.start(subscriber("second"));
    await()
        .atMost(SOON)
        .until(
            () ->
                database.one(
                        Long.class,
                        "select count(*) from outbox_bucket_owners where queue = ? and lease_until > now()",
                        queue)
                    == 2);

    late.get().call();

    await().atMost(SOON).until(() -> bucketsOf("second") >= 31);
    await().during(Duration.ofSeconds(1)).until(() -> begunOf(key).size() == 1);
    end.countDown();
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(begunOf(key)).isEqualTo(names(key, 3));
  }

  @Test
  void anAckThatIsNotWrittenWhenABucketIsLostDoesNotBringItsMessageBesideTheNextThatRuns() {
    AtomicBoolean cutOff = new AtomicBoolean(true);
    Set<Long> tried = ConcurrentHashMap.newKeySet();
    CountDownLatch end = gate("k:1");
    startAndOwnAll(
        subscriber("s")
            .store(
                store(
                    (method, argument, real) -> {
                      if (!method.equals("ack")) {
                        return real.call();
                      }
                      if (cutOff.get()) {
                        throw new OutboxStoreException(
                            "of a test", OutboxStoreException.Fault.TRANSIENT, false, null);
                      }
                      Object written = real.call();
                      ((List<?>) argument).forEach(lease -> tried.add(((LeaseRef) lease).id()));
                      return written;
                    })));
    publish("k", 0, 3);
    await().atMost(SOON).until(() -> begun.contains("k:1"));
    long first = lastId - 2;
    loseAndRegain("s");
    passes(besides("k"), "of the same bucket"); // so that it is read anew
    cutOff.set(false);
    await().atMost(SOON).until(() -> tried.contains(first)); // in vain

    await()
        .during(Duration.ofMillis(1_500))
        .atMost(Duration.ofSeconds(4))
        .until(() -> begunOf("k").size() == 2);
    end.countDown();
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(begunOf("k")).containsExactly("k:0", "k:1", "k:0", "k:1", "k:2");
  }

  @Test
  void anErrorWhileRowsAreTakenLosesNoneOfThem() {
    AtomicInteger failing = new AtomicInteger(3);
    startAndOwnAll(
        subscriber("s")
            .store(
                store(
                    (method, argument, real) -> {
                      Object result = real.call();
                      return result instanceof BucketStore.Read read
                              && read.rows().stream().anyMatch(BucketStore.Row::loaded)
                              && failing.getAndDecrement() > 0
                          ? unreadable(read)
                          : result;
                    })));

    for (int i = 0; i < 40; i++) {
      publish("k", i, i + 1);
    }

    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(failing).hasNonPositiveValue();
    assertThat(begunOf("k")).isEqualTo(names("k", 40));
  }

  /** Lets the engine fail when it comes to the last row that it reads. */
  private static BucketStore.Read unreadable(BucketStore.Read read) {
    List<BucketStore.Row> rows = new ArrayList<>(read.rows());
    BucketStore.Row last = rows.get(rows.size() - 1);
    ClaimedRow row = new ClaimedRow(last.row().lease(), last.row().message(), null);
    rows.set(
        rows.size() - 1,
        new BucketStore.Row(last.part(), last.bucket(), row, true, last.due(), last.moved()));
    return new BucketStore.Read(
        rows, read.lookAhead(), read.at(), read.oldest(), read.mark(), read.newest());
  }

  @Test
  void anErrorWhileDeliveriesAreCountedLosesNone() {
    publish("k", 0, 3);
    killedOwner();
    AtomicBoolean thrown = new AtomicBoolean();
    engine.start(
        subscriber("s")
            .store(
                store(
                    (method, argument, real) -> {
                      if (method.equals("count") && thrown.compareAndSet(false, true)) {
                        throw new OutOfMemoryError("of a test");
                      }
                      return real.call();
                    })));
    await().untilTrue(thrown);
    publish("k", 3, 6);

    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(begunOf("k")).isEqualTo(names("k", 6));
  }

  @Test
  void aSlowHandlerOfAKeyWithLargeMessagesHoldsUpItsKeyOnly() {
    CountDownLatch end = gate("hot:0");
    String padding = " ".repeat(1 << 20);
    for (int i = 0; i < 40; i++) {
      publishTexts("hot", List.of(i == 0 ? "0" : i + padding));
    }
    startAndOwnAll(subscriber("s"));
    await().until(() -> begun.contains("hot:0"));

    publish("cold", 0, 1);
    publish("none", 0, 1);

    await().atMost(SOON).until(() -> begun.contains("cold:0") && begun.contains("none:0"));
    end.countDown();
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(begunOf("hot")).isEqualTo(names("hot", 40));
  }

  @Test
  void aMessageThatCommitsLateIsNotOvertakenByOneThatIsPublishedAfterItsCommit()
      throws SQLException {
    String other =
        database.one(
            String.class,
            """
            select 'o' || n from generate_series(1, 10000) n
            where (hashtextextended('o' || n, 0) & 63) = (hashtextextended('k', 0) & 63) limit 1""");
    startAndOwnAll(subscriber("s").listen(PgjdbcListen.on(database.plain())));
    for (int round = 0; round < 15; round++) {
      try (Connection late = database.plain().getConnection()) {
        late.setAutoCommit(false);
        engine.publisher.publish(
            late, OutboxMessage.to(queue).type("t").orderingKey("k").body("" + 2 * round).build());
        publish(other, round, round + 1);
        String passed = other + ":" + round;
        await().atMost(SOON).until(() -> begun.contains(passed)); // its place is above the late one
        late.commit();
      }
      publish("k", 2 * round + 1, 2 * round + 2);
    }
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(begunOf("k")).isEqualTo(names("k", 30));
  }

  /** What is passed by is read much later, when the place is far from the late one. */
  @Test
  void aMessageThatCommitsLateIsNotOvertakenByOneThatWasPassedBy() throws SQLException {
    startWithoutWalks();
    for (int each = 0; each < 5; each++) {
      int round = each;
      String key = "w" + round;
      String other = besides(key);
      CountDownLatch goOn = gate(key + ":0");
      publish(key, 0, 1);
      await().atMost(SOON).until(() -> begun.contains(key + ":0"));
      int last = 150;
      try (Connection late = database.plain().getConnection()) {
        late.setAutoCommit(false);
        engine.publisher.publish(
            late, OutboxMessage.to(queue).type("t").orderingKey(key).body("late").build());
        publish(key, 1, last); // more than is held of a key
        passes(other, "place " + round);
        late.commit();
      }
      publish(key, last, last + 1);
      database.one(
          Long.class,
          "select max(nextval(pg_get_serial_sequence('outbox', 'id'))) from generate_series(1, 20001)");
      // without keys, so that nothing is looked back for: one of them is in the key's bucket
      publishTexts("none", IntStream.range(0, 64).mapToObj(i -> round + " far " + i).toList());
      await().atMost(SOON).until(() -> begunOf("none").size() == 64 * (round + 1));
      goOn.countDown();
      await().atMost(SOON).until(() -> engine.rows(queue) == 0);
      List<String> all = new ArrayList<>(names(key, last + 1));
      all.add(1, key + ":late");
      assertThat(begunOf(key)).isEqualTo(all);
    }
  }

  /** What precedes it was committed late, and itself was too: only reads of its key meet it. */
  @Test
  void aMessageThatCommitsLateIsNotOvertakenByOneThatIsReadByItsKey() throws SQLException {
    startWithoutWalks();
    for (int round = 0; round < 3; round++) {
      String key = "w" + round;
      String other = besides(key);
      CountDownLatch goOn = gate(key + ":0");
      publish(key, 0, 1);
      await().atMost(SOON).until(() -> begun.contains(key + ":0"));
      try (Connection late = database.plain().getConnection();
          Connection later = database.plain().getConnection()) {
        late.setAutoCommit(false);
        later.setAutoCommit(false);
        publishOpen(late, key, "late");
        publish(key, 1, 150); // more than is held of a key
        passes(other, "one " + round);
        late.commit();
        publishOpen(later, key, "later");
        passes(other, "two " + round);
        later.commit();
      }
      goOn.countDown();
      await().atMost(SOON).until(() -> begun.contains(key + ":later"));
      assertThat(begunOf(key)).containsSubsequence(key + ":late", key + ":later");
    }
  }

  /** It is passed by when it is published, as it is not due, and read by its id when it is. */
  @Test
  void aMessageThatCommitsLateIsNotOvertakenByOneThatFallsDue() throws SQLException {
    startWithoutWalks();
    for (int round = 0; round < 3; round++) {
      String key = "w" + round;
      try (Connection late = database.plain().getConnection()) {
        late.setAutoCommit(false);
        publishOpen(late, key, "late");
        passes(besides(key), "place " + round);
        late.commit();
      }
      engine.inTransaction(
          List.of(
              OutboxMessage.to(queue)
                  .type("t")
                  .orderingKey(key)
                  .body("delayed")
                  .deliverIn(Duration.ofMillis(1_500))
                  .build()));
      await().atMost(SOON).until(() -> begun.contains(key + ":delayed"));
      assertThat(begunOf(key)).containsExactly(key + ":late", key + ":delayed");
    }
  }

  /**
   * Starts one that finds what was committed late by looking back alone: walks would, but later.
   */
  private void startWithoutWalks() {
    startAndOwnAll(
        subscriber("s")
            .listen(PgjdbcListen.on(database.plain()))
            .store(
                store(
                    (method, argument, real) -> {
                      if (argument instanceof BucketStore.ReadRequest request
                          && !request.sweep().isEmpty()
                          && request.timeLimit() != null) {
                        throw new OutboxStoreException(
                            "slow", OutboxStoreException.Fault.TIMEOUT, false, null);
                      }
                      return real.call();
                    })));
  }

  /** Another key of the same bucket. */
  private String besides(String key) {
    return database.one(
        String.class,
        """
        select 'o' || n from generate_series(1, 10000) n
        where (hashtextextended('o' || n, 0) & 63) = (hashtextextended(?, 0) & 63) limit 1""",
        key);
  }

  private void publishOpen(Connection open, String key, String text) {
    engine.publisher.publish(
        open, OutboxMessage.to(queue).type("t").orderingKey(key).body(text).build());
  }

  /** The place of the key's bucket is above all that was published before. */
  private void passes(String key, String text) {
    publishTexts(key, List.of(text));
    await().atMost(SOON).until(() -> begun.contains(key + ":" + text));
  }

  @Test
  @Tag("large")
  void afterAKillAKeyThatWaitsDoesNotKeepTheReadsOfOthersSmall() {
    List<String> keys = keysOf(7, 8);
    String slow = keys.get(7);
    gate(slow + ":0");
    int most = 70;
    publishInTurn(keys, most);
    killedOwner();
    AtomicInteger counts = new AtomicInteger();
    AtomicInteger counted = new AtomicInteger();
    engine.start(
        subscriber("s")
            .store(
                store(
                    (method, argument, real) -> {
                      if (method.equals("count")) {
                        int all = counted.getAndAdd(((List<?>) argument).size());
                        await().atMost(SOON).until(() -> begun.size() >= all * 7 / 8 - 8);
                        counts.incrementAndGet();
                      }
                      return real.call();
                    })));

    await().atMost(SOON).until(() -> begun.size() == 7 * most + 1);
    assertThat(counted).hasValueGreaterThanOrEqualTo(7 * most);
    assertThat(counts).hasValueLessThan(20);
  }

  @Test
  void whatMayHaveBegunIsKnownToAboutASecondWithoutAStatementForEachRead() {
    AtomicInteger reservations = new AtomicInteger();
    AtomicInteger reads = new AtomicInteger();
    startAndOwnAll(
        subscriber("s")
            .store(
                store(
                    (method, argument, real) -> {
                      if (method.equals("reserve")) {
                        reservations.incrementAndGet();
                      }
                      Object result = real.call();
                      if (result instanceof BucketStore.Read read
                          && read.rows().stream().anyMatch(BucketStore.Row::loaded)) {
                        reads.incrementAndGet();
                      }
                      return result;
                    })));
    publish("k", 0, 1);
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(reservedBeyond()).isBetween(0L, 1_000L);

    for (int i = 0; i < 100; i++) {
      publishTexts("none", IntStream.range(0, 200).mapToObj(String::valueOf).toList());
    }
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(reads).hasValueGreaterThan(40);
    assertThat(reservations).hasValueLessThan(20);
  }

  private long reservedBeyond() {
    return database.one(
        Long.class,
        "select max(read_up_to) - ? from outbox_bucket_owners where queue = ?",
        lastId,
        queue);
  }

  /** So many keys that share a bucket. */
  private List<String> keysOf(int bucket, int count) {
    return IntStream.range(0, 10_000)
        .mapToObj(i -> "b" + i)
        .filter(
            key ->
                bucket
                    == database.one(
                        Integer.class, "select (hashtextextended(?::text, 0) & 63)::int", key))
        .limit(count)
        .toList();
  }

  @ParameterizedTest
  @ValueSource(strings = {"k", "none"})
  void aRowThatCannotBeCountedIsTriedOnceASecond(String key) throws SQLException {
    List<Long> ids = publishTexts(key, List.of("0", "1", "2"));
    killedOwner();
    AtomicInteger counts = new AtomicInteger();
    try (Connection other = database.plain().getConnection();
        Statement lock = other.createStatement()) {
      other.setAutoCommit(false);
      lock.execute("select from outbox where id = " + ids.get(0) + " for update");
      engine.start(
          subscriber("s")
              .store(
                  store(
                      (method, argument, real) -> {
                        if (method.equals("count")) {
                          counts.incrementAndGet();
                        }
                        return real.call();
                      })));

      await().atMost(SOON).until(() -> counts.get() >= 2);
      await()
          .during(Duration.ofMillis(1_500))
          .atMost(Duration.ofSeconds(3))
          .until(() -> counts.get() <= 8);
      assertThat(begun).doesNotContain(key + ":0").hasSize(key.equals("k") ? 0 : 2);
      other.rollback();
    }
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(begunOf(key)).containsExactlyInAnyOrderElementsOf(names(key, 3));
    if (key.equals("k")) {
      assertThat(begun).isSorted();
    }
  }

  @Test
  void aRowThatIsRefusedWhenItIsCountedHoldsUpItsKeyOnly() {
    List<Long> refused = publishTexts("refused", List.of("0", "1"));
    for (int i = 0; i < 20; i++) {
      publish("k" + i, 0, 1);
    }
    killedOwner();
    database.update(
        "create or replace function refuse_row() returns trigger language plpgsql as"
            + " $$begin raise exception 'refused'; end$$");
    database.update(
        "create trigger refuse_row before update on outbox for each row when (old.id = "
            + refused.get(0)
            + ") execute function refuse_row()");
    try {
      startAndOwnAll(subscriber("s"));
      await().atMost(SOON).until(() -> engine.rows(queue) == 2);
      assertThat(begunOf("refused")).isEmpty();
    } finally {
      database.update("drop trigger refuse_row on outbox");
    }
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(begunOf("refused")).isEqualTo(names("refused", 2));
  }

  @Test
  void whatStillRunsFromAnEarlierTimeAsOwnerCostsNoReadsAndHoldsUpItsKeyNoLonger() {
    CountDownLatch endOfKey = gate("k:0");
    CountDownLatch endOfOther = gate("none:0");
    AtomicLong bytes = new AtomicLong();
    AtomicInteger reads = new AtomicInteger();
    startAndOwnAll(
        subscriber("s")
            .listen(PgjdbcListen.on(database.plain()))
            .poll(Duration.ofMillis(10), Duration.ofSeconds(50))
            .store(
                store(
                    (method, argument, real) -> {
                      Object result = real.call();
                      if (result instanceof BucketStore.Read read) {
                        reads.incrementAndGet();
                        read.rows()
                            .forEach(row -> bytes.addAndGet(row.row().message().payload().size()));
                      }
                      return result;
                    })));
    int size = 1 << 20;
    publishTexts("k", List.of("0" + " ".repeat(size), "1"));
    publish("none", 0, 1);
    await().until(() -> begun.contains("k:0") && begun.contains("none:0"));
    loseAndRegain("s");
    AtomicInteger before = new AtomicInteger(reads.get());
    await() // a busy machine may take longer to settle
        .pollInterval(Duration.ofSeconds(1))
        .until(
            () -> {
              int now = reads.get();
              return now - before.getAndSet(now) < 15;
            });
    assertThat(bytes).hasValueLessThan(2L * size);
    gates.clear();
    endOfKey.countDown();
    endOfOther.countDown();

    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(begunOf("k")).containsExactly("k:0", "k:0", "k:1");
    assertThat(begunOf("none")).containsExactly("none:0", "none:0");
  }

  @Test
  void aMessageThatWasReadByItsIdIsNotReadAgainWithItsBucket() {
    Semaphore permits = new Semaphore(0);
    CountDownLatch end = new CountDownLatch(1);
    AtomicInteger runs = new AtomicInteger();
    AtomicInteger handled = new AtomicInteger();
    OutboxSubscriber subscriber =
        startAndOwnAll(
            subscriber("s")
                .workers(2)
                .batchSize(4)
                .retry(RetryPolicy.constant(Duration.ofMillis(1500)))
                .on(
                    "retried",
                    String.class,
                    (text, delivery) -> {
                      if (runs.incrementAndGet() == 1) {
                        throw new IllegalStateException("fails once");
                      }
                      end.await();
                    })
                .otherwise(
                    (payload, delivery) -> {
                      permits.acquire();
                      handled.incrementAndGet();
                    }));
    database.list(
        Long.class,
        "select setval(pg_get_serial_sequence('outbox', 'id'), coalesce(max(id), 0) + 100000) from outbox");
    long id =
        engine
            .inTransaction(List.of(OutboxMessage.to(queue).type("retried").body("x").build()))
            .get(0);
    lastId = id;
    await()
        .until(
            () ->
                database.one(Integer.class, "select attempts_count from outbox where id = ?", id)
                    == 1);
    giveToAnother();
    await().atMost(SOON).until(() -> subscriber.health().order().orElseThrow().buckets() == 0);
    int below = 200; // of its bucket, so that it is due before its bucket was read up to it
    database.update(
        "insert into outbox (id, queue, type, payload)"
            + " select ? - 64 * n, ?, 'below', '' from generate_series(1, ?) n",
        id,
        queue,
        below);

    await()
        .atMost(SOON)
        .until(
            () -> {
              permits.release(1);
              return runs.get() == 2;
            });
    assertThat(handled).hasValueLessThan(below);
    permits.release(below);

    await().atMost(SOON).until(() -> handled.get() == below && engine.rows(queue) == 1);
    assertThat(runs).as("while the second goes on").hasValue(2);
    end.countDown();
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(runs).hasValue(2);
  }

  @Test
  void bucketsThatComeBackAreReadAtOnceWithoutASignal() {
    OutboxSubscriber subscriber =
        startAndOwnAll(
            subscriber("s")
                .listen(PgjdbcListen.on(database.plain()))
                .poll(Duration.ofMillis(10), Duration.ofSeconds(50)));
    publish("k", 0, 1);
    await().until(() -> begun.contains("k:0") && engine.rows(queue) == 0);
    giveToAnother();
    await().atMost(SOON).until(() -> subscriber.health().order().orElseThrow().buckets() == 0);
    publish("k", 1, 2);

    await().atMost(SOON).until(() -> bucketsOf("s") == 64);
    await().atMost(Duration.ofMillis(1_500)).until(() -> begun.contains("k:1"));
  }

  @Test
  void readsThatTookTooLongOnceLeaveLaterOnesNoSlower() {
    AtomicInteger timeouts = new AtomicInteger();
    AtomicInteger reads = new AtomicInteger();
    startAndOwnAll(
        subscriber("s")
            .store(
                store(
                    (method, argument, real) -> {
                      if (argument instanceof BucketStore.ReadRequest request) {
                        reads.incrementAndGet();
                        if (!request.portions().isEmpty()
                            && timeouts.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
                          throw new OutboxStoreException(
                              "slow", OutboxStoreException.Fault.TIMEOUT, false, null);
                        }
                      }
                      return real.call();
                    })));
    database.list(
        Long.class,
        "select setval(pg_get_serial_sequence('outbox', 'id'), max(id) + 20000000) from outbox");
    publish("a", 0, 1);
    await().until(() -> begun.contains("a:0"));
    timeouts.set(4);
    await().atMost(SOON).until(() -> timeouts.get() == 0);
    loseAndRegain("s");
    int before = reads.get();

    publish("b", 0, 5);

    await().atMost(SOON).until(() -> begunOf("b").size() == 5);
    assertThat(reads.get() - before).isLessThan(1_000);
  }

  @Test
  void anOwnerWhoseNameWasPurgedTellsAnewWhatItMayHaveBegun() {
    startAndOwnAll(subscriber("s"));
    publish("k", 0, 1);
    await().until(() -> engine.rows(queue) == 0);
    // as after a pause of hours
    database.update(
        "update outbox_buckets set owner = null, epoch = epoch + 1 where queue = ?", queue);
    database.update("delete from outbox_bucket_owners where queue = ?", queue);
    await().atMost(SOON).until(() -> bucketsOf("s") == 64);
    gate("k:1");

    List<Long> ids = publishTexts("k", List.of("1"));

    await().atMost(SOON).until(() -> begun.contains("k:1"));
    assertThat(
            database.one(
                Long.class, "select read_up_to from outbox_bucket_owners where queue = ?", queue))
        .isGreaterThanOrEqualTo(ids.get(0));
  }

  @Test
  void aTransactionalHandlerWhoseRowStaysIsNotRunAgainAtOnce() {
    database.update(
        "create or replace function keep_row() returns trigger language plpgsql as"
            + " 'begin return null; end'");
    database.update(
        "create trigger keep_row before delete on outbox for each row when (old.queue = '"
            + queue
            + "') execute function keep_row()");
    AtomicInteger runs = new AtomicInteger();
    try {
      PostgresOutbox outbox = PostgresOutbox.on(engine.pool, database.table());
      publish("k", 0, 1);
      engine.start(
          engine
              .subscriber(queue)
              .name("s")
              .ordered()
              .on(
                  "t",
                  String.class,
                  outbox.transactional(
                      (String text, Delivery delivery, Connection connection) -> {
                        runs.incrementAndGet();
                      })));
      await().atMost(SOON).until(() -> runs.get() >= 2);
      int before = runs.get();
      await()
          .during(Duration.ofSeconds(1))
          .atMost(Duration.ofSeconds(3))
          .until(() -> runs.get() - before <= 2);
    } finally {
      database.update("drop trigger keep_row on outbox");
    }
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
  }
}
