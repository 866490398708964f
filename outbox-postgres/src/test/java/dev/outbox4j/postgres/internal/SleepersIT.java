package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.Range;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.RescheduleUpdate;
import dev.outbox4j.spi.RetryUpdate;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What the store keeps of subscribers that sleep. */
@ExtendWith(PostgresExtension.class)
@Tag("plans")
class SleepersIT {
  private static final String NEXT_TRANSACTION =
      "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint";
  private static final Duration TEN_SECONDS = Duration.ofSeconds(10);

  private final TestDatabase database;
  private final PostgresStore store;

  SleepersIT(TestDatabase database) {
    this.database = database;
    this.store = PostgresOutbox.on(database.pool(2), database.table()).store();
  }

  @BeforeEach
  void empty() {
    database.update("truncate outbox, outbox_sleepers");
  }

  @Test
  void publishersSeeWhoIsOnWatchUntilItIsAwake() {
    claim("me", Idle.sleep(TEN_SECONDS, null));
    claim("you", Idle.sleep(TEN_SECONDS, null));
    assertThat(asleep()).containsExactly("a me");
    assertThat(
            database.one(
                Boolean.class,
                "select bool_and(until between now() + interval '5 s' and now() + interval '10 s')"
                    + " from outbox_sleepers"))
        .isTrue();

    claim("me", Idle.UNCHANGED);
    claim("me", Idle.LOOK_AHEAD);
    assertThat(asleep()).containsExactly("a me");

    claim("me", Idle.awake(TEN_SECONDS));
    assertThat(asleep()).isEmpty();

    claim("me", Idle.sleep(TEN_SECONDS, null));
    assertThat(asleep()).containsExactly("a me");
  }

  @Test
  void ofTwoThatCameOnWatchAtOnceTheFirstByNameKeepsIt() {
    database.update(
        "insert into outbox_sleepers select 'a', name, now() + interval '10 s', true,"
            + " now() + interval '10 s' from unnest(array['me', 'you']) name");

    claim("me", Idle.sleep(TEN_SECONDS, null));
    assertThat(asleep()).containsExactly("a me", "a you");
    claim("you", Idle.sleep(TEN_SECONDS, null));

    assertThat(asleep()).containsExactly("a me");
  }

  @Test
  void ofTwoThatAreBusyOnWatchTheFirstByNameKeepsIt() {
    database.update(
        "insert into outbox_sleepers select 'a', name, now(), true, now() + interval '10 s'"
            + " from unnest(array['me', 'you']) name");

    claim("me", Idle.awake(TEN_SECONDS));
    claim("you", Idle.awake(TEN_SECONDS));

    assertThat(database.list(String.class, "select subscriber from outbox_sleepers where on_watch"))
        .containsExactly("me");
  }

  @Test
  void anOwnerThatIsForgottenIsGoneAndSoAreThoseLongDead() {
    claim("me", Idle.sleep(TEN_SECONDS, null));
    claim("you", Idle.sleep(TEN_SECONDS, null));
    claim("dead", Idle.sleep(TEN_SECONDS, null));
    database.update(
        "update outbox_sleepers set until = now() - interval '2 hours' where subscriber = 'dead'");

    store.forget("me");

    assertThat(database.list(String.class, "select subscriber from outbox_sleepers"))
        .containsExactly("you");
  }

  @Test
  void forgettingDoesNotWaitForARowThatSomeoneHolds() throws SQLException {
    claim("me", Idle.sleep(TEN_SECONDS, null));
    try (Connection holder = database.plain().getConnection();
        Statement statement = holder.createStatement()) {
      holder.setAutoCommit(false);
      statement.execute("select 1 from outbox_sleepers for update");

      store.forget("me");

      holder.rollback();
    }
    assertThat(asleep()).containsExactly("a me");
  }

  @Test
  void fallingAsleepAgainAndAgainIsAHotUpdateAndDoesNotGrowTheTable() {
    for (int i = 0; i < 300; i++) {
      claim("me", Idle.sleep(TEN_SECONDS, null));
      claim("me", Idle.awake(TEN_SECONDS));
    }

    assertThat(database.one(Long.class, "select pg_relation_size('outbox_sleepers_pkey')"))
        .isEqualTo(2 * 8192);
    assertThat(database.one(Long.class, "select pg_relation_size('outbox_sleepers')"))
        .isLessThanOrEqualTo(2 * 8192);
  }

  @Test
  void claimsThatAskForNoMarkTakeNoTransactionIds() {
    long before = database.one(Long.class, NEXT_TRANSACTION);

    for (int i = 0; i < 100; i++) {
      claim("me", Idle.LOOK_AHEAD);
      claim("me", Idle.UNCHANGED);
    }
    assertThat(database.one(Long.class, NEXT_TRANSACTION) - before).isLessThan(50);
    for (int i = 0; i < 100; i++) {
      claim("me", Idle.lookAhead(Idle.NEW_MARK));
    }
    assertThat(database.one(Long.class, NEXT_TRANSACTION) - before).isGreaterThanOrEqualTo(100);
  }

  @Test
  void aMarkThatIsTheOldestOpenTransactionIsSettledAndTheNextIsNot() throws SQLException {
    try (Connection other = database.plain().getConnection();
        Statement statement = other.createStatement()) {
      other.setAutoCommit(false);
      long oldest = transaction(statement);

      await().until(() -> isSettled(oldest)); // the server's own may be older, for a moment
      assertThat(isSettled(oldest + 1)).isFalse();

      other.rollback();
    }
  }

  private static long transaction(Statement statement) throws SQLException {
    try (ResultSet row = statement.executeQuery("select pg_current_xact_id()::text::bigint")) {
      row.next();
      return row.getLong(1);
    }
  }

  private boolean isSettled(long mark) {
    return store
        .claim(Requests.claim("me", "a", Range.ALL, 1, Idle.lookAhead(mark)))
        .lookAhead()
        .settled();
  }

  @Test
  void aWriteNotifiesOnceIfSomeRowIsDueBeforeTheWatchAwakes() throws SQLException {
    Duration soon = Duration.ofSeconds(5);
    Duration late = Duration.ofSeconds(15);
    Rows.fill(database, "outbox", "a", 9);
    List<LeaseRef> leases = claim("me", Idle.UNCHANGED);
    claim("you", Idle.sleep(TEN_SECONDS, null));
    try (Ears ears = new Ears(database)) {
      store.retry(List.of(new RetryUpdate(new LeaseRef("a", leases.get(0).id(), 9), soon, "")));
      store.retry(List.of(new RetryUpdate(leases.get(0), late, "no")));
      store.reschedule(List.of(new RescheduleUpdate(leases.get(1), late)));
      assertThat(ears.heard()).isEmpty();

      store.retry(
          List.of(
              new RetryUpdate(leases.get(2), late, "no"),
              new RetryUpdate(leases.get(3), soon, "no"),
              new RetryUpdate(leases.get(4), soon, "no")));
      assertThat(ears.heard()).containsExactly("a");
      store.reschedule(
          List.of(
              new RescheduleUpdate(leases.get(5), late),
              new RescheduleUpdate(leases.get(6), soon)));
      assertThat(ears.heard()).containsExactly("a");
      store.release(leases.subList(7, 9));
      assertThat(ears.heard()).containsExactly("a");
    }
  }

  private List<String> asleep() {
    return database.list(
        String.class,
        "select queue || ' ' || subscriber from outbox_sleepers where wake_at > now() order by 1");
  }

  private List<LeaseRef> claim(String owner, Idle idle) {
    return Requests.leases(store, Requests.claim(owner, "a", Range.ALL, 100, idle));
  }
}
