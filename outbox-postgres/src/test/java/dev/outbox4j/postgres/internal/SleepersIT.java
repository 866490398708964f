package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.QueueScan;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.RescheduleUpdate;
import dev.outbox4j.spi.RetryUpdate;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.BiFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;

/** What publishers can see of a subscriber that sleeps. */
@ExtendWith(PostgresExtension.class)
class SleepersIT {
  private static final Duration TEN_SECONDS = Duration.ofSeconds(10);

  private final TestDatabase database;
  private final PostgresStore store;

  SleepersIT(TestDatabase database) {
    this.database = database;
    this.store = PostgresOutbox.store(database.pool(2), database.table());
  }

  @BeforeEach
  void empty() {
    database.update("truncate outbox, outbox_sleepers");
  }

  @Test
  void aSleeperIsSeenOnAllItsQueuesUntilItIsAwake() {
    claim("me", Idle.sleep(TEN_SECONDS), "b", "a", "b");
    claim("you", Idle.sleep(TEN_SECONDS), "a");
    assertThat(asleep()).containsExactly("a me", "a you", "b me");
    assertThat(
            database.one(
                Boolean.class,
                "select bool_and(wake_at between now() + interval '5 s' and now() + interval '10 s')"
                    + " from outbox_sleepers"))
        .isTrue();

    claim("me", Idle.UNCHANGED, "a", "b");
    claim("me", Idle.LOOK_AHEAD, "a", "b");
    assertThat(asleep()).containsExactly("a me", "a you", "b me");

    claim("me", Idle.AWAKE, "a", "b");
    assertThat(asleep()).containsExactly("a you");

    claim("me", Idle.sleep(TEN_SECONDS), "a", "b");
    assertThat(asleep()).containsExactly("a me", "a you", "b me");
  }

  @Test
  void anOwnerThatIsForgottenIsGoneAndSoAreThoseLongDead() {
    claim("me", Idle.sleep(TEN_SECONDS), "a", "b");
    claim("you", Idle.sleep(TEN_SECONDS), "a");
    claim("dead", Idle.sleep(TEN_SECONDS), "a");
    database.update(
        "update outbox_sleepers set wake_at = now() - interval '2 hours' where subscriber = 'dead'");

    store.forget("me");

    assertThat(database.list(String.class, "select subscriber from outbox_sleepers"))
        .containsExactly("you");
  }

  @Test
  void forgettingDoesNotWaitForARowThatSomeoneHolds() throws SQLException {
    claim("me", Idle.sleep(TEN_SECONDS), "a");
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
      claim("me", Idle.sleep(TEN_SECONDS), "a");
      claim("me", Idle.AWAKE, "a");
    }

    assertThat(database.one(Long.class, "select pg_relation_size('outbox_sleepers_pkey')"))
        .isEqualTo(2 * 8192);
    assertThat(database.one(Long.class, "select pg_relation_size('outbox_sleepers')"))
        .isLessThanOrEqualTo(2 * 8192);
  }

  @Test
  void aReleaseNotifiesOnceForEachQueueOnWhichSomeoneSleeps() throws SQLException {
    Stream.of("a", "a", "b", "c", "c").forEach(queue -> Rows.fill(database, "outbox", queue, 1));
    List<LeaseRef> leases = claim("me", Idle.UNCHANGED, "a", "b", "c");
    assertThat(leases).hasSize(5);
    claim("you", Idle.sleep(TEN_SECONDS), "a", "b");
    claim("gone", Idle.sleep(Duration.ZERO), "c");
    try (Connection listener = database.plain().getConnection();
        Statement statement = listener.createStatement()) {
      statement.execute("listen outbox_outbox");
      statement.execute("listen stop");

      store.release(List.of(new LeaseRef("b", leases.get(2).id(), 99)));
      assertThat(store.release(leases)).hasSize(5);
      database.update("notify stop");

      assertThat(heardUntilStop(listener)).containsExactly("a", "b");
    }
  }

  @Test
  void aRetryAndARescheduleNotifyOnceForEachQueueOnWhichSomeoneSleepsPastThem()
      throws SQLException {
    Duration soon = Duration.ofSeconds(5);
    Duration late = Duration.ofSeconds(15);
    for (int round = 0; round < 2; round++) {
      database.update("truncate outbox, outbox_sleepers");
      Stream.of("a", "a", "b", "b", "c", "d")
          .forEach(queue -> Rows.fill(database, "outbox", queue, 1));
      List<LeaseRef> leases = claim("me", Idle.UNCHANGED, "a", "b", "c", "d");
      assertThat(leases).hasSize(6);
      claim("you", Idle.sleep(TEN_SECONDS), "a", "b", "c");
      claim("gone", Idle.sleep(Duration.ZERO), "d");
      List<Duration> delays = List.of(soon, soon, late, soon, late, soon);
      try (Connection listener = database.plain().getConnection();
          Statement statement = listener.createStatement()) {
        statement.execute("listen outbox_outbox");
        statement.execute("listen stop");

        if (round == 0) {
          store.retry(List.of(new RetryUpdate(new LeaseRef("a", leases.get(0).id(), 9), soon, "")));
          assertThat(store.retry(each(leases, delays, (l, d) -> new RetryUpdate(l, d, "no"))))
              .hasSize(6);
        } else {
          assertThat(store.reschedule(each(leases, delays, RescheduleUpdate::new))).hasSize(6);
        }
        database.update("notify stop");

        assertThat(heardUntilStop(listener)).containsExactly("a", "b");
      }
    }
  }

  private static <T> List<T> each(
      List<LeaseRef> leases, List<Duration> delays, BiFunction<LeaseRef, Duration, T> update) {
    return IntStream.range(0, leases.size())
        .mapToObj(i -> update.apply(leases.get(i), delays.get(i)))
        .toList();
  }

  private static List<String> heardUntilStop(Connection listener) throws SQLException {
    List<String> heard = new ArrayList<>();
    while (true) {
      PGNotification[] some = listener.unwrap(PGConnection.class).getNotifications(10_000);
      assertThat(some).as("notifications").isNotEmpty();
      for (PGNotification one : some) {
        if (one.getName().equals("stop")) {
          Collections.sort(heard);
          return heard;
        }
        heard.add(one.getParameter());
      }
    }
  }

  private List<String> asleep() {
    return database.list(
        String.class,
        "select queue || ' ' || subscriber from outbox_sleepers where wake_at > now() order by 1");
  }

  private List<LeaseRef> claim(String owner, Idle idle, String... queues) {
    return store
        .claim(
            new ClaimRequest(
                Stream.of(queues).map(queue -> new QueueScan(queue, null)).toList(),
                100,
                Duration.ofSeconds(60),
                owner,
                idle))
        .rows()
        .stream()
        .map(ClaimedRow::lease)
        .toList();
  }
}
