package dev.outbox4j.examples.chaos;

import static dev.outbox4j.examples.chaos.MonitorPeople.Verb.RAISE;
import static dev.outbox4j.examples.chaos.MonitorPeople.Verb.RESTART;
import static dev.outbox4j.examples.chaos.MonitorPeople.Verb.RESUME;
import static dev.outbox4j.examples.chaos.MonitorPeople.Verb.SUSPEND;
import static dev.outbox4j.examples.chaos.MonitorPeople.Verb.TERMINATE;
import static dev.outbox4j.examples.chaos.MonitorPeople.Verb.WAKE;
import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.examples.chaos.MonitorLedger.Hit;
import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What the proof of monitors is to find is planted; all times are seconds after an instant. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class MonitorLedgerIT {
  private static final long EPOCH = 1_893_456_000; // 2030-01-01

  private final TestDatabase database;
  private final MonitorLedger ledger;

  MonitorLedgerIT(TestDatabase database) throws SQLException {
    this.database = database;
    this.ledger = new MonitorLedger(database.plain());
    if (database.one(String.class, "select to_regclass('commits')::text") == null) {
      MonitorMigrations.of("public", "outbox").migrate(database.plain());
      ledger.create();
    }
  }

  @BeforeEach
  void empty() {
    database.update(
        "truncate starts, commits, failures, ends, deeds, hits, stops, long_checks,"
            + " outbox_monitor, outbox");
  }

  private void started(long id) {
    database.update(
        "insert into outbox_monitor (application, id, type, execution, input, expires_at, due_at)"
            + " values ('proof', ?, 'watch', 7, '1', to_timestamp(?), to_timestamp(?))",
        Long.toString(id),
        EPOCH + 100,
        EPOCH);
  }

  private void checked(long id) {
    database.update(
        "update outbox_monitor set iteration = iteration + 1,"
            + " state = json_build_object('check', iteration + 1, 'wait', 0) where id = ?",
        Long.toString(id));
  }

  private void ended(long id, String outcome) {
    database.update(
        "update outbox_monitor set ended_at = clock_timestamp(), status = 'completed', outcome = ?"
            + " where id = ?",
        outcome,
        Long.toString(id));
  }

  private void alert(long id) {
    database.update(
        "insert into outbox (queue, payload, headers)"
            + " values ('alerts', '', jsonb_build_object('of', ? || '/7'))",
        Long.toString(id));
  }

  private void seen(long event) {
    database.update(
        "insert into outbox (queue, payload, headers)"
            + " values ('seen', '', jsonb_build_object('event', ?::text))",
        Long.toString(event));
  }

  private void begun(long id, long execution, int at) {
    database.update("insert into starts values (?, ?, to_timestamp(?))", id, execution, EPOCH + at);
  }

  private void over(long id, String status, int at) {
    database.update(
        "insert into ends values (?, 7, 0, ?, null, to_timestamp(?), to_timestamp(?))",
        id,
        status,
        EPOCH + 100,
        EPOCH + at);
  }

  /** One that took a second. */
  private void deed(long id, MonitorPeople.Verb verb, String said, int began) throws SQLException {
    deed(id, verb, said, null, began);
  }

  private void deed(long id, MonitorPeople.Verb verb, String said, @Nullable Long event, int began)
      throws SQLException {
    long micros = TimeUnit.SECONDS.toMicros(EPOCH + began);
    ledger.deed(database.plain(), id, verb, said, event, micros, micros + 1_000_000);
  }

  private void committed(long id, long iteration, int due, int at) {
    database.update(
        "insert into commits values (?, 7, ?, ?, 0, to_timestamp(?), to_timestamp(?))",
        id,
        iteration,
        iteration,
        EPOCH + due,
        EPOCH + at);
  }

  private void expired(long id, int expires, int at) {
    database.update(
        "insert into ends values (?, 7, 1, 'completed', 'expired', to_timestamp(?),"
            + " to_timestamp(?))",
        id,
        EPOCH + expires,
        EPOCH + at);
  }

  private void hit(long id, boolean killed, int at) {
    database.update("insert into hits values (?, ?, to_timestamp(?))", id, killed, EPOCH + at);
  }

  private static long micros(double at) {
    return TimeUnit.SECONDS.toMicros(EPOCH) + Math.round(at * 1e6);
  }

  private void assertSound() throws SQLException {
    assertThat(ledger.committedTwice()).isZero();
    assertThat(ledger.leftOut()).isZero();
    assertThat(ledger.notOfTheirCheck()).isZero();
    assertThat(ledger.checkedEarly()).isZero();
    assertThat(ledger.expiredEarly()).isZero();
    assertThat(ledger.endedTwice()).isZero();
    assertThat(ledger.committedAfterTheEnd()).isZero();
    assertThat(ledger.untold()).isZero();
    assertThat(ledger.toldTooOften()).isZero();
    assertThat(ledger.eventsSeenTwice()).isZero();
    assertThat(ledger.eventsUnseen()).isZero();
    assertThat(ledger.eventsOfNobody()).isZero();
    assertThat(ledger.checkedWhileSuspended()).isZero();
    assertThat(ledger.wakesInVain(Duration.ofSeconds(30))).isZero();
    assertThat(ledger.answersThatWereWrong()).isZero();
    assertThat(ledger.answersOfAnotherState()).isZero();
  }

  @Test
  void whatTheServerDoesIsNoted() throws SQLException {
    started(1);
    started(2);
    checked(1);
    checked(1);
    ended(1, "condition_met");
    alert(1);
    checked(2);
    database.update("update outbox_monitor set attempts_count = 1 where id = '2'");

    assertSound();
    assertThat(database.count("failures where id = 2 and execution = 7")).isEqualTo(1);
    assertThat(ledger.started()).isEqualTo(2);
    assertThat(ledger.alive()).isEqualTo(1);
    assertThat(ledger.commits()).isEqualTo(3);
    assertThat(ledger.ended("completed", "condition_met")).isEqualTo(1);
    assertThat(ledger.ended("completed", "expired")).isZero();
  }

  @Test
  void anotherExecutionIsCountedByItself() throws SQLException {
    started(10);
    checked(10);
    ended(10, "condition_met");
    alert(10);
    database.update("update outbox_monitor set execution = 8, iteration = 0, ended_at = null");
    checked(10);
    ended(10, "max_iterations");

    assertSound();
    assertThat(database.list(Long.class, "select execution from starts order by at"))
        .containsExactly(7L, 8L);
    database.update("delete from commits where execution = 7");
    assertThat(ledger.leftOut()).isEqualTo(1);
  }

  @Test
  void aCheckThatWasCommittedTwiceIsFound() throws SQLException {
    started(1);
    checked(1);
    database.update("update outbox_monitor set iteration = 0");
    checked(1);
    assertThat(ledger.committedTwice()).isEqualTo(1);
  }

  @Test
  void aCheckThatWasLeftOutIsFound() throws SQLException {
    started(1);
    database.update("update outbox_monitor set iteration = 2");
    assertThat(ledger.leftOut()).isEqualTo(1);
  }

  @Test
  void aResultThatIsCommittedInThePlaceOfAnotherIsFound() throws SQLException {
    started(1);
    checked(1);
    database.update("update outbox_monitor set iteration = iteration + 1");
    assertThat(ledger.notOfTheirCheck()).isEqualTo(1);
    started(2);
    database.update("update outbox_monitor set iteration = 1, state = null where id = '2'");
    assertThat(ledger.notOfTheirCheck()).isEqualTo(2);
  }

  @Test
  void whatIsCheckedOrExpiresTooEarlyIsFound() throws SQLException {
    committed(1, 1, 10, 10);
    committed(1, 2, 10, 11);
    database.update("update commits set wait_ms = 2000 where iteration = 1");
    assertThat(ledger.checkedEarly()).isEqualTo(1);
    database.update("update commits set wait_ms = 1000 where iteration = 1");
    assertThat(ledger.checkedEarly()).isZero();
    expired(2, 10, 9);
    expired(3, 10, 11);
    assertThat(ledger.expiredEarly()).isEqualTo(1);
  }

  @Test
  void aCheckMayComeEarlyIfSomebodyHasAskedForIt() throws SQLException {
    committed(10, 1, 10, 10);
    committed(10, 2, 10, 20);
    committed(10, 3, 10, 21);
    database.update("update commits set wait_ms = 10000");
    deed(10, WAKE, "DONE", 8); // of the first one
    assertThat(ledger.checkedEarly()).isEqualTo(1);
    deed(10, RAISE, "DONE", 19);
    assertThat(ledger.checkedEarly()).isZero();
  }

  @Test
  void answersThatAreTrueAreNoBreach() throws SQLException {
    begun(10, 7, 0);
    deed(10, RESUME, "UNCHANGED", 1);
    deed(10, SUSPEND, "DONE", 3);
    deed(10, SUSPEND, "UNCHANGED", 5);
    deed(10, WAKE, "UNCHANGED", 7);
    deed(10, RESUME, "DONE", 9);
    deed(10, RAISE, "FULL", 11);
    deed(10, RESTART, "ALIVE", 13);
    deed(10, RAISE, "REFUSED", 15);
    over(10, "failed", 17);
    deed(10, TERMINATE, "FINISHED", 19);
    deed(10, RESTART, "DONE", 21);
    begun(10, 8, 21);
    deed(10, SUSPEND, "LOST", 23);
    deed(10, SUSPEND, "DONE", 25);
    assertSound();
    begun(20, 7, 0);
    deed(20, TERMINATE, "DONE", 1);
    over(20, "terminated", 2);
    assertSound();
  }

  @ParameterizedTest
  @CsvSource({
    "SUSPEND, UNKNOWN, 20",
    "SUSPEND, FINISHED, 8", // it ended later
    "RESTART, ALIVE, 12", // it had ended before
    "RESTART, DONE, 8",
    "RESTART, DONE, 12", // nothing began
    "TERMINATE, DONE, 9", // that is not how it ended
    "RAISE, DONE, 12",
    "WAKE, UNCHANGED, 12",
    "RAISE, FULL, 12"
  })
  void anAnswerThatCannotHaveBeenTrueIsFound(MonitorPeople.Verb verb, String said, int began)
      throws SQLException {
    begun(10, 7, 0);
    over(10, "failed", 10);
    assertThat(ledger.answersThatWereWrong()).isZero();
    deed(10, verb, said, began);
    assertThat(ledger.answersThatWereWrong()).isEqualTo(1);
  }

  @ParameterizedTest
  @CsvSource({"DONE, SUSPEND", "DONE, WAKE", "UNCHANGED, RESUME"})
  void anAnswerAsOfOneThatIsNotSuspendedIsFoundIfItIs(String said, MonitorPeople.Verb verb)
      throws SQLException {
    deed(10, verb, said, 1);
    assertThat(ledger.answersOfAnotherState()).isZero();
    deed(10, SUSPEND, "LOST", 3);
    deed(10, verb, said, 5);
    assertThat(ledger.answersOfAnotherState()).as("nobody knows").isZero();
    deed(20, SUSPEND, "DONE", 1);
    deed(20, verb, said, 3);
    assertThat(ledger.answersOfAnotherState()).isEqualTo(1);
  }

  @ParameterizedTest
  @CsvSource({"UNCHANGED, SUSPEND", "UNCHANGED, WAKE", "DONE, RESUME"})
  void anAnswerAsOfOneThatIsSuspendedIsFoundIfItIsNot(String said, MonitorPeople.Verb verb)
      throws SQLException {
    deed(10, SUSPEND, "DONE", 1);
    deed(10, verb, said, 3);
    assertThat(ledger.answersOfAnotherState()).isZero();
    deed(10, RESUME, "DONE", 5);
    long before = ledger.answersOfAnotherState();
    deed(10, verb, said, 7);
    assertThat(ledger.answersOfAnotherState()).isEqualTo(before + 1);
  }

  @Test
  void eventsThatAreLostSeenTwiceOrOfNobodyAreFound() throws SQLException {
    begun(10, 7, 0);
    deed(10, RAISE, "DONE", 1L, 1);
    deed(10, RAISE, "REFUSED", 2L, 3);
    committed(10, 1, 10, 10);
    assertThat(ledger.eventsUnseen()).as("the check may have begun before").isZero();
    committed(10, 2, 10, 20);
    assertThat(ledger.eventsUnseen()).isEqualTo(1);
    seen(1);
    assertThat(ledger.eventsUnseen()).isZero();
    assertThat(ledger.eventsSeen()).isEqualTo(1);
    seen(1);
    assertThat(ledger.eventsSeenTwice()).isEqualTo(1);
    assertThat(ledger.eventsOfNobody()).isZero();
    seen(2);
    assertThat(ledger.eventsOfNobody()).isEqualTo(1);
  }

  @Test
  void checksOfAnInstanceThatIsSuspendedAreFound() throws SQLException {
    deed(10, SUSPEND, "DONE", 1);
    committed(10, 1, 10, 10);
    assertThat(ledger.checkedWhileSuspended()).as("it ran already").isZero();
    deed(10, RESUME, "DONE", 20);
    committed(10, 2, 21, 21);
    assertThat(ledger.checkedWhileSuspended()).isZero();
    committed(10, 3, 10, 11);
    assertThat(ledger.checkedWhileSuspended()).isEqualTo(1);
  }

  @Test
  void aWakeThatNoCheckFollowsIsFound() throws SQLException {
    Duration within = Duration.ofSeconds(30);
    deed(10, WAKE, "DONE", 1);
    committed(10, 1, 10, 33);
    assertThat(ledger.wakesInVain(within)).isEqualTo(1);
    committed(10, 2, 10, 31);
    assertThat(ledger.wakesInVain(within)).isZero();
    deed(20, WAKE, "DONE", 1);
    assertThat(ledger.wakesInVain(within)).isEqualTo(1);
    over(20, "failed", 3);
    deed(30, WAKE, "DONE", 1);
    deed(30, SUSPEND, "DONE", 3);
    assertThat(ledger.wakesInVain(within)).isZero();
    deed(40, WAKE, "DONE", 1);
    assertThat(ledger.wakesInVain(within)).isEqualTo(1);
    database.update("insert into failures values (40, 7, to_timestamp(?))", EPOCH + 31);
    assertThat(ledger.wakesInVain(within)).as("a check that fails has run").isZero();
  }

  @Test
  void ofInstancesOfPeopleAnOvershootBeginsWhenTheyAreResumed() throws SQLException {
    expired(10, 10, 40);
    deed(10, RESUME, "DONE", 35);
    expired(20, 10, 12);
    deed(20, RESUME, "DONE", 3);
    assertThat(ledger.longestOvershootOfThoseOfPeople()).isEqualTo(Duration.ofSeconds(4));
    for (Hit hit : Hit.values()) {
      assertThat(ledger.longestOvershoot(hit)).isZero();
    }
  }

  @Test
  void whatEndsTwiceOrGoesOnAfterItsEndIsFound() throws SQLException {
    started(1);
    checked(1);
    ended(1, "expired");
    database.update("update outbox_monitor set ended_at = null");
    ended(1, "expired");
    checked(1);
    assertThat(ledger.endedTwice()).isEqualTo(1);
    assertThat(ledger.committedAfterTheEnd()).isEqualTo(2); // behind each of the ends
  }

  @Test
  void alertsThatAreMissingOrTooManyAreFound() throws SQLException {
    for (long id = 1; id <= 3; id++) {
      started(id);
      ended(id, id == 3 ? "expired" : "condition_met");
    }
    alert(2);
    alert(2);
    alert(3);
    assertThat(ledger.untold()).isEqualTo(1);
    assertThat(ledger.toldTooOften()).isEqualTo(2);
  }

  @Test
  void delaysAreOfTheHitOrOfTheOthers() throws SQLException {
    expired(1, 10, 11);
    expired(2, 10, 16);
    hit(2, false, 9);
    hit(2, true, 9);
    expired(5, 10, 14);
    hit(5, true, 9);
    committed(3, 1, 20, 22);
    committed(4, 1, 20, 27);
    hit(4, true, 21);
    hit(3, true, 23); // after its commit

    assertThat(ledger.longestOvershoot(Hit.NONE)).isEqualTo(Duration.ofSeconds(1));
    assertThat(ledger.longestOvershoot(Hit.KILLED)).isEqualTo(Duration.ofSeconds(4));
    assertThat(ledger.longestOvershoot(Hit.FROZEN)).isEqualTo(Duration.ofSeconds(6));
    assertThat(ledger.longestDelay(false)).isEqualTo(Duration.ofSeconds(2));
    assertThat(ledger.longestDelay(true)).isEqualTo(Duration.ofSeconds(7));
    assertThat(ledger.delayOf(0.5)).isEqualTo(Duration.ofMillis(4_500));
  }

  @Test
  void whatAProcessHasUnderItsLeaseIsNoted() throws SQLException {
    database.update(
        "insert into outbox (queue, payload, headers, leased_by, lease_until) values"
            + " ('monitors.proof', '', '{\"monitor-id\": \"1\"}', 'p1.1/x', now() + interval '5 s'),"
            + " ('monitors.proof', '', '{\"monitor-id\": \"2\"}', 'p1.1/x', now()),"
            + " ('monitors.proof', '', '{\"monitor-id\": \"3\"}', 'p1.2/x', now() + interval '5 s'),"
            + " ('alerts', '', '{}', 'p1.1/x', now() + interval '5 s')");
    assertThat(ledger.hit("p1.1", true, micros(7))).isEqualTo(1);
    assertThat(
            database.list(
                String.class,
                "select concat_ws(' ', id, killed, extract(epoch from at)::bigint - ?) from hits",
                EPOCH))
        .containsExactly("1 t 7");
  }

  /** What a check of a process has written down; null for the end of one that was not done. */
  private static void check(RunLog log, long id, double began, @Nullable Double ended)
      throws IOException {
    log.begun(new RunLog.Run(id, 1, 1, micros(began), micros(began)));
    if (ended != null) {
      log.done(new RunLog.Run(id, 1, 1, micros(began), micros(ended)));
    }
  }

  @Test
  void anOvershootBeginsWithTheEndOfTheCheckInWhichItExpires(@TempDir Path directory)
      throws IOException, SQLException {
    try (RunLog well = RunLog.of(directory, "p0.1");
        RunLog killed = RunLog.of(directory, "p1.1");
        RunLog frozen = RunLog.of(directory, "p2.1")) {
      check(well, 1, 9, 11.5);
      check(well, 2, 8, 9.5); // it has ended before
      check(well, 6, 9, 12.0);
      check(killed, 3, 9, null);
      check(frozen, 4, 9, 20.0);
      check(well, 5, 9, null); // as of a process that ends with the proof
      check(well, 7, 10.05, 11.5); // its node had read it before the expiry
      check(well, 8, 10.2, 11.5);
      well.failed(new RunLog.Run(1, 1, 1, micros(2), micros(3)));
    }
    ledger.hit("p1.1", true, micros(10.5));
    ledger.hit("p2.1", false, micros(11));
    ledger.hit("p2.1", false, micros(30));
    hit(3, true, 10);
    hit(4, false, 11);
    expired(1, 10, 12);
    expired(2, 10, 10);
    expired(3, 10, 15);
    expired(4, 10, 17);
    expired(5, 10, 10);
    expired(7, 10, 12);
    expired(8, 10, 10);
    ledger.take(LongChecks.read(directory));

    assertThat(ledger.longestOvershoot(Hit.NONE)).isEqualTo(Duration.ofMillis(500));
    assertThat(ledger.longestOvershoot(Hit.KILLED)).isEqualTo(Duration.ofMillis(4_500));
    assertThat(ledger.longestOvershoot(Hit.FROZEN)).isEqualTo(Duration.ofSeconds(6));
    assertThat(ledger.expiredInACheck()).isEqualTo(4);
    assertThat(ledger.expiredInACheckOfTheKilled()).isEqualTo(1);
    assertThat(ledger.longestBeginBehindTheExpiry()).isEqualTo(Duration.ofMillis(50));
    assertThat(ledger.cutOff()).isZero();
    expired(6, 10, 11);
    assertThat(ledger.cutOff()).isEqualTo(1);
  }
}
