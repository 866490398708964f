package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.as;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Batch;
import dev.outbox4j.BatchMessage;
import dev.outbox4j.Delivery;
import dev.outbox4j.IfLive;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A message that was published in the place of one that is being handled runs after that. */
@ExtendWith(PostgresExtension.class)
class ReplacedTimersIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();

  private final TestDatabase database;
  private final List<String> handled = new CopyOnWriteArrayList<>();
  private final List<Long> ids = new CopyOnWriteArrayList<>();
  private final CountDownLatch begun = new CountDownLatch(1);
  private final CountDownLatch goOn = new CountDownLatch(1);
  private final AtomicInteger running = new AtomicInteger();
  private final AtomicInteger mostRunning = new AtomicInteger();
  private EngineFixture engine;
  private PostgresOutbox outbox;
  private String queue;

  ReplacedTimersIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    database.update("create table if not exists replaced_effect (queue text, what text)");
    database.update("create table if not exists replaced_state (queue text, k int, n int)");
    engine = new EngineFixture(database, 8);
    outbox = PostgresOutbox.on(engine.pool, database.table());
    queue = "replaced-" + QUEUES.incrementAndGet();
  }

  @AfterEach
  void tearDown() {
    goOn.countDown();
    engine.close();
  }

  private OutboxSubscriber.Builder subscriber() {
    return engine.subscriber(queue).workers(4);
  }

  private OutboxMessage message(String body) {
    return OutboxMessage.to(queue)
        .type("t")
        .orderingKey("k")
        .timerId("x", IfLive.REPLACE)
        .body(body)
        .build();
  }

  private long publish(String body) {
    return engine.inTransaction(List.of(message(body))).get(0);
  }

  private Connection publishing(String body) throws SQLException {
    Connection connection = database.plain().getConnection();
    connection.setAutoCommit(false);
    engine.publisher.publish(connection, message(body));
    return connection;
  }

  /** Notes the message; the first one waits until it is let go. */
  private void handle(String text, Delivery delivery) throws InterruptedException {
    mostRunning.accumulateAndGet(running.incrementAndGet(), Math::max);
    try {
      handled.add(text);
      ids.add(delivery.id());
      if (text.equals("first")) {
        begun.countDown();
        assertThat(goOn.await(30, TimeUnit.SECONDS)).isTrue();
      }
    } finally {
      running.decrementAndGet();
    }
  }

  private void awaitHandled(String... messages) {
    await()
        .untilAsserted(
            () -> {
              assertThat(handled).containsExactly(messages);
              assertThat(engine.rows(queue)).isZero();
            });
    assertThat(mostRunning).hasValue(1);
  }

  enum End {
    ACK,
    THROW,
    REJECT,
    RESCHEDULE,
    TIMEOUT
  }

  @ParameterizedTest
  @EnumSource
  void comesOnceThatHandlerIsDoneHoweverItEnds(End end) throws Exception {
    engine.start(
        subscriber()
            .handlerTimeout(end == End.TIMEOUT ? Duration.ofSeconds(2) : Duration.ofSeconds(60))
            .retry(RetryPolicy.constant(Duration.ofHours(1)).attempts(3))
            .on(
                "t",
                String.class,
                (text, delivery) -> {
                  handle(text, delivery);
                  if (text.equals("first")) {
                    switch (end) {
                      case THROW -> throw new IllegalStateException("first failed");
                      case REJECT -> delivery.decide(Outcome.reject("first is no good"));
                      case RESCHEDULE -> delivery.decide(Outcome.reschedule(Duration.ofHours(1)));
                      default -> {}
                    }
                  }
                }));
    long first = publish("first");
    begun.await();
    long second = publish("second");
    if (end != End.TIMEOUT) {
      goOn.countDown();
    }

    awaitHandled("first", "second");
    assertThat(ids).containsExactly(first, second);
    assertThat(engine.deadLetters(queue)).isZero();
    assertThat(engine.events.leaseLost).isEmpty();
    assertThat(engine.events.retried).isEmpty();
    assertThat(engine.events.deadLettered).isEmpty();
  }

  @Test
  void nobodyElseBeginsWithItHoweverLongTheHandlerRuns() throws Exception {
    for (String name : List.of("a", "b")) {
      engine.start(
          subscriber().name(name).lease(Duration.ofSeconds(1)).on("t", String.class, this::handle));
    }
    publish("first");
    begun.await();
    int before = engine.events.renewed.get();
    publish("second");
    publish("third");
    // each half a second
    await().until(() -> engine.events.renewed.get() >= before + 4);
    assertThat(handled).containsExactly("first");
    goOn.countDown();
    awaitHandled("first", "third");
    assertThat(engine.events.leaseLost).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void anOutcomeWaitsForATransactionThatHasPublished(boolean commits) throws Exception {
    engine.start(subscriber().on("t", String.class, this::handle));
    publish("first");
    begun.await();
    try (Connection publishing = publishing("second")) {
      goOn.countDown();
      await().until(() -> running.get() == 0 && database.one(Long.class, WAITING) == 0);
      assertThat(engine.rows(queue)).isEqualTo(1);
      assertThat(engine.events.acked).hasValue(0);
      if (commits) {
        publishing.commit();
      } else {
        publishing.rollback();
      }
    }
    awaitHandled(commits ? new String[] {"first", "second"} : new String[] {"first"});
    assertThat(engine.events.leaseLost).isEmpty();
  }

  private static final String WAITING =
      "select count(*) from pg_stat_activity"
          + " where datname = current_database() and wait_event_type = 'Lock'";

  private void write(Connection connection, String what) throws SQLException {
    try (PreparedStatement insert =
        connection.prepareStatement("insert into replaced_effect (queue, what) values (?, ?)")) {
      insert.setString(1, queue);
      insert.setString(2, what);
      insert.executeUpdate();
    }
  }

  private List<String> effects() {
    return database.list(
        String.class, "select what from replaced_effect where queue = ? order by ctid", queue);
  }

  @Test
  void whatAHandlerDidInATransactionStands() throws Exception {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      write(connection, text);
                      handle(text, delivery);
                    })));
    publish("first");
    begun.await();
    publish("second");
    goOn.countDown();
    awaitHandled("first", "second");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(2));
    assertThat(effects()).containsExactly("first", "second");
    assertThat(engine.events.leaseLost).isEmpty();
  }

  /** The commit of the publisher is waited for. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aHandlersTransactionEndsAfterOneThatHasPublished(boolean commits) throws Exception {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      write(connection, text);
                      handle(text, delivery);
                    })));
    publish("first");
    begun.await();
    try (Connection publishing = publishing("second")) {
      goOn.countDown();
      await().until(() -> database.one(Long.class, WAITING) == 1);
      if (commits) {
        publishing.commit();
      } else {
        publishing.rollback();
      }
    }
    String[] all = commits ? new String[] {"first", "second"} : new String[] {"first"};
    awaitHandled(all);
    assertThat(effects()).containsExactly(all);
    assertThat(engine.events.leaseLost).isEmpty();
  }

  @Test
  void aHandlerMayPublishInItsOwnPlaceInItsTransaction() {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      write(connection, text);
                      int next = Integer.parseInt(text) + 1;
                      if (next < 10) {
                        engine.publisher.publish(connection, message(String.valueOf(next)));
                      }
                    })));
    publish("0");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(10));
    assertThat(effects()).containsExactly("0", "1", "2", "3", "4", "5", "6", "7", "8", "9");
    assertThat(engine.rows(queue)).isZero();
  }

  @Test
  void oneOfABatchIsReplacedAndTheOthersAreDone() throws Exception {
    engine.start(
        subscriber()
            .workers(1) // another would take one of the two
            .onBatch(
                "t",
                String.class,
                Batch.of(2).linger(Duration.ofSeconds(2)),
                messages -> {
                  for (BatchMessage<String> each : messages) {
                    handle(each.body(), each.delivery());
                  }
                }));
    engine.inTransaction(
        List.of(OutboxMessage.to(queue).type("t").body("other").build(), message("first")));
    begun.await();
    publish("second");
    goOn.countDown();
    awaitHandled("other", "first", "second");
    assertThat(engine.events.leaseLost).isEmpty();
  }

  private OutboxSubscriber.Builder ordered() {
    OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
    return subscriber().ordered();
  }

  private void startOrderedWhereTheFirstEnds(End end) {
    engine.start(
        ordered()
            .retry(RetryPolicy.constant(Duration.ofHours(1)).attempts(3))
            .on(
                "t",
                String.class,
                (text, delivery) -> {
                  handle(text, delivery);
                  if (text.equals("first")) {
                    switch (end) {
                      case THROW -> throw new IllegalStateException("first failed");
                      case REJECT -> delivery.decide(Outcome.reject("first is no good"));
                      case RESCHEDULE -> delivery.decide(Outcome.reschedule(Duration.ofHours(1)));
                      default -> {}
                    }
                  }
                }));
  }

  private void awaitOneThatWaitsForLong() {
    await()
        .until(
            () ->
                database.one(
                        Long.class,
                        "select count(*) from outbox where queue = ? and available_at > now() + interval '1 minute'",
                        queue)
                    == 1);
  }

  @ParameterizedTest
  @EnumSource(names = {"ACK", "THROW", "REJECT", "RESCHEDULE"})
  void inAnOrderedQueueItFollowsItsKey(End end) throws Exception {
    startOrderedWhereTheFirstEnds(end);
    long first = publish("first");
    begun.await();
    long second = publish("second");
    goOn.countDown();
    awaitHandled("first", "second");
    assertThat(ids).containsExactly(first, second);
    assertThat(engine.deadLetters(queue)).isZero();
  }

  private void cancel() throws SQLException {
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      assertThat(engine.publisher.cancelTimer(connection, queue, "x")).isTrue();
      connection.commit();
    }
  }

  /** Its key waits for the retry of the first one, which is not there any more. */
  @ParameterizedTest
  @EnumSource(names = {"THROW", "RESCHEDULE"})
  void inAnOrderedQueueOneThatWaitsToComeAgainIsReplacedAtOnce(End end) {
    goOn.countDown();
    startOrderedWhereTheFirstEnds(end);
    publish("first");
    awaitOneThatWaitsForLong();
    publish("second");
    awaitHandled("first", "second");
  }

  @Test
  void inAnOrderedQueueAKeyGoesOnWithWhatIsPublishedOnceThatWhichWaitsToComeAgainIsCancelled()
      throws SQLException {
    goOn.countDown();
    startOrderedWhereTheFirstEnds(End.THROW);
    publish("first");
    awaitOneThatWaitsForLong();
    cancel();
    engine.inTransaction(
        List.of(OutboxMessage.to(queue).type("t").orderingKey("k").body("second").build()));
    awaitHandled("first", "second");
  }

  /** Its own message is there again each time that its transaction is rolled back. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void inAnOrderedQueueAHandlerThatReplacesOrCancelsItsOwnMessageInItsTransactionHasFailed(
      boolean replaces) {
    engine.start(
        ordered()
            .retry(RetryPolicy.constant(Duration.ofMillis(50)).attempts(3))
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      handled.add(text + " " + delivery.attempt());
                      write(connection, text);
                      if (text.equals("after")) {
                        return;
                      }
                      if (replaces) {
                        engine.publisher.publish(connection, message("next"));
                      } else {
                        engine.publisher.cancelTimer(connection, queue, "x");
                      }
                    })));
    publish("first");
    engine.inTransaction(
        List.of(OutboxMessage.to(queue).type("t").orderingKey("k").body("after").build()));

    await().untilAsserted(() -> assertThat(effects()).containsExactly("after"));
    assertThat(handled).containsExactly("first 1", "first 2", "first 3", "after 1");
    assertThat(
            database.list(
                String.class, "select last_exception from outbox_dlq where queue = ?", queue))
        .singleElement(as(STRING))
        .contains("replaced or cancelled its own message");
  }

  @Test
  void inAnOrderedQueueATransactionIsRolledBackWhoseMessageWasReplaced() throws Exception {
    engine.start(
        ordered()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      write(connection, text);
                      handle(text, delivery);
                    })));
    publish("first");
    begun.await();
    publish("second");
    goOn.countDown();
    awaitHandled("first", "second");
    await().untilAsserted(() -> assertThat(effects()).containsExactly("second"));
  }

  /**
   * Each transaction counts a number up and publishes it. Whatever else goes on, a handler begins
   * with the last one, after it was committed, and never beside another of its id.
   */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  @Tag("large")
  void theLastOneIsHandledAfterItsCommitWhateverGoesOn(boolean inOrder) throws Exception {
    int keys = 5;
    for (int k = 0; k < keys; k++) {
      database.update("insert into replaced_state values (?, ?, 0)", queue, k);
    }
    Set<String> now = ConcurrentHashMap.newKeySet();
    Map<String, Integer> last = new ConcurrentHashMap<>();
    List<String> faults = new CopyOnWriteArrayList<>();
    if (inOrder) {
      OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
    }
    for (String name : List.of("a", "b")) {
      OutboxSubscriber.Builder builder = subscriber().name(name).lease(Duration.ofSeconds(5));
      engine.start(
          (inOrder ? builder.ordered() : builder)
              .on(
                  "t",
                  String.class,
                  (text, delivery) -> {
                    String key = delivery.timerId().orElseThrow();
                    if (!now.add(key)) {
                      faults.add("beside another: " + key);
                    }
                    try {
                      int committed =
                          database.one(
                              Integer.class,
                              "select n from replaced_state where queue = ? and k = ?",
                              queue,
                              Integer.valueOf(key));
                      if (committed < Integer.parseInt(text)) {
                        faults.add("before its commit: " + key);
                      }
                      last.merge(key, Integer.valueOf(text), Math::max);
                      switch (ThreadLocalRandom.current().nextInt(5)) {
                        case 0 -> throw new IllegalStateException("fails");
                        case 1 -> delivery.decide(Outcome.reject("no good"));
                        case 2 -> delivery.decide(Outcome.reschedule(Duration.ofMillis(1)));
                        default -> {}
                      }
                    } finally {
                      now.remove(key);
                    }
                  }));
    }
    int each = 150;
    ExecutorService publishers = Executors.newFixedThreadPool(3);
    try {
      List<Future<?>> all = new ArrayList<>();
      for (int p = 0; p < 3; p++) {
        all.add(
            publishers.submit(
                () -> {
                  for (int i = 0; i < each; i++) {
                    countUp(ThreadLocalRandom.current().nextInt(keys));
                  }
                  return null;
                }));
      }
      for (Future<?> publisher : all) {
        publisher.get(120, TimeUnit.SECONDS);
      }
    } finally {
      publishers.shutdownNow();
    }
    await().atMost(Duration.ofSeconds(60)).until(() -> engine.rows(queue) == 0);
    await().until(now::isEmpty);
    assertThat(faults).isEmpty();
    for (int k = 0; k < keys; k++) {
      assertThat(last)
          .containsEntry(
              String.valueOf(k),
              database.one(
                  Integer.class,
                  "select n from replaced_state where queue = ? and k = ?",
                  queue,
                  k));
    }
  }

  private void countUp(int key) throws SQLException {
    try (Connection connection = database.plain().getConnection();
        PreparedStatement count =
            connection.prepareStatement(
                "update replaced_state set n = n + 1 where queue = ? and k = ? returning n")) {
      connection.setAutoCommit(false);
      count.setString(1, queue);
      count.setInt(2, key);
      count.execute();
      count.getResultSet().next();
      String number = count.getResultSet().getString(1);
      engine.publisher.publish(
          connection,
          OutboxMessage.to(queue)
              .type("t")
              .orderingKey("k" + key)
              .timerId(String.valueOf(key), IfLive.REPLACE)
              .body(number)
              .build());
      if (ThreadLocalRandom.current().nextInt(4) == 0) {
        connection.rollback();
      } else {
        connection.commit();
      }
    }
  }
}
