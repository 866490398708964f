package dev.outbox4j.dlq;

import static dev.outbox4j.dlq.DeadLetterFilter.any;
import static dev.outbox4j.dlq.DeadLetterFilter.failedBefore;
import static dev.outbox4j.dlq.DeadLetterFilter.ids;
import static dev.outbox4j.dlq.DeadLetterFilter.queue;
import static dev.outbox4j.dlq.DeadLetterFilter.reason;
import static dev.outbox4j.dlq.DeadLetterFilter.resolvedBefore;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.FailureReason;
import dev.outbox4j.Payload;
import dev.outbox4j.dlq.DeadLetterTrip.Outcome;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.postgresql.ds.PGSimpleDataSource;

/** The order of keys, letters that change meanwhile, and what the histories say of it. */
@ExtendWith(PostgresExtension.class)
class WorklistRacesIT {
  private final TestDatabase database;
  private final Letters letters;
  private final DeadLetterWorklist worklist;
  private final ExecutorService operators = Executors.newCachedThreadPool();

  WorklistRacesIT(TestDatabase database) {
    this.database = database;
    this.letters = new Letters(database);
    this.worklist = letters.worklist;
  }

  @BeforeEach
  void clear() {
    letters.clear();
  }

  @AfterEach
  void end() {
    operators.shutdownNow();
    letters.clear();
  }

  private static Redrive ann() {
    return Letters.by("ann");
  }

  private static Redrive bob() {
    return Letters.by("bob");
  }

  private static final String BY_ARRIVAL =
      "select id from outbox where ordering_key = 'key-1' order by available_at, id";

  // ---- the order of keys

  @Test
  void aLockedLetterHoldsBackTheYoungerOnesOfItsKey() throws Exception {
    letters.keyed("orders", 1, 6);
    try (Letters.Lock lock = letters.lock(1)) {
      assertThat(worklist.where(queue("orders")).redrive(ann()))
          .isEqualTo(new DeadLetterReport(3, 0, 3, List.of(), true));
    }
    assertThat(letters.outbox()).containsExactly(1002L, 1004L, 1006L);
    assertThat(worklist.where(queue("orders")).redrive(ann()).done()).isEqualTo(3);
    assertThat(database.list(Long.class, BY_ARRIVAL)).containsExactly(1001L, 1003L, 1005L);
  }

  @Test
  void aRefusedLetterHoldsBackTheYoungerOnesOfItsKeyAndNotTheOlderOnes() {
    letters.keyed("orders", 1, 250);
    Redrive redrive =
        ann()
            .checking(letter -> letter.summary().id() == 5 ? Optional.of("bad") : Optional.empty());

    DeadLetterReport dry = worklist.where(queue("orders")).dryRun(redrive);
    DeadLetterReport report = worklist.where(queue("orders")).redrive(redrive);

    assertThat(dry).isEqualTo(report);
    assertThat(database.list(Long.class, BY_ARRIVAL)).containsExactly(1001L, 1003L);
    assertThat(report.done()).isEqualTo(127);
    assertThat(report.refused()).isEqualTo(1);
    assertThat(report.passedBy()).isEqualTo(122);
  }

  @Test
  void aLetterWithAnObstacleHoldsBackTheYoungerOnesOfItsKey() {
    letters.keyed("orders", 1, 250);
    database.update("insert into outbox (id, queue, payload) values (1003, 'orders', '')");

    DeadLetterReport dry = worklist.where(queue("orders")).dryRun(ann());
    DeadLetterReport report = worklist.where(queue("orders")).redrive(ann());

    assertThat(dry).isEqualTo(report);
    assertThat(database.list(Long.class, BY_ARRIVAL)).containsExactly(1001L);
    assertThat(report.done()).isEqualTo(126);
  }

  @Test
  void aLetterThatTheServerRefusesHoldsBackTheYoungerOnesOfItsKey() {
    letters.keyed("orders", 1, 250);
    letters.trigger(
        "insert",
        "outbox",
        "if new.id = 1003 then raise exception 'no' using errcode = '23514'; end if; return new;");

    DeadLetterReport report = worklist.where(queue("orders")).redrive(ann());

    assertThat(database.list(Long.class, BY_ARRIVAL)).containsExactly(1001L);
    assertThat(report.done()).isEqualTo(126);
    assertThat(report.refused()).isEqualTo(1);
  }

  @Test
  void aKeyOfAnotherQueueIsAnotherKey() {
    letters.keyed("mail", 1, 2);
    letters.keyed("orders", 3, 4);
    database.update("insert into outbox (id, queue, payload) values (1001, 'mail', '')");

    assertThat(worklist.where(any()).redrive(ann()).done()).isEqualTo(3);
  }

  @Test
  void twoOperatorsKeepTheOrderOfAKey() throws Exception {
    letters.keyed("orders", 1, 200);
    letters.trigger(
        "update",
        "outbox_dlq",
        "if new.id = 1 and new.resolved_by = 'ann' then "
            + Letters.standStill()
            + " end if; return new;");
    CountDownLatch checking = new CountDownLatch(200);

    Future<DeadLetterReport> annRuns =
        operators.submit(() -> worklist.where(queue("orders")).redrive(ann()));
    letters.awaitStandstill();
    Future<DeadLetterReport> bobRuns =
        operators.submit(
            () ->
                worklist
                    .where(queue("orders"))
                    .redrive(
                        bob()
                            .checking(
                                letter -> {
                                  checking.countDown();
                                  return Optional.empty();
                                })));
    await().until(() -> checking.getCount() <= 100 || bobRuns.isDone());
    await()
        .during(Duration.ofMillis(300))
        .until(() -> database.count("outbox where ordering_key is not null") == 0);
    letters.open();

    assertThat(annRuns.get().done() + bobRuns.get().done()).isEqualTo(200);
    assertThat(database.list(Long.class, BY_ARRIVAL)).hasSize(100).isSorted();
  }

  @ParameterizedTest
  @ValueSource(strings = {"read\\ committed", "repeatable\\ read", "serializable"})
  void operatorsKeepTheOrderOfAKeyWhateverTheirIsolation(String isolation) throws Exception {
    letters.keyed("orders", 1, 1_000);
    letters.noteArrivals();
    PGSimpleDataSource sessions = database.plain();
    sessions.setOptions("-c default_transaction_isolation=" + isolation);
    List<Future<DeadLetterReport>> runs = new ArrayList<>();
    for (String who : List.of("ann", "bob", "cid")) {
      DeadLetterWorklist own =
          DeadLetterWorklist.of(PostgresOutbox.on(sessions, database.table()), Letters.TABLE);
      runs.add(
          operators.submit(
              () -> own.where(queue("orders")).redrive(Letters.by(who).perSecond(5_000))));
    }

    long done = 0;
    for (Future<DeadLetterReport> run : runs) {
      done += run.get().done();
    }
    assertThat(done).isEqualTo(1_000).isEqualTo(database.count("outbox"));
    assertThat(letters.arrivals("key-0")).hasSize(500).isSorted();
    assertThat(letters.arrivals("key-1")).hasSize(500).isSorted();
  }

  // ---- two who do something else

  /** Each letter is put back by one of them, or discarded by one, and counted once. */
  @Test
  void ofOperatorsWhoDoDifferentThingsAtOnceEachLetterHasOneFate() throws Exception {
    letters.plain("orders", 1, 2_000);
    DeadLetterSelection all = worklist.where(queue("orders"));
    List<Future<DeadLetterReport>> redrives = new ArrayList<>();
    List<Future<DeadLetterReport>> discards = new ArrayList<>();
    for (String who : List.of("ann", "bob")) {
      redrives.add(operators.submit(() -> all.redrive(Letters.by(who).perSecond(200))));
    }
    await().until(() -> database.count("outbox") > 0);
    for (String who : List.of("cid", "dee")) {
      discards.add(operators.submit(() -> all.discard(who, "no use")));
    }

    long redriven = done(redrives);
    long discarded = done(discards);

    assertThat(redriven + discarded).isEqualTo(2_000);
    assertThat(redriven).isPositive();
    assertThat(discarded).isPositive();
    assertThat(letters.unresolved()).isEmpty();
    assertThat(database.count("outbox")).isEqualTo(redriven);
    assertThat(database.count("outbox_dlq_trips")).isEqualTo(redriven);
    assertThat(database.count("outbox_dlq where resolution = 'redriven' and redrives_count = 1"))
        .isEqualTo(redriven);
    assertThat(
            database.count(
                "outbox_dlq where resolution = 'discarded: no use' and redrives_count = 0"))
        .isEqualTo(discarded);
    assertThat(
            database.count(
                "outbox o join outbox_dlq d on d.original_id = o.id and d.resolution = 'redriven'"))
        .isEqualTo(redriven);
    assertThat(worklist.audit(10).stream().mapToLong(DeadLetterAction::done).sum())
        .isEqualTo(2_000);
  }

  private static long done(List<Future<DeadLetterReport>> runs) throws Exception {
    long done = 0;
    for (Future<DeadLetterReport> run : runs) {
      DeadLetterReport report = run.get();
      assertThat(report.finished()).isTrue();
      assertThat(report.refused()).isZero();
      done += report.done();
    }
    return done;
  }

  @Test
  void ofTwoWhoPurgeAtOnceEachLetterIsDeletedAndCountedOnce() throws Exception {
    letters.plain("orders", 1, 3_000);
    database.update("update outbox_dlq set resolved_at = now() where id > 1000");
    List<Future<DeadLetterReport>> purges = new ArrayList<>();
    for (String who : List.of("ann", "bob", "cid")) {
      purges.add(operators.submit(() -> worklist.where(queue("orders")).purge(who)));
    }

    assertThat(done(purges)).isEqualTo(2_000);
    assertThat(database.count("outbox_dlq")).isEqualTo(1_000);
    assertThat(letters.unresolved()).hasSize(1_000);
    assertThat(worklist.audit(10).stream().mapToLong(DeadLetterAction::done).sum())
        .isEqualTo(2_000);
  }

  /** The second one comes while the first one's statement has the letter in hand. */
  @Test
  void ofTwoWhoChangeALetterAtOnceOneSendsIt() throws Exception {
    letters.plain("orders", 1, 1);
    letters.trigger(
        "update",
        "outbox_dlq",
        "if new.resolved_by = 'ann' then " + Letters.standStill() + " end if; return new;");
    Future<DeadLetterReport> annChanges =
        operators.submit(
            () -> worklist.redrive(1, DeadLetterEdit.payload(Payload.ofText("ann's")), ann()));
    letters.awaitStandstill();

    assertThat(worklist.redrive(1, DeadLetterEdit.payload(Payload.ofText("bob's")), bob()))
        .isEqualTo(new DeadLetterReport(0, 0, 1, List.of(), true));
    assertThat(worklist.where(ids(1)).discard("bob", "no use"))
        .isEqualTo(new DeadLetterReport(0, 0, 1, List.of(), true));
    letters.open();

    assertThat(annChanges.get().done()).isEqualTo(1);
    assertThat(database.list(String.class, "select convert_from(payload, 'UTF8') from outbox"))
        .containsExactly("ann's");
    assertThat(worklist.history(1)).extracting(DeadLetterTrip::redrivenBy).containsExactly("ann");
    assertThatThrownBy(() -> worklist.redrive(1, DeadLetterEdit.type("other"), bob()))
        .hasMessage("Dead letter 1 was resolved by ann: changed and redriven");
  }

  // ---- what changes meanwhile

  @Test
  void whatHasFailedAnewForAnotherReasonIsNotPutBackAgain() {
    letters.plain("orders", 1, 300);
    AtomicBoolean first = new AtomicBoolean(true);

    DeadLetterReport report =
        worklist
            .where(queue("orders").and(reason(FailureReason.RETRY_TERMINAL)))
            .redrive(
                ann()
                    .checking(
                        letter -> {
                          if (first.getAndSet(false)) {
                            worklist.where(ids(299)).redrive(bob());
                            letters.fail(1299, FailureReason.REJECTED, "the customer is gone");
                          }
                          return Optional.empty();
                        }));

    assertThat(report.done()).isEqualTo(299);
    assertThat(report.passedBy()).isEqualTo(1);
    assertThat(letters.unresolved()).containsExactly(299L);
    assertThat(worklist.history(299)).extracting(DeadLetterTrip::redrivenBy).containsExactly("bob");
  }

  @Test
  void whatFailsDuringTheRunBehindWhereItLooksIsNotOneOfItsLetters() {
    letters.plain("orders", 1, 2_500);
    AtomicBoolean first = new AtomicBoolean(true);

    DeadLetterReport report =
        worklist
            .where(queue("orders"))
            .redrive(
                ann()
                    .checking(
                        letter -> {
                          if (first.getAndSet(false)) {
                            worklist.where(ids(2_400)).redrive(bob());
                            letters.fail(3_400, FailureReason.REJECTED, "again");
                          }
                          return Optional.empty();
                        }));

    assertThat(report.done()).isEqualTo(2_499);
    assertThat(letters.unresolved()).containsExactly(2_400L);
  }

  @Test
  void whatIsSentIsWhatWasChecked() {
    letters.plain("orders", 1, 2);
    List<String> checked = new ArrayList<>();

    worklist
        .where(queue("orders"))
        .redrive(
            ann()
                .checking(
                    letter -> {
                      checked.add(new String(letter.payload().bytes(), UTF_8));
                      if (letter.summary().id() == 2) {
                        worklist.redrive(
                            1, DeadLetterEdit.payload(Payload.ofText("poison")), bob());
                        letters.fail(1001, FailureReason.REJECTED, "poison");
                      }
                      return Optional.empty();
                    }));

    assertThat(checked).containsExactly("body 1", "body 2");
    assertThat(letters.outbox()).containsExactly(1002L);
    assertThat(letters.unresolved()).containsExactly(1L);
  }

  @Test
  void aChangeIsGivenUpIfTheLetterHasFailedAnewMeanwhile() {
    letters.plain("orders", 1, 1);

    DeadLetterReport report =
        worklist.redrive(
            1,
            DeadLetterEdit.type("other"),
            ann()
                .checking(
                    letter -> {
                      worklist.where(ids(1)).redrive(bob());
                      letters.fail(1001, FailureReason.REJECTED, "again");
                      return Optional.empty();
                    }));

    assertThat(report).isEqualTo(new DeadLetterReport(0, 0, 1, List.of(), true));
    assertThat(letters.unresolved()).containsExactly(1L);
    assertThat(letters.outbox()).isEmpty();
  }

  @Test
  void whatHasFailedAnewIsNotDiscarded() throws Exception {
    letters.plain("orders", 1, 1000);
    letters.trigger(
        "update",
        "outbox_dlq",
        "if new.id = 1 then " + Letters.standStill() + " end if; return new;");

    Future<DeadLetterReport> discard =
        operators.submit(
            () -> worklist.where(reason(FailureReason.RETRY_TERMINAL)).discard("ann", "transient"));
    letters.awaitStandstill();
    worklist.where(ids(999)).redrive(bob());
    letters.fail(1999, FailureReason.REJECTED, "a new failure");
    letters.open();

    assertThat(discard.get().done()).isEqualTo(999);
    assertThat(discard.get().passedBy()).isEqualTo(1);
    assertThat(letters.unresolved()).containsExactly(999L);
  }

  @Test
  void whatHasFailedAnewIsNotPurged() throws Exception {
    letters.plain("orders", 1, 1000);
    letters.trigger(
        "delete",
        "outbox_dlq",
        "if old.id = 1 then " + Letters.standStill() + " end if; return old;");

    Future<DeadLetterReport> purge =
        operators.submit(
            () -> worklist.where(reason(FailureReason.RETRY_TERMINAL)).purgeUnresolvedToo("ann"));
    letters.awaitStandstill();
    worklist.where(ids(999)).redrive(bob());
    letters.fail(1999, FailureReason.REJECTED, "a new failure");
    letters.open();

    assertThat(purge.get().done()).isEqualTo(999);
    assertThat(letters.unresolved()).containsExactly(999L);
  }

  // ---- which message is which letter

  @Test
  void anotherMessageOfTheSameIdIsALetterOfItsOwn() {
    letters.keyed("orders", 1, 2);
    worklist.where(any()).redrive(ann());
    database.update("delete from outbox");
    database.update(
        """
        insert into outbox (id, queue, payload, ordering_key, lease_token) values
          (1001, 'mail', 'mail', 'k', 0), (1002, 'orders', 'another', 'key-0', 20)
        """);

    letters.fail(1001, FailureReason.REJECTED, "mail failed");
    letters.fail(1002, FailureReason.REJECTED, "another failed");

    assertThat(
            database.list(
                String.class,
                "select queue || ' ' || convert_from(payload, 'UTF8') from outbox_dlq"
                    + " where resolved_at is null order by original_id"))
        .containsExactly("mail mail", "orders another");
    assertThat(database.count("outbox_dlq")).isEqualTo(4);
    assertThat(worklist.find(1).orElseThrow().payload()).isEqualTo(Payload.ofText("body 1"));
  }

  @Test
  void aChangedMessageThatFailsAgainIsTheSameLetter() {
    letters.keyed("orders", 1, 1);
    worklist.redrive(1, DeadLetterEdit.payload(Payload.ofText("new")), ann());

    letters.fail(1001, FailureReason.REJECTED, "again");

    assertThat(database.count("outbox_dlq")).isEqualTo(1);
    DeadLetterSummary letter = worklist.find(1).orElseThrow().summary();
    assertThat(letter.resolution()).isEmpty();
    assertThat(letter.note()).isEmpty();
    assertThat(worklist.find(1).orElseThrow().payload()).isEqualTo(Payload.ofText("new"));
  }

  // ---- histories

  @Test
  void aTripThatFailedAgainIsToldSoAfterTheLetterIsDiscarded() {
    letters.plain("orders", 1, 1);
    worklist.where(ids(1)).redrive(ann());
    letters.fail(1001, FailureReason.REJECTED, "again");
    worklist.where(ids(1)).discard("ann", "hopeless");

    assertThat(worklist.history(1))
        .extracting(DeadLetterTrip::outcome)
        .containsExactly(Outcome.FAILED_AGAIN);
  }

  @Test
  void aLetterWhoseMessageWaitsIsNotPurged() {
    letters.plain("orders", 1, 1);
    worklist.where(ids(1)).redrive(ann());
    Instant aMonthAgo = Instant.now().minus(30, ChronoUnit.DAYS);
    Instant soon = Instant.now().plus(1, ChronoUnit.HOURS);

    assertThat(worklist.where(resolvedBefore(aMonthAgo)).purge("cron").done()).isZero();
    assertThat(worklist.where(failedBefore(soon)).purge("cron").refusals())
        .containsExactly(new DeadLetterReport.Refusal(1, "a message with its id is in the outbox"));

    letters.fail(1001, FailureReason.REJECTED, "again");
    assertThat(worklist.find(1).orElseThrow().summary().redrives()).isEqualTo(1);
    assertThat(worklist.history(1)).hasSize(1);
    worklist.where(ids(1)).discard("ann", "no");
    assertThat(worklist.where(resolvedBefore(soon)).purge("cron").done()).isEqualTo(1);
    assertThat(database.count("outbox_dlq_trips")).isZero();
  }

  @Test
  void whatIsResolvedIsTheFilterOfAPurgeAndOfNothingThatIsOpen() {
    letters.plain("orders", 1, 3);
    database.update("update outbox_dlq set resolved_at = now() - interval '31 days' where id = 1");
    database.update("update outbox_dlq set resolved_at = now() where id = 2");
    DeadLetterFilter old = resolvedBefore(Instant.now().minus(30, ChronoUnit.DAYS));

    assertThat(worklist.where(old).page(10).letters())
        .extracting(DeadLetterSummary::id)
        .containsExactly(1L);
    assertThat(worklist.where(old).discard("ann", "x").done()).isZero();
    assertThat(worklist.where(old).purgeUnresolvedToo("ann").done()).isEqualTo(1);
    assertThat(database.count("outbox_dlq")).isEqualTo(2);
  }

  @Test
  void whatIsLeftOfAnOlderLetterIsNotTheHistoryOfOneWithItsId() {
    letters.plain("orders", 1, 2);
    worklist.where(ids(1)).redrive(ann());
    database.update("delete from outbox");
    database.update("truncate outbox_dlq");
    letters.plain("orders", 1, 2);

    assertThat(worklist.history(1)).isEmpty();
    assertThat(worklist.where(ids(1)).redrive(ann()).done()).isEqualTo(1);
    assertThat(worklist.history(1)).hasSize(1);
  }

  @Test
  void redrivesByHandAreCountedAndHaveNoTrip() {
    letters.plain("orders", 1, 1);
    database.update(
        """
        with redriven as (
          update outbox_dlq
          set resolved_at = now(), resolved_by = 'bob', resolution = 'redriven',
            redrives_count = redrives_count + 1
          where id = 1 and resolved_at is null
          returning *)
        insert into outbox (id, lease_token, queue, type, ordering_key, payload, headers, timer_id)
        select original_id, lease_token, queue, type, ordering_key, payload, headers, timer_id
        from redriven
        """);
    letters.fail(1001, FailureReason.REJECTED, "again");
    worklist.where(ids(1)).redrive(ann());

    assertThat(worklist.history(1)).extracting(DeadLetterTrip::number).containsExactly(2);
  }

  // ---- what a dry run says, and what subscribers hear

  @Test
  void aDryRunSaysWhatBecomesOfTwins() {
    letters.plain("orders", 1, 4);
    database.update("update outbox_dlq set timer_id = 'timer' where id in (1, 2)");
    database.update("update outbox_dlq set original_id = 1003 where id = 4");

    DeadLetterReport dry = worklist.where(queue("orders")).dryRun(ann());

    assertThat(dry).isEqualTo(worklist.where(queue("orders")).redrive(ann()));
    assertThat(dry.done()).isEqualTo(2);
    assertThat(dry.refused()).isEqualTo(2);
  }

  @Test
  void subscribersAreToldOfWhatIsBack() throws Exception {
    letters.plain("orders", 1, 2);
    try (Connection listener = database.plain().getConnection();
        Statement statement = listener.createStatement()) {
      statement.execute("listen outbox_outbox");

      worklist.where(ids(1)).redrive(ann());
      assertThat(heard(listener)).containsExactly("orders");
      worklist.redrive(2, DeadLetterEdit.type("t"), ann());
      assertThat(heard(listener)).containsExactly("orders");
    }
  }

  private static List<String> heard(Connection listener) throws Exception {
    PGNotification[] all = listener.unwrap(PGConnection.class).getNotifications(5_000);
    List<String> heard = new ArrayList<>();
    for (PGNotification each : all == null ? new PGNotification[0] : all) {
      heard.add(each.getParameter());
    }
    return heard;
  }
}
