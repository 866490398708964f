package dev.outbox4j.lock;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.migrations.LockMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * When a lock is renewed, and when it is lost: on a real server, by a clock that the test moves.
 * The server's clock is moved by putting what is stored into the past.
 */
@ExtendWith(PostgresExtension.class)
class LeaseIT {
  private final TestDatabase database;
  private final CountingDataSource source;
  private final ManualTime time = new ManualTime();
  private final List<LostLock> lost = new ArrayList<>();
  private final List<Duration> renewals = new ArrayList<>();
  private boolean refusing;

  LeaseIT(TestDatabase database) {
    this.database = database;
    this.source = new CountingDataSource(database.pool(5));
  }

  @BeforeEach
  void setUp() {
    database.migrate(LockMigrations.of("public", "outbox"), LockMigrations::migrate);
    database.update("truncate outbox_lock");
    source.beforeEach(
        text -> {
          if (isRenewal(text)) {
            renewals.add(time.now());
            if (refusing) {
              sneak(new SQLException("no server", "08006"));
            }
          }
        });
  }

  private static boolean isRenewal(String text) {
    return text.contains("set renewed_at");
  }

  @SuppressWarnings("unchecked")
  private static <E extends Throwable> void sneak(Throwable failure) throws E {
    throw (E) failure;
  }

  private SingletonLock lock(int seconds) {
    Locks locks =
        Locks.builder(PostgresOutbox.on(source, database.table()), "shop").time(time).build();
    locks.start();
    return locks.lock("invoices").period(Duration.ofSeconds(seconds)).onLost(lost::add);
  }

  private HeldLock acquire(int seconds) {
    return lock(seconds).tryAcquire().orElseThrow();
  }

  private static List<Duration> seconds(double... seconds) {
    List<Duration> all = new ArrayList<>();
    for (double each : seconds) {
      all.add(Duration.ofMillis(Math.round(each * 1_000)));
    }
    return all;
  }

  private String owner() {
    return database.one(String.class, "select coalesce(max(owner), '') from outbox_lock");
  }

  private void lapse() {
    database.update("update outbox_lock set held_until = now() - interval '1 millisecond'");
  }

  @Test
  void isRenewedAtHalfOfItsPeriod() {
    HeldLock held = acquire(60);
    assertThat(
            database.one(
                Double.class,
                "select extract(epoch from held_until - acquired_at)::float8 from outbox_lock"))
        .isEqualTo(60);

    time.advance(Duration.ofSeconds(100));

    assertThat(renewals).isEqualTo(seconds(30, 60, 90));
    assertThat(held.isHeld()).isTrue();
    assertThat(held.remaining()).isEqualTo(Duration.ofSeconds(49)); // 59 from the last renewal
    assertThat(lost).isEmpty();
  }

  @Test
  void eachRenewalPutsTheEndOfItsLeaseOffOnTheServer() {
    acquire(60);
    lapse();

    time.advance(Duration.ofSeconds(30));

    assertThat(
            database.one(
                Boolean.class,
                "select held_until between now() + interval '50 s' and now() + interval '60 s'"
                    + " from outbox_lock"))
        .isTrue();
  }

  @Test
  void afterAFailureItWaitsForHalfAsLongAndNotLessThanASecond() {
    acquire(60);
    refusing = true;

    time.advance(Duration.ofMinutes(5));

    assertThat(renewals).isEqualTo(seconds(30, 45, 52.5, 56.25, 58.125));
    assertThat(lost).hasSize(1);
  }

  @Test
  void theShortestPeriodReachesTheFloorOfASecond() {
    acquire(15);
    refusing = true;

    time.advance(Duration.ofMinutes(5));

    assertThat(renewals).isEqualTo(seconds(7.5, 11.25, 13.125, 14.125));
    assertThat(lost).hasSize(1);
  }

  @Test
  void aRenewalThatHangsForItsPauseIsFollowedAtOnce() {
    HeldLock held = acquire(15);
    source.beforeEach(
        text -> {
          if (isRenewal(text)) {
            renewals.add(time.now());
            if (renewals.size() == 1) {
              time.advance(Duration.ofMillis(3_750));
              sneak(new SQLException("timed out", "08006"));
            }
          }
        });

    time.advance(Duration.ofSeconds(14));

    assertThat(renewals).isEqualTo(seconds(7.5, 11.25));
    assertThat(held.isHeld()).isTrue();
    assertThat(lost).isEmpty();
  }

  @Test
  void aRenewalThatSucceedsAfterFailuresBeginsAnew() {
    HeldLock held = acquire(60);
    refusing = true;
    time.advance(Duration.ofSeconds(46));
    refusing = false;

    time.advance(Duration.ofSeconds(44));

    assertThat(renewals).isEqualTo(seconds(30, 45, 52.5, 82.5));
    assertThat(held.isHeld()).isTrue();
    assertThat(lost).isEmpty();
  }

  @Test
  void itIsLostOnceBeforeItsLeaseIsOverOnTheServer() {
    HeldLock held = acquire(60);
    refusing = true;

    time.advance(Duration.ofMillis(58_999));
    assertThat(held.isHeld()).isTrue();
    assertThat(lost).isEmpty();
    time.advance(Duration.ofMillis(1));

    LostLock once =
        new LostLock("invoices", held.token(), Duration.ofSeconds(59), Duration.ofSeconds(60));
    assertThat(lost).containsExactly(once);
    assertThat(held.isHeld()).isFalse();
    assertThat(held.isLost()).isTrue();
    assertThat(held.remaining()).isZero();
    time.advance(Duration.ofMinutes(5));
    held.close();
    assertThat(lost).containsExactly(once);
    assertThat(renewals).hasSize(5);
  }

  @Test
  void aRenewalThatFindsAnotherHolderLosesItAtOnce() {
    HeldLock held = acquire(60);
    lapse();
    HeldLock other = acquire(60);

    time.advance(Duration.ofSeconds(30));

    assertThat(lost)
        .containsExactly(
            new LostLock("invoices", held.token(), Duration.ofSeconds(30), Duration.ofSeconds(60)));
    assertThat(other.isHeld()).isTrue();
    assertThat(other.token()).isGreaterThan(held.token());
  }

  @Test
  void aLeaseThatNobodyTookIsRenewedThoughItWasOver() {
    HeldLock held = acquire(60);
    lapse();

    time.advance(Duration.ofSeconds(30));

    assertThat(held.isHeld()).isTrue();
    assertThat(lost).isEmpty();
  }

  @Test
  void whatIsClosedIsNotRenewed() {
    HeldLock held = acquire(60);

    held.close();
    time.advance(Duration.ofMinutes(5));

    assertThat(renewals).isEmpty();
    assertThat(lost).isEmpty();
    assertThat(held.isLost()).isFalse();
    assertThat(owner()).isEmpty();
  }

  @Test
  void aRenewalUnderWayWhenTheLockIsReleasedIsNoLoss() {
    HeldLock held = acquire(60);
    source.beforeEach(
        text -> {
          if (isRenewal(text)) {
            held.close();
          }
        });

    time.advance(Duration.ofSeconds(30));

    assertThat(lost).isEmpty();
    assertThat(held.isLost()).isFalse();
    assertThat(owner()).isEmpty();
  }

  @Test
  void aRenewalThatTakesEffectAfterTheLossIsTakenBack() {
    HeldLock held = acquire(60);
    source.beforeEach(
        text -> {
          if (isRenewal(text)) {
            time.advance(Duration.ofSeconds(40));
          }
        });

    time.advance(Duration.ofSeconds(30));

    assertThat(lost).hasSize(1);
    assertThat(held.isLost()).isTrue();
    assertThat(owner()).isEmpty();
  }

  @Test
  void anAcquisitionWhoseAnswerComesTooLateIsNone() {
    source.beforeEach(
        text -> {
          if (text.contains("for update skip locked")) {
            time.advance(Duration.ofSeconds(60));
          }
        });

    assertThat(lock(60).tryAcquire()).isEmpty();

    assertThat(owner()).isEmpty();
    assertThat(lost).isEmpty();
  }

  @Test
  void aReleaseThatFindsAnotherHolderIsALoss() {
    HeldLock held = acquire(60);
    lapse();
    acquire(60);

    held.close();

    assertThat(lost).hasSize(1);
    assertThat(held.isLost()).isTrue();
    assertThat(owner()).isNotEmpty();
  }

  @Test
  void whatFailsWhenALossIsToldHurtsNothing() {
    HeldLock held =
        lock(60)
            .onLost(
                told -> {
                  lost.add(told);
                  throw new IllegalStateException("no pager");
                })
            .tryAcquire()
            .orElseThrow();
    refusing = true;

    time.advance(Duration.ofMinutes(5));

    assertThat(lost).hasSize(1);
    assertThat(held.isLost()).isTrue();
  }

  @Test
  void aRenewalDoesNotWaitForATransactionWhoseWriteIsGuarded() throws Exception {
    HeldLock held = acquire(15);
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      held.guard(connection);

      time.advance(Duration.ofMillis(7_500));

      assertThat(held.remaining()).isEqualTo(Duration.ofMillis(14_750));
      connection.commit();
    }
    assertThat(renewals).hasSize(1);
  }

  @Test
  void aReleaseInAGuardedTransactionIsThereWithItsCommit() throws Exception {
    Lease held = (Lease) acquire(15);
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      held.guard(connection);

      held.releaseWith(connection);

      assertThat(held.isHeld()).isFalse();
      assertThat(lock(15).tryAcquire()).as("before the commit").isEmpty();
      connection.commit();
    }
    HeldLock next = acquire(15);
    time.advance(Duration.ofSeconds(1));
    assertThat(next.isHeld()).isTrue();
    assertThat(owner()).as("the next one has it").isNotEmpty();
    assertThat(lost).isEmpty();
    assertThat(held.isLost()).isFalse();
  }

  @Test
  void aReleaseThatIsRolledBackIsMadeUpForASecondLater() throws Exception {
    Lease held = (Lease) acquire(15);
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      held.guard(connection);
      held.releaseWith(connection);
      connection.rollback();
    }
    time.advance(Duration.ofMillis(999));
    assertThat(owner()).isNotEmpty();

    time.advance(Duration.ofMillis(1));

    assertThat(owner()).isEmpty();
    assertThat(renewals).isEmpty();
    assertThat(lost).isEmpty();
  }

  @Test
  void aLockThatWasLostIsNotReleasedInATransaction() throws Exception {
    Lease held = (Lease) acquire(15);
    refusing = true;
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      held.guard(connection);
      time.advance(Duration.ofSeconds(15));

      assertThatThrownBy(() -> held.releaseWith(connection))
          .isInstanceOf(LockLostException.class)
          .hasMessageContaining("invoices");

      connection.rollback();
    }
    assertThat(lost).hasSize(1);
  }

  @Test
  void nothingIsGuardedByALockThatWasLost() throws Exception {
    HeldLock held = acquire(15);
    lapse();
    acquire(15);
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);

      assertThatThrownBy(() -> held.guard(connection))
          .isInstanceOf(LockLostException.class)
          .hasMessageContaining("invoices");

      connection.rollback();
    }
    assertThat(lost).hasSize(1);
  }

  @Test
  void nothingIsGuardedWithoutATransaction() throws Exception {
    HeldLock held = acquire(15);
    try (Connection connection = database.plain().getConnection()) {
      assertThatThrownBy(() -> held.guard(connection))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("autocommit");
    }
  }
}
