package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.SlotMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.Range;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.LeaseRef;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** No more rows are leased at once than there are slots, however many claim at once. */
@ExtendWith(PostgresExtension.class)
@Tag("plans")
class SlotsIT {
  private static final int SLOTS = 5;
  private static final int CLAIMERS = 8;
  private static final Duration LEASE = Duration.ofMinutes(5);

  private final TestDatabase database;
  private HikariDataSource pool;

  SlotsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    database.migrate(SlotMigrations.of("public", "outbox"), SlotMigrations::migrate);
    database.update("truncate outbox, outbox_slots");
    database.update("alter table outbox set (autovacuum_enabled = off)");
    pool = database.pool(CLAIMERS);
  }

  @AfterEach
  void close() {
    pool.close();
  }

  private static ClaimRequest request(String owner, int limit) {
    return new ClaimRequest(
        "orders", Range.ALL, limit, 1 << 20, LEASE, owner, Idle.UNCHANGED, null, SLOTS);
  }

  private void fill(int rows) {
    database.update(
        "insert into outbox (queue, payload) select 'orders', 'x' from generate_series(1, ?)",
        rows);
  }

  /**
   * A lease is counted from the answer to its claim until its ack is sent, so never longer than it
   * holds. The first ones are kept until as many are held as there are slots.
   */
  @Test
  void manyClaimersNeverHoldMoreThanThereAreSlots() throws Exception {
    fill(4_000);
    PostgresStore store = PostgresOutbox.on(pool, database.table()).store();
    store.slots().orElseThrow().open("orders", SLOTS);
    AtomicInteger held = new AtomicInteger();
    AtomicInteger most = new AtomicInteger();
    AtomicInteger acked = new AtomicInteger();
    CountDownLatch allHeld = new CountDownLatch(SLOTS);
    List<Callable<Void>> claimers = new ArrayList<>();
    for (int i = 0; i < CLAIMERS; i++) {
      String owner = "c" + i;
      Random random = new Random(i);
      claimers.add(
          () -> {
            while (acked.get() < 4_000) {
              ClaimResult result = store.claim(request(owner, 1 + random.nextInt(4)));
              List<LeaseRef> leases =
                  new ArrayList<>(result.rows().stream().map(ClaimedRow::lease).toList());
              most.accumulateAndGet(held.addAndGet(leases.size()), Math::max);
              leases.forEach(lease -> allHeld.countDown());
              assertThat(leases.isEmpty() || allHeld.await(20, TimeUnit.SECONDS)).isTrue();
              Collections.shuffle(leases, random);
              for (LeaseRef lease : leases) {
                held.decrementAndGet();
                acked.addAndGet(store.ack(List.of(lease)).done().size());
              }
            }
            return null;
          });
    }
    ExecutorService threads = Executors.newFixedThreadPool(CLAIMERS);
    try {
      for (Future<Void> claimer : threads.invokeAll(claimers)) {
        claimer.get();
      }
    } finally {
      threads.shutdownNow();
    }

    assertThat(most).hasValue(SLOTS);
    assertThat(acked).hasValue(4_000);
  }

  @Test
  void aSlotThatSomebodyHasLockedIsPassedByAndTheOthersAreUsed() throws SQLException {
    fill(10);
    PostgresStore store = PostgresOutbox.on(pool, database.table()).store();
    store.slots().orElseThrow().open("orders", SLOTS);
    try (Connection stranger = database.plain().getConnection();
        Statement statement = stranger.createStatement()) {
      stranger.setAutoCommit(false);
      statement.execute("select from outbox_slots where queue = 'orders' and slot = 2 for update");

      assertThat(store.claim(request("me", 10)).rows()).hasSize(SLOTS - 1);
      assertThat(store.claim(request("me", 10)).rows()).isEmpty();
      stranger.rollback();
    }
    assertThat(store.claim(request("me", 10)).rows()).hasSize(1);
  }

  /**
   * The claim of a role with a policy stands still where it reads the slots: it has seen them free,
   * and another claim takes them all before it goes on.
   */
  @Test
  void aSlotThatWasTakenSinceItWasSeenFreeIsNotTakenAgain() throws Exception {
    fill(20);
    PostgresStore store = PostgresOutbox.on(pool, database.table()).store();
    store.slots().orElseThrow().open("orders", SLOTS);
    PostgresStore slow = PostgresOutbox.on(heldUpAtSlots(), database.table()).store();
    ExecutorService thread = Executors.newSingleThreadExecutor();
    try (Connection gate = database.plain().getConnection();
        Statement statement = gate.createStatement()) {
      statement.execute("select pg_advisory_lock(7)");
      Future<ClaimResult> claim = thread.submit(() -> slow.claim(request("slow", 10)));
      await()
          .until(
              () ->
                  database.one(
                      Boolean.class,
                      "select count(*) > 0 from pg_locks"
                          + " where locktype = 'advisory' and objid = 7 and not granted"));
      assertThat(store.claim(request("quick", 10)).rows()).hasSize(SLOTS);
      statement.execute("select pg_advisory_unlock(7)");

      assertThat(claim.get(20, TimeUnit.SECONDS).rows()).isEmpty();
      assertThat(claim.get().outOfSlots()).isTrue();
    } finally {
      thread.shutdownNow();
      database.update("alter table outbox_slots disable row level security");
    }
  }

  /** Returns connections of a role for which each look at a slot waits for an advisory lock. */
  private PGSimpleDataSource heldUpAtSlots() {
    database.update("drop role if exists slow");
    database.update("create role slow login password 'secret'");
    database.update(OutboxMigrations.of("public", "outbox").grantsSql("slow", "slow", "slow"));
    database.update(SlotMigrations.of("public", "outbox").grantsSql("slow"));
    database.update(
        """
        create or replace function wait_for_the_test() returns boolean language plpgsql
        set lock_timeout = 0 as $$
        begin
          perform pg_advisory_lock_shared(7);
          perform pg_advisory_unlock_shared(7);
          return true;
        end $$""");
    database.update("drop policy if exists wait on outbox_slots");
    database.update(
        "create policy wait on outbox_slots to slow using (wait_for_the_test()) with check (true)");
    database.update("alter table outbox_slots enable row level security");
    PGSimpleDataSource source = database.plain();
    source.setUser("slow");
    source.setPassword("secret");
    return source;
  }

  @Test
  void aClaimInSlotsReadsAsFewPagesOfABigTableAtEveryStage() throws SQLException {
    try (Plans plans = new Plans(database)) {
      PostgresStore store = PostgresOutbox.on(plans, database.table()).store();
      store.slots().orElseThrow().open("orders", SLOTS);
      database.update("vacuum analyze outbox");
      for (int i = 0; i < 10; i++) {
        store.claim(request("me", 10));
      }
      plans.writes();

      fill(200_000);
      assertReadsFewPages(plans, store);
      database.update("analyze outbox");
      assertReadsFewPages(plans, store);
      database.update("vacuum outbox");
      assertReadsFewPages(plans, store);
    }
  }

  private static void assertReadsFewPages(Plans plans, PostgresStore store) throws SQLException {
    ClaimResult rows = store.claim(request("me", 10));
    assertThat(rows.rows()).hasSize(SLOTS);
    assertThat(plans.write().buffers()).isLessThan(200);
    assertThat(store.claim(request("me", 10)).rows()).isEmpty();
    assertThat(plans.write().buffers()).isLessThan(200);
    store.ack(rows.rows().stream().map(ClaimedRow::lease).toList());
    plans.writes();
  }
}
