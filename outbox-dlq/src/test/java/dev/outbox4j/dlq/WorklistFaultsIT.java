package dev.outbox4j.dlq;

import static dev.outbox4j.dlq.DeadLetterFilter.any;
import static dev.outbox4j.dlq.DeadLetterFilter.ids;
import static dev.outbox4j.dlq.DeadLetterFilter.queue;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.Payload;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** No row, check, error, reason or slow statement ends a run, and none is lost by one. */
@ExtendWith(PostgresExtension.class)
class WorklistFaultsIT {
  private final TestDatabase database;
  private final Letters letters;
  private final DeadLetterWorklist worklist;

  WorklistFaultsIT(TestDatabase database) {
    this.database = database;
    this.letters = new Letters(database);
    this.worklist = letters.worklist;
  }

  @BeforeEach
  @AfterEach
  void clear() {
    letters.clear();
  }

  private static Redrive ann() {
    return Letters.by("ann");
  }

  private static DeadLetterCheck refusing(long id, Callable<Optional<String>> refusal) {
    return letter -> letter.summary().id() == id ? refusal.call() : Optional.empty();
  }

  private DeadLetterAction audit() {
    return worklist.audit(1).get(0);
  }

  // ---- what does not arrive

  @Test
  void aMessageThatATriggerSwallowsIsStillALetter() {
    letters.plain("orders", 1, 3);
    letters.trigger("insert", "outbox", "if new.id = 1002 then return null; end if; return new;");

    DeadLetterReport report = worklist.where(queue("orders")).redrive(ann());

    assertThat(report.done()).isEqualTo(2);
    assertThat(report.refusals()).hasSize(1);
    assertThat(report.refusals().get(0).reason())
        .startsWith("the server refuses it: ")
        .contains("not every message came back to the outbox");
    assertThat(letters.unresolved()).containsExactly(2L);
    assertThat(letters.outbox()).containsExactly(1001L, 1003L);
    assertThat(worklist.history(2)).isEmpty();
    assertThat(audit().done()).isEqualTo(2);
    assertThat(audit().refused()).isEqualTo(1);
  }

  @Test
  void aLetterThatATriggerLeavesAsItIsIsNotTakenForDone() {
    letters.plain("orders", 1, 3);
    letters.trigger("update", "outbox_dlq", "if new.id = 2 then return null; end if; return new;");

    DeadLetterReport report = worklist.where(queue("orders")).redrive(ann());

    assertThat(report.done()).isEqualTo(2);
    assertThat(report.refused()).isEqualTo(1);
    assertThat(letters.outbox()).containsExactly(1001L, 1003L);
  }

  @Test
  void aChangedMessageThatATriggerSwallowsIsStillALetter() {
    letters.plain("orders", 1, 1);
    letters.trigger("insert", "outbox", "return null;");

    DeadLetterReport report =
        worklist.redrive(1, DeadLetterEdit.payload(Payload.ofText("new")), ann());

    assertThat(report.done()).isZero();
    assertThat(report.refused()).isEqualTo(1);
    assertThat(letters.unresolved()).containsExactly(1L);
  }

  /** As where somebody has divided the outbox by queue, and dropped the part of one. */
  @Test
  void aQueueThatTheOutboxHasNoPlaceForIsNamedAndStopsNoOther() {
    database.update("drop table if exists parted");
    database.update(
        "create table parted (like outbox including defaults) partition by list (queue)");
    database.update("create table parted_orders partition of parted for values in ('orders')");
    try {
      letters.plain("gone", 1, 2);
      letters.plain("orders", 3, 5);
      database.update("update outbox_dlq set outbox = 'public.parted'");
      DeadLetterWorklist list =
          DeadLetterWorklist.of(
              PostgresOutbox.on(database.plain(), OutboxTable.named("parted")), Letters.TABLE);

      DeadLetterReport report = list.where(any()).redrive(ann());

      assertThat(report.done()).isEqualTo(3);
      assertThat(report.refusals())
          .hasSize(2)
          .allSatisfy(
              refusal -> assertThat(refusal.reason()).startsWith("the server refuses it: "));
      assertThat(letters.unresolved()).containsExactly(1L, 2L);
      assertThat(database.count("parted")).isEqualTo(3);
      assertThat(database.count("outbox_dlq_trips")).isEqualTo(3);
      assertThat(list.find(1).orElseThrow().summary().note().orElseThrow())
          .startsWith("not redriven: the server refuses it: ")
          .contains("23514");
    } finally {
      database.update("drop table parted");
    }
  }

  // ---- what the disk has lost

  /** Takes a part of a letter's payload away, as a broken disk does. */
  private void losesAPartOfItsPayload(long id) {
    database.update(
        "update outbox_dlq set payload = (select string_agg(sha256(convert_to(n::text, 'UTF8')), '')"
            + " from generate_series(1, 500) n) where id = ?",
        id);
    String parts =
        database.one(
            String.class,
            "select reltoastrelid::regclass::text from pg_class"
                + " where oid = 'outbox_dlq'::regclass");
    // else the server refuses to write such a table
    String is = "update pg_class set relkind = '%s' where oid = '%s'::regclass";
    database.update(is.formatted('r', parts));
    database.update("delete from " + parts + " where chunk_seq = 1");
    database.update(is.formatted('t', parts));
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aPayloadThatTheServerCannotReadStopsNoOtherLetter(boolean checked) {
    letters.plain("orders", 1, 5);
    losesAPartOfItsPayload(3);
    Redrive redrive = checked ? ann().checking(letter -> Optional.empty()) : ann();

    DeadLetterReport report = worklist.where(queue("orders")).redrive(redrive);

    assertThat(report.done()).isEqualTo(4);
    assertThat(report.refused()).isEqualTo(1);
    assertThat(report.passedBy()).isZero();
    assertThat(report.finished()).isTrue();
    assertThat(report.refusals().get(0).id()).isEqualTo(3);
    assertThat(report.refusals().get(0).reason())
        .startsWith("the server refuses it: ")
        .contains("XX001");
    assertThat(letters.unresolved()).containsExactly(3L);
    assertThat(letters.outbox()).containsExactly(1001L, 1002L, 1004L, 1005L);
    assertThat(audit().status()).isEqualTo("completed");
    assertThat(audit().refused()).isEqualTo(1);
    assertThat(worklist.where(queue("orders").and(ids(3))).discard("ann", "lost").done())
        .isEqualTo(1);
  }

  /** It holds back the younger ones of its key, as each does that stays. */
  @Test
  void aPayloadThatTheServerCannotReadHoldsItsKeyBack() {
    letters.keyed("orders", 1, 6);
    losesAPartOfItsPayload(3);

    DeadLetterReport report =
        worklist.where(queue("orders")).redrive(ann().checking(letter -> Optional.empty()));

    assertThat(report.done()).isEqualTo(4);
    assertThat(report.refused()).isEqualTo(1);
    assertThat(report.passedBy()).isEqualTo(1);
    assertThat(letters.unresolved()).containsExactly(3L, 5L);
  }

  // ---- what is locked

  @Test
  void aLockedLetterThatACheckRefusesStopsNoOther() throws Exception {
    letters.plain("orders", 1, 5);
    try (Letters.Lock lock = letters.lock(1)) {
      DeadLetterReport report =
          worklist
              .where(queue("orders"))
              .redrive(ann().checking(refusing(1, () -> Optional.of("bad"))));

      assertThat(report.done()).isEqualTo(4);
      assertThat(report.refusals()).containsExactly(new DeadLetterReport.Refusal(1, "bad"));
    }
    assertThat(audit().status()).isEqualTo("completed");
  }

  /** In one batch, and in one each. */
  @ParameterizedTest
  @ValueSource(ints = {1_000, 10})
  void aLetterOfWhichACheckMeetsALockIsPassedByAndHoldsItsKeyBack(int perSecond) {
    letters.keyed("orders", 1, 6);

    DeadLetterReport report =
        worklist
            .where(queue("orders"))
            .redrive(
                ann()
                    .perSecond(perSecond)
                    .checking(
                        refusing(
                            3,
                            () -> {
                              throw new OutboxStoreException(
                                  "locked", Fault.TIMEOUT, false, "55P03", null);
                            })));

    assertThat(report).isEqualTo(new DeadLetterReport(4, 0, 2, List.of(), true));
    assertThat(letters.unresolved()).containsExactly(3L, 5L);
    assertThat(audit().status()).isEqualTo("completed");
    assertThat(worklist.find(3).orElseThrow().summary().note()).isEmpty();
  }

  @Test
  void aTimerThatIsBeingPublishedStopsNoOther() throws Exception {
    letters.plain("orders", 1, 5);
    database.update("update outbox_dlq set timer_id = 'timer-' || id");
    try (Connection stranger = database.plain().getConnection();
        Statement publish = stranger.createStatement()) {
      stranger.setAutoCommit(false);
      publish.execute(
          "insert into outbox (queue, payload, timer_id) values ('orders', '', 'timer-2')");

      DeadLetterReport report = worklist.where(queue("orders")).redrive(ann());

      assertThat(report).isEqualTo(new DeadLetterReport(4, 0, 1, List.of(), true));
      stranger.rollback();
    }
    assertThat(letters.unresolved()).containsExactly(2L);
  }

  @Test
  void aDiscardAndAPurgeSayWhatTheyPassedBy() throws Exception {
    letters.plain("orders", 1, 3);
    try (Letters.Lock lock = letters.lock(1)) {
      assertThat(worklist.where(queue("orders")).discard("ann", "x"))
          .isEqualTo(new DeadLetterReport(2, 0, 1, List.of(), true));
      assertThat(audit().passedBy()).isEqualTo(1);
      assertThat(worklist.where(queue("orders")).purgeUnresolvedToo("ann"))
          .isEqualTo(new DeadLetterReport(2, 0, 1, List.of(), true));
    }
  }

  @Test
  void aLetterThatTheServerWillNotDiscardStopsNoOther() {
    letters.plain("orders", 1, 5);
    letters.trigger(
        "update",
        "outbox_dlq",
        "if new.id = 2 then raise exception 'no' using errcode = '23514'; end if; return new;");

    DeadLetterReport report = worklist.where(queue("orders")).discard("ann", "x");

    assertThat(report.done()).isEqualTo(4);
    assertThat(report.refusals()).extracting(DeadLetterReport.Refusal::id).containsExactly(2L);
  }

  @Test
  void aStateOfATriggersOwnIsOfItsLetterOnly() {
    letters.plain("orders", 1, 5);
    letters.trigger(
        "insert",
        "outbox",
        "if new.id = 1002 then raise exception 'no' using errcode = 'OR001'; end if; return new;");

    assertThat(worklist.where(queue("orders")).redrive(ann()).done()).isEqualTo(4);
    assertThat(note(2)).startsWith("not redriven: the server refuses it: ").contains("OR001");

    letters.trigger("update", "outbox_dlq", "raise exception 'no' using errcode = 'OR002';");
    DeadLetterReport discarded = worklist.where(queue("orders")).discard("ann", "x");
    assertThat(discarded.refusals()).extracting(DeadLetterReport.Refusal::id).containsExactly(2L);
  }

  // ---- what checks say and do

  @Test
  void reasonsAreMadeStorable() {
    letters.plain("orders", 1, 4);

    DeadLetterReport report =
        worklist
            .where(queue("orders"))
            .redrive(
                ann()
                    .checking(refusing(1, () -> Optional.of("a NUL \0")))
                    .checking(refusing(2, () -> Optional.of("half a pair \ud800")))
                    .checking(refusing(3, () -> Optional.of("\u00e9".repeat(5_000_000)))));

    assertThat(report.done()).isEqualTo(1);
    assertThat(note(1)).isEqualTo("not redriven: a NUL ?");
    assertThat(note(2)).isEqualTo("not redriven: half a pair ?");
    assertThat(note(3).getBytes(StandardCharsets.UTF_8)).hasSizeBetween(1_900, 2_000);
    assertThat(report.refusals().get(2).reason().length()).isLessThan(2_001);
  }

  private String note(long id) {
    return worklist.find(id).orElseThrow().summary().note().orElseThrow();
  }

  @Test
  @SuppressWarnings("NullAway") // it is what the test is about
  void aCheckThatReturnsNullOrThrowsAnErrorRefusesItsLetterOnly() {
    letters.plain("orders", 1, 4);

    DeadLetterReport report =
        worklist
            .where(queue("orders"))
            .redrive(
                ann()
                    .checking(refusing(1, () -> null))
                    .checking(
                        refusing(
                            2,
                            () -> {
                              throw new StackOverflowError();
                            }))
                    .checking(
                        refusing(
                            3,
                            () -> {
                              throw new NoClassDefFoundError("x");
                            })));

    assertThat(report.done()).isEqualTo(1);
    assertThat(report.refusals())
        .extracting(DeadLetterReport.Refusal::reason)
        .containsExactly(
            "a check returned null",
            "a check threw java.lang.StackOverflowError",
            "a check threw java.lang.NoClassDefFoundError");
  }

  @Test
  void anErrorOfTheVirtualMachineEndsTheRunAndTheAuditSaysSo() {
    letters.plain("orders", 1, 1);

    assertThatThrownBy(
            () ->
                worklist
                    .where(queue("orders"))
                    .redrive(
                        ann()
                            .checking(
                                letter -> {
                                  throw new InternalError("a\0b");
                                })))
        .isInstanceOf(InternalError.class);

    assertThat(audit().status()).isEqualTo("failed");
    assertThat(audit().error()).contains("java.lang.InternalError: a?b");
    assertThat(audit().endedAt()).isPresent();
  }

  @Test
  void whatIsRefusedIsCountedAndNotedAlsoIfABatchFallsApart() {
    letters.plain("orders", 1, 5);
    letters.trigger(
        "insert",
        "outbox",
        "if new.id = 1002 then raise exception 'no' using errcode = '23514'; end if; return new;");
    database.update(
        "insert into outbox_dlq_audit (outbox, action, acted_by, filter)"
            + " values ('other.outbox', 'redrive', 'bob', 'x')");

    DeadLetterReport report =
        worklist
            .where(queue("orders"))
            .redrive(ann().checking(refusing(1, () -> Optional.of("bad"))));

    assertThat(report.done()).isEqualTo(3);
    assertThat(report.refused()).isEqualTo(2);
    assertThat(worklist.audit(10)).hasSize(1);
    assertThat(audit().done()).isEqualTo(3);
    assertThat(audit().refused()).isEqualTo(2);
    assertThat(note(1)).isEqualTo("not redriven: bad");
    assertThat(note(2)).startsWith("not redriven: the server refuses it: ");
  }

  @Test
  void anObstacleIsNotedAtTheLetter() {
    letters.plain("orders", 1, 1);
    database.update("insert into outbox (id, queue, payload) values (1001, 'orders', '')");

    worklist.where(queue("orders")).redrive(ann());

    assertThat(note(1)).isEqualTo("not redriven: a message with its id is in the outbox");
  }

  // ---- editing

  @Test
  void aChangeThatIsRefusedIsInTheReportAndInTheAudit() {
    letters.plain("orders", 1, 2);
    letters.trigger(
        "insert",
        "outbox",
        "if new.id = 1002 then raise exception 'no' using errcode = '23514'; end if; return new;");

    assertThat(
            worklist
                .redrive(1, DeadLetterEdit.type("x"), ann().checking(letter -> Optional.of("a\0")))
                .refusals())
        .containsExactly(new DeadLetterReport.Refusal(1, "a?"));
    assertThat(audit().action()).isEqualTo("edit");
    assertThat(audit().refused()).isEqualTo(1);
    assertThat(worklist.redrive(2, DeadLetterEdit.type("x"), ann()).refused()).isEqualTo(1);
    assertThat(letters.unresolved()).containsExactly(1L, 2L);
  }

  @Test
  void headersThatAreNotChangedStayAsTheyAre() {
    letters.plain("orders", 1, 1);
    database.update(
        """
        update outbox_dlq set headers = '{"n": 5, "o": {"a": 1}, "z": null, "r": "r"}'
        """);

    worklist.redrive(1, DeadLetterEdit.header("h", "v").andWithoutHeader("r"), ann());

    assertThat(
            database.one(
                Boolean.class,
                """
                select headers = '{"n": 5, "o": {"a": 1}, "z": null, "h": "v"}' from outbox
                """))
        .isTrue();
  }

  // ---- time and connections

  @Test
  void aBatchThatTakesTooLongIsDoneInSmallerOnes() {
    letters.plain("orders", 1, 100);
    letters.trigger("insert", "outbox", "perform pg_sleep(0.07); return new;");

    assertThat(worklist.where(queue("orders")).redrive(ann()).done()).isEqualTo(100);
    assertThat(database.count("outbox")).isEqualTo(100);
  }

  @Test
  void aStatementOfWhichTheOutcomeIsUnknownIsNotRepeated() {
    letters.plain("orders", 1, 3);
    letters.trigger(
        "insert", "outbox", "raise exception 'lost' using errcode = '40003'; return new;");

    assertThatThrownBy(() -> worklist.where(queue("orders")).redrive(ann()))
        .isInstanceOfSatisfying(
            OutboxStoreException.class, e -> assertThat(e.outcomeUnknown()).isTrue());
    assertThat(audit().status()).isEqualTo("failed");
  }

  @Test
  void aSessionThatDiesLosesAndDoublesNothing() {
    letters.plain("orders", 1, 300);
    letters.trigger(
        "insert",
        "outbox",
        "if new.id = 1150 and not exists (select from gate) then"
            + " perform pg_terminate_backend(pg_backend_pid()); end if; return new;");

    assertThatThrownBy(() -> worklist.where(queue("orders")).redrive(ann()))
        .isInstanceOf(OutboxStoreException.class);
    assertThat(audit().done()).isEqualTo(database.count("outbox")).isEqualTo(100);
    letters.open();

    assertThat(worklist.where(queue("orders")).redrive(ann()).done()).isEqualTo(200);
    assertThat(database.count("outbox")).isEqualTo(300);
    assertThat(database.count("outbox_dlq_trips")).isEqualTo(300);
  }

  @Test
  void anInterruptWithABusyPoolIsToldByTheReportAndTheAudit() throws Exception {
    letters.plain("orders", 1, 300);
    try (HikariDataSource pool = database.pool(1)) {
      DeadLetterWorklist list =
          DeadLetterWorklist.of(PostgresOutbox.on(pool, database.table()), Letters.TABLE);
      FutureTask<DeadLetterReport> run =
          new FutureTask<>(() -> list.where(queue("orders")).redrive(ann().perSecond(20)));
      Thread thread = new Thread(run);
      thread.start();
      await().until(() -> database.count("outbox") >= 2);
      try (Connection busy = pool.getConnection()) {
        assertThat(busy.isValid(1)).isTrue();
        thread.interrupt();
        await().until(() -> pool.getHikariPoolMXBean().getThreadsAwaitingConnection() <= 1);
      }
      DeadLetterReport report = run.get();

      assertThat(report.finished()).isFalse();
      assertThat(report.done()).isEqualTo(database.count("outbox"));
      assertThat(audit().status()).isEqualTo("stopped");
      assertThat(audit().done()).isEqualTo(report.done());
    }
  }

  @Test
  void anInterruptInACheckMarksNoLetter() throws Exception {
    letters.plain("orders", 1, 100);
    CountDownLatch checking = new CountDownLatch(1);
    FutureTask<DeadLetterReport> run =
        new FutureTask<>(
            () ->
                worklist
                    .where(queue("orders"))
                    .redrive(
                        ann()
                            .checking(
                                letter -> {
                                  if (letter.summary().id() == 40) {
                                    checking.countDown();
                                    new CountDownLatch(1).await();
                                  }
                                  return Optional.empty();
                                })));
    Thread thread = new Thread(run);
    thread.start();
    checking.await();
    thread.interrupt();

    assertThat(run.get()).isEqualTo(new DeadLetterReport(0, 0, 0, List.of(), false));
    assertThat(database.count("outbox_dlq where resolution is not null")).isZero();
    assertThat(audit().status()).isEqualTo("stopped");
  }

  @Test
  @Tag("large") // as long as it is waited
  void aTurnThatIsNotGivenBackIsWaitedForOnce() throws Exception {
    letters.keyed("orders", 1, 250);
    try (Connection stranger = database.plain().getConnection();
        Statement lock = stranger.createStatement()) {
      lock.execute(
          "select pg_advisory_lock(hashtextextended('outbox4j redrive ' ||"
              + " 'outbox_dlq'::regclass::oid || ' ' || 'outbox'::regclass::oid, 0))");
      long begun = System.nanoTime();

      DeadLetterReport report = worklist.where(queue("orders")).redrive(ann());

      assertThat(report).isEqualTo(new DeadLetterReport(0, 0, 250, List.of(), true));
      assertThat(Duration.ofNanos(System.nanoTime() - begun))
          .isBetween(Duration.ofSeconds(29), Duration.ofSeconds(55));
    }
    assertThat(worklist.where(queue("orders")).redrive(ann()).done()).isEqualTo(250);
  }

  @Test
  void aRunWithoutASignOfLifeIsTakenForDead() {
    database.update(
        """
        insert into outbox_dlq_audit (outbox, action, acted_by, filter, seen_at) values
          ('public.outbox', 'redrive', 'ann', 'x', now() - interval '6 minutes'),
          ('public.outbox', 'redrive', 'ann', 'x', now() - interval '4 minutes')
        """);

    assertThat(worklist.audit(10))
        .extracting(DeadLetterAction::status)
        .containsExactly("running", "died");
  }

  // ---- partitions

  @Test
  void aLetterThatMovesToAnotherPartitionMeanwhileStopsNoOther() throws Exception {
    database.update("alter table outbox_dlq rename to outbox_dlq_plain");
    ExecutorService operators = Executors.newCachedThreadPool();
    try {
      database.update(
          "create table outbox_dlq (like outbox_dlq_plain including defaults including comments,"
              + " primary key (id, failed_at)) partition by range (failed_at)");
      database.update(
          "create table outbox_dlq_old partition of outbox_dlq"
              + " for values from (minvalue) to ('2026-06-01')");
      database.update(
          "create table outbox_dlq_new partition of outbox_dlq"
              + " for values from ('2026-06-01') to (maxvalue)");
      database.update(
          "create index on outbox_dlq (outbox, queue, failed_at, id) where resolved_at is null");
      database.update(
          "create index on outbox_dlq (outbox, queue, original_id, id) where resolved_at is null");
      database.update("create index on outbox_dlq (original_id, outbox, id)");
      letters.plain("orders", 1, 3);
      letters.trigger(
          "update",
          "outbox_dlq",
          "if new.id = 1 and new.resolved_by = 'ann' then "
              + Letters.standStill()
              + " end if; return new;");

      Future<DeadLetterReport> run =
          operators.submit(() -> worklist.where(queue("orders")).redrive(ann()));
      letters.awaitStandstill();
      // ann's statement has all three in hand, so that bob's passes them by
      assertThat(worklist.where(queue("orders")).redrive(Letters.by("bob")).passedBy())
          .isEqualTo(3);
      letters.open();

      assertThat(run.get().done()).isEqualTo(3);
      letters.fail(1002, FailureReason.REJECTED, "again");
      assertThat(database.list(Long.class, "select id from outbox_dlq_new")).containsExactly(2L);
      assertThat(worklist.where(queue("orders")).redrive(ann()).done()).isEqualTo(1);
    } finally {
      operators.shutdown();
      database.update("drop table if exists outbox_dlq");
      database.update("alter table outbox_dlq_plain rename to outbox_dlq");
    }
  }

  @Test
  void lostRacesAreRunAgain() {
    letters.plain("orders", 1, 20);
    database.update("create sequence if not exists races");
    database.update("alter sequence races restart");
    letters.trigger(
        "insert",
        "outbox",
        "if new.id = 1007 and nextval('races') <= 4 then"
            + " raise exception 'raced' using errcode = '40001'; end if; return new;");

    assertThat(worklist.where(queue("orders")).redrive(ann()).done()).isEqualTo(20);
    assertThat(letters.outbox()).isEqualTo(LongStream.rangeClosed(1001, 1020).boxed().toList());
  }
}
