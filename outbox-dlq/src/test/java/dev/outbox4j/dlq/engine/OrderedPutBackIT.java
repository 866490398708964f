package dev.outbox4j.dlq.engine;

import static dev.outbox4j.dlq.DeadLetterFilter.messageId;
import static dev.outbox4j.dlq.DeadLetterFilter.queue;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.dlq.DeadLetterWorklist;
import dev.outbox4j.dlq.Redrive;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.BucketStore;
import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** A message of a key that comes late, while a younger one of it waits for its retry or runs. */
@ExtendWith(PostgresExtension.class)
class OrderedPutBackIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();
  private static final Duration SOON = Duration.ofSeconds(60);
  private static final Outcome DEAD = Outcome.reject("of a test");
  private static final Outcome RETRIED = Outcome.retryAfter(Duration.ofHours(1));

  private final TestDatabase database;
  private final List<String> begun = new CopyOnWriteArrayList<>();
  private final Map<String, Outcome> outcomes = new ConcurrentHashMap<>();
  private final Map<String, CountDownLatch> gates = new ConcurrentHashMap<>();

  /** Rows that were found below what had been read. */
  private final Set<Long> found = ConcurrentHashMap.newKeySet();

  private EngineFixture engine;
  private DeadLetterWorklist worklist;
  private String queue;

  OrderedPutBackIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 12);
    worklist =
        DeadLetterWorklist.of(
            PostgresOutbox.on(engine.pool, database.table()), DeadLetterQueue.in("outbox_dlq"));
    queue = "ordered-put-back-" + QUEUES.incrementAndGet();
    OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
  }

  @AfterEach
  void tearDown() {
    gates.values().forEach(CountDownLatch::countDown);
    engine.close();
    database.update("delete from outbox where queue = ?", queue);
    database.update("delete from outbox_dlq where queue = ?", queue);
  }

  private OutboxSubscriber.Builder subscriber() {
    return engine
        .subscriber(queue)
        .name("s")
        .ordered()
        .lease(Duration.ofSeconds(2))
        .workers(4)
        .listen(PgjdbcListen.on(database.plain()))
        .store(
            WatchedBuckets.of(
                engine.pool,
                database.table(),
                (method, argument, real) -> {
                  Object result = real.call();
                  if (result instanceof BucketStore.Read read) {
                    read.rows().stream()
                        .filter(row -> row.part() == BucketStore.Part.SWEEP)
                        .forEach(row -> found.add(row.row().lease().id()));
                  }
                  return result;
                }))
        .on("t", String.class, this::handle);
  }

  private void handle(String text, Delivery delivery) throws InterruptedException {
    begun.add(text);
    Outcome outcome = outcomes.get(text);
    CountDownLatch gate = gates.get(text);
    if (gate != null) {
      gate.await();
    }
    if (outcome != null) {
      delivery.decide(outcome);
    }
  }

  /** Lets the handler of a message wait from now on. */
  private CountDownLatch gate(String text) {
    return gates.computeIfAbsent(text, each -> new CountDownLatch(1));
  }

  private void open(String text) {
    gates.remove(text).countDown();
  }

  private static OutboxMessage.Builder message(String queue, String text) {
    return OutboxMessage.to(queue).type("t").orderingKey("k").body(text);
  }

  private List<Long> publish(String... texts) {
    List<OutboxMessage> messages = new ArrayList<>();
    for (String text : texts) {
      messages.add(message(queue, text).build());
    }
    return engine.inTransaction(messages);
  }

  /** Puts all dead letters back, to be acked. */
  private void putBack(int count) {
    outcomes.values().removeIf(DEAD::equals);
    found.clear();
    assertThat(worklist.where(queue(queue)).redrive(Redrive.by("ann")).done()).isEqualTo(count);
  }

  private void awaitBegun(String... texts) {
    await().atMost(SOON).untilAsserted(() -> assertThat(begun).containsExactly(texts));
  }

  private void nothingMoreBegins() {
    List<String> before = List.copyOf(begun);
    await()
        .during(Duration.ofMillis(1_500))
        .atMost(Duration.ofSeconds(4))
        .until(() -> begun.equals(before));
  }

  private void awaitRetried(long id) {
    await().atMost(SOON).until(() -> engine.column(Integer.class, "attempts_count", id) == 1);
  }

  /** Its key looks at it once more of the key is published. */
  private void letBeDue(long id) {
    database.update("update outbox set available_at = clock_timestamp() where id = ?", id);
  }

  private void awaitDead(int count) {
    await().atMost(SOON).until(() -> engine.deadLetters(queue) == count);
  }

  private void awaitRows(int count) {
    await().atMost(SOON).until(() -> engine.rows(queue) == count);
  }

  /** It is acked, and so is what is published then. */
  private void letBeRetried(long id, String next) {
    outcomes.clear();
    letBeDue(id);
    publish(next);
    awaitRows(0);
  }

  /** The first become dead letters, and the last waits for its retry; returns their ids. */
  private List<Long> failAllAndRetryTheLast(String... texts) {
    for (String text : texts) {
      outcomes.put(text, DEAD);
    }
    outcomes.put(texts[texts.length - 1], RETRIED);
    List<Long> ids = publish(texts);
    awaitDead(texts.length - 1);
    awaitRetried(ids.get(ids.size() - 1));
    return ids;
  }

  @Test
  void whatIsPutBackGoesBeforeAYoungerOneThatWaitsForItsRetry() {
    engine.start(subscriber());
    List<Long> ids = failAllAndRetryTheLast("1", "2");

    putBack(1);

    awaitBegun("1", "2", "1");
    awaitRows(1);
    nothingMoreBegins();
    letBeRetried(ids.get(1), "3");
    assertThat(begun).containsExactly("1", "2", "1", "2", "3");
  }

  @Test
  void severalThatArePutBackGoInTheOrderOfTheirIds() {
    engine.start(subscriber());
    List<Long> ids = failAllAndRetryTheLast("1", "2", "3", "4");

    putBack(3);

    awaitBegun("1", "2", "3", "4", "1", "2", "3");
    awaitRows(1);
    letBeRetried(ids.get(3), "5");
    assertThat(begun).endsWith("3", "4", "5");
  }

  @Test
  void oneThatRunsIsNotDisturbedByOlderOnes() {
    engine.start(subscriber());
    List<Long> ids = failAllAndRetryTheLast("1", "2", "3", "4");
    outcomes.remove("3");
    gate("3");
    long third = ids.get(2);
    assertThat(worklist.where(messageId(third)).redrive(Redrive.by("ann")).done()).isEqualTo(1);
    awaitBegun("1", "2", "3", "4", "3");

    putBack(2);
    nothingMoreBegins();
    open("3");

    awaitBegun("1", "2", "3", "4", "3", "1", "2");
    awaitRows(1);
  }

  @Test
  void whatIsFoundWhileAYoungerOneRunsGoesBeforeItsRetry() {
    List<Long> ids = putBackWhileTheYoungerOneRuns(RETRIED);

    awaitBegun("1", "2", "1");
    awaitRows(1);
    letBeRetried(ids.get(1), "3");
    assertThat(begun).containsExactly("1", "2", "1", "2", "3");
  }

  @Test
  void theRetryComesAtItsTimeAfterWhatWentBeforeIt() {
    putBackWhileTheYoungerOneRuns(Outcome.retryAfter(Duration.ofSeconds(2)));

    awaitBegun("1", "2", "1", "2");
    awaitRows(0);
  }

  private List<Long> putBackWhileTheYoungerOneRuns(Outcome ofTheYounger) {
    engine.start(subscriber());
    outcomes.putAll(Map.of("1", DEAD, "2", ofTheYounger));
    gate("2");
    List<Long> ids = publish("1", "2");
    awaitDead(1);
    awaitBegun("1", "2");
    putBack(1);
    await().atMost(SOON).until(() -> found.contains(ids.get(0)));
    outcomes.clear();
    open("2");
    return ids;
  }

  @Test
  void theRetryWhoseTimeComesMeanwhileWaitsUntilTheOlderOneHasEnded() {
    engine.start(subscriber());
    List<Long> ids = failAllAndRetryTheLast("1", "2");
    gate("1");
    putBack(1);
    awaitBegun("1", "2", "1");

    outcomes.clear();
    letBeDue(ids.get(1));
    publish("3");
    nothingMoreBegins();
    open("1");

    awaitBegun("1", "2", "1", "2", "3");
    awaitRows(0);
  }

  @Test
  void whatIsPutBackAndFailsAgainIsNotOvertakenByTheYoungerOne() {
    engine.start(subscriber());
    List<Long> ids = failAllAndRetryTheLast("1", "2");
    outcomes.put("1", RETRIED);
    putBack(1);
    awaitBegun("1", "2", "1");
    awaitRetried(ids.get(0));

    letBeDue(ids.get(1));
    publish("3");
    nothingMoreBegins();
    outcomes.clear();
    letBeDue(ids.get(0));
    publish("4");

    awaitBegun("1", "2", "1", "1", "2", "3", "4");
    awaitRows(0);
  }

  /** Its handler is of an earlier time as owner, and what it decides changes nothing. */
  @Test
  void whatIsPutBackWaitsForAHandlerThatBeganBeforeItsBucketWasLost() {
    engine.start(subscriber());
    outcomes.put("1", DEAD);
    gate("2");
    publish("1", "2");
    awaitDead(1);
    awaitBegun("1", "2");
    loseAndRegain();

    putBack(1);
    nothingMoreBegins();
    open("2");

    awaitBegun("1", "2", "1", "2");
    awaitRows(0);
  }

  /** Its handler is of an earlier time as owner, and the dead letter is of the owner in between. */
  @Test
  void aKeyThatIsReleasedWaitsForAHandlerThatBeganBeforeItsBucketWasLost() {
    OutboxSubscriber subscriber = engine.start(subscriber().holdKeyOnDeadLetter());
    gate("1");
    List<Long> ids = publish("1", "2");
    awaitBegun("1");
    becomesADeadLetter(ids.get(0));
    loseAndRegain();
    await().atMost(SOON).until(() -> keysOnHold(subscriber) == 1);

    assertThat(worklist.where(queue(queue)).discard("ann", "of a test").done()).isEqualTo(1);
    await().atMost(SOON).until(() -> keysOnHold(subscriber) == 0);
    nothingMoreBegins();
    assertThat(begun).containsExactly("1");
    open("1");

    awaitBegun("1", "2");
    awaitRows(0);
  }

  private static int keysOnHold(OutboxSubscriber subscriber) {
    return subscriber.health().order().orElseThrow().keysOnHold();
  }

  private void becomesADeadLetter(long id) {
    String same =
        "queue, ordering_key, lease_token, type, payload, deliveries_count, attempts_count,"
            + " created_at, available_at";
    database.update(
        "insert into outbox_dlq (original_id, outbox, failure_reason, "
            + same
            + ") select id, 'public.outbox', 'rejected', "
            + same
            + " from outbox where id = ?",
        id);
    database.update("delete from outbox where id = ?", id);
  }

  private void loseAndRegain() {
    database.update(
        "insert into outbox_bucket_owners (queue, owner, lease_until, read_up_to, seen_up_to)"
            + " select ?, 'other', now() + interval '1 second', 0, max(id) from outbox",
        queue);
    database.update(
        "update outbox_buckets set owner = 'other', epoch = epoch + 1 where queue = ?", queue);
    await()
        .atMost(SOON)
        .until(
            () ->
                database.one(
                        Long.class,
                        "select count(*) from outbox_buckets where queue = ? and owner like 's%'",
                        queue)
                    == 64);
  }

  /** After a kill deliveries are counted before they begin, and the server refuses that. */
  @Test
  void whatIsPutBackAndCannotBeCountedHoldsUpTheYoungerOne() {
    OutboxSubscriber first = engine.start(subscriber());
    List<Long> ids = failAllAndRetryTheLast("1", "2");
    first.stop();
    database.update(
        "insert into outbox_bucket_owners"
            + " select ?, 'dead', now() - interval '1 second', max(id), 0 from outbox",
        queue);
    database.update("update outbox_buckets set owner = 'dead', epoch = 7 where queue = ?", queue);
    database.update(
        "create or replace function refuse_count() returns trigger language plpgsql as"
            + " $$begin raise exception 'refused'; end$$");
    database.update(
        "create trigger refuse_count before update on outbox for each row when (old.id = "
            + ids.get(0)
            + ") execute function refuse_count()");
    try {
      OutboxSubscriber second = engine.start(subscriber().name("second"));
      await().atMost(SOON).until(() -> second.health().order().orElseThrow().blockedKeys() == 1);
      putBack(1);
      await().atMost(SOON).until(() -> found.contains(ids.get(0)));
      outcomes.clear();
      letBeDue(ids.get(1));
      publish("3");
      nothingMoreBegins();
      assertThat(begun).containsExactly("1", "2");
    } finally {
      database.update("drop trigger refuse_count on outbox");
    }

    awaitBegun("1", "2", "1", "2", "3");
    awaitRows(0);
  }

  @Test
  void aStopLetsWhatWasPutBackEndAndTheNextOwnerGoesOnWithTheRetry() {
    OutboxSubscriber first = engine.start(subscriber());
    List<Long> ids = failAllAndRetryTheLast("1", "2");
    gate("1");
    putBack(1);
    awaitBegun("1", "2", "1");
    CompletableFuture<Void> stop = CompletableFuture.runAsync(first::stop);
    open("1");
    stop.join();
    assertThat(engine.rows(queue)).isEqualTo(1);

    engine.start(subscriber().name("second"));
    nothingMoreBegins();
    letBeRetried(ids.get(1), "3");
    assertThat(begun).containsExactly("1", "2", "1", "2", "3");
  }

  @Test
  void aDelayedOneThatFallsDueGoesBeforeTheRetryAndHoldsItsKeyIfItFails() {
    engine.start(subscriber().holdKeyOnDeadLetter());
    outcomes.putAll(Map.of("1", DEAD, "2", RETRIED));
    List<Long> ids =
        engine.inTransaction(
            List.of(
                message(queue, "1").deliverIn(Duration.ofHours(1)).build(),
                message(queue, "2").build()));
    awaitRetried(ids.get(1));

    database.update(
        "update outbox set available_at = clock_timestamp() + interval '1 second' where id = ?",
        ids.get(0));
    awaitDead(1);
    letBeDue(ids.get(1));
    publish("3");
    nothingMoreBegins();
    assertThat(begun).containsExactly("2", "1");
    outcomes.clear();
    putBack(1);

    awaitBegun("2", "1", "1", "2", "3");
    awaitRows(0);
  }

  @Test
  void aMessageThatIsCommittedLateGoesBeforeAYoungerOneThatWaitsForItsRetry() throws Exception {
    engine.start(subscriber());
    outcomes.put("2", RETRIED);
    try (Connection late = database.plain().getConnection()) {
      late.setAutoCommit(false);
      engine.publisher.publish(late, message(queue, "1").build());
      List<Long> ids = publish("2");
      awaitRetried(ids.get(0));
      late.commit();
    }

    awaitBegun("2", "1");
    awaitRows(1);
  }
}
