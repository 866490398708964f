package dev.outbox4j.examples.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.SQLException;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What the proof of monitors is to find is planted; all times are seconds after an instant. */
@ExtendWith(PostgresExtension.class)
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
    database.update("truncate commits, ends, hits, outbox_monitor, outbox");
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
            + " values ('alerts', '', jsonb_build_object('of', ?::text))",
        Long.toString(id));
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

  private void hit(long id, int at) {
    database.update("insert into hits values (?, to_timestamp(?))", id, EPOCH + at);
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

    assertSound();
    assertThat(ledger.started()).isEqualTo(2);
    assertThat(ledger.alive()).isEqualTo(1);
    assertThat(ledger.commits()).isEqualTo(3);
    assertThat(ledger.ended("completed", "condition_met")).isEqualTo(1);
    assertThat(ledger.ended("completed", "expired")).isZero();
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
    hit(2, 9);
    committed(3, 1, 20, 22);
    committed(4, 1, 20, 27);
    hit(4, 21);
    hit(3, 23); // after its commit

    assertThat(ledger.longestOvershoot(false)).isEqualTo(Duration.ofSeconds(1));
    assertThat(ledger.longestOvershoot(true)).isEqualTo(Duration.ofSeconds(6));
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
    assertThat(ledger.hit("p1.1")).isEqualTo(1);
    assertThat(database.one(Long.class, "select id from hits")).isEqualTo(1);
  }
}
