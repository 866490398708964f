package dev.outbox4j.examples.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.LockMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** What the proof of locks is to find is planted; all times are seconds after an instant. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class LockLedgerIT {
  private static final long EPOCH = 1_893_456_000; // 2030-01-01

  private final TestDatabase database;
  private final LockLedger ledger;

  LockLedgerIT(TestDatabase database) throws SQLException {
    this.database = database;
    this.ledger = new LockLedger(database.plain());
    if (database.one(String.class, "select to_regclass('held')::text") == null) {
      LockMigrations.of("public", "outbox").migrate(database.plain());
      ledger.create();
    }
  }

  @BeforeEach
  void empty() {
    database.update("truncate held, believed, refused, written, outbox_lock");
    database.update("update summed set n = 0");
  }

  private void held(long token, int acquired, int until, int released) {
    database.update(
        "insert into held values (?, 'p', to_timestamp(?), to_timestamp(?), to_timestamp(?))",
        token,
        EPOCH + acquired,
        EPOCH + until,
        EPOCH + released);
  }

  /** Whoever had it died, and its lease ran out. */
  private void lapsed(long token, int acquired, int until) {
    database.update(
        "insert into held values (?, 'p', to_timestamp(?), to_timestamp(?))",
        token,
        EPOCH + acquired,
        EPOCH + until);
  }

  private void believed(long token, int at) {
    database.update("insert into believed values (?, to_timestamp(?))", token, EPOCH + at);
  }

  private void assertSound() throws SQLException {
    assertThat(ledger.twoHolders()).isZero();
    assertThat(ledger.tokensNotGrowing()).isZero();
    assertThat(ledger.beliefsBesideAnother()).isZero();
    assertThat(ledger.beliefsWithoutTheLock()).isZero();
    assertThat(ledger.writesOutOfTurn()).isZero();
    assertThat(ledger.lostWrites()).isZero();
  }

  @Test
  void holdersOneAfterTheOtherAreSound() throws SQLException {
    held(1, 0, 15, 5);
    lapsed(2, 5, 20);
    held(4, 21, 40, 30);
    believed(1, 4);
    believed(2, 19);
    believed(4, 22);
    database.update("insert into written (token) values (1), (1), (4)");
    database.update("update summed set n = 3");

    assertSound();
    assertThat(ledger.longestVacancy()).isEqualTo(Duration.ofSeconds(1));
    assertThat(ledger.acquisitions()).isEqualTo(3);
    assertThat(ledger.renewed()).isEqualTo(1);
  }

  @Test
  void anAcquisitionBeforeTheEndOfTheOneBeforeIsFound() throws SQLException {
    lapsed(1, 0, 15);
    held(2, 14, 29, 20);
    assertThat(ledger.twoHolders()).isEqualTo(1);
  }

  @Test
  void aTokenThatDoesNotGrowIsFound() throws SQLException {
    held(2, 0, 15, 5);
    held(1, 6, 21, 7);
    assertThat(ledger.tokensNotGrowing()).isEqualTo(1);
  }

  @Test
  void whoBelievesToHoldTheLockOfAnotherIsFound() throws SQLException {
    lapsed(1, 0, 15);
    held(2, 16, 31, 20);
    believed(1, 17);
    assertThat(ledger.beliefsBesideAnother()).isEqualTo(1);
    assertThat(ledger.beliefsWithoutTheLock()).isEqualTo(1);
  }

  @Test
  void whoBelievesToHoldALockThatIsOverIsFound() throws SQLException {
    lapsed(1, 0, 15);
    believed(1, 16);
    assertThat(ledger.beliefsBesideAnother()).isZero();
    assertThat(ledger.beliefsWithoutTheLock()).isEqualTo(1);
  }

  @Test
  void aWriteByALateHolderIsFound() throws SQLException {
    database.update("insert into written (token) values (1), (2), (1)");
    database.update("update summed set n = 3");
    assertThat(ledger.writesOutOfTurn()).isEqualTo(1);
  }

  @Test
  void aWriteThatWasOverwrittenIsFound() throws SQLException {
    database.update("insert into written (token) values (1), (2)");
    database.update("update summed set n = 1");
    assertThat(ledger.lostWrites()).isEqualTo(1);
  }

  @Test
  void whatTheServerDoesIsNotedAndWhatProcessesLeaveIsRead(@TempDir Path directory)
      throws SQLException, IOException {
    database.update(
        "insert into outbox_lock (application, name, owner, held_until)"
            + " values ('a', 'n', 'o', now() + interval '15 s')");
    database.update("update outbox_lock set held_until = now() + interval '20 s'");
    database.update("update outbox_lock set owner = null, held_until = now()");
    database.update(
        "update outbox_lock set token = default, owner = 'p', held_until = now() + interval '9 s'");
    try (RunLog log = RunLog.of(directory, "p0.1")) {
      long token = database.one(Long.class, "select max(token) from held");
      long now = RunLog.now();
      log.done(new RunLog.Run(0, 0, token, now, now));
      log.failed(new RunLog.Run(0, 0, 1, now, now));
    }
    ledger.load(directory);

    assertThat(ledger.acquisitions()).isEqualTo(2);
    assertThat(database.one(Long.class, "select count(*) from held where released is null"))
        .isEqualTo(1);
    assertThat(ledger.beliefs()).isEqualTo(1);
    assertThat(ledger.refused()).isEqualTo(1);
    assertSound();
  }
}
