package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.BucketLease;
import dev.outbox4j.spi.BucketStore;
import dev.outbox4j.spi.BucketStore.Join;
import dev.outbox4j.spi.BucketStore.Owned;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.RetryUpdate;
import dev.outbox4j.spi.Written;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What one locked row of the tables of buckets holds up. */
@ExtendWith(PostgresExtension.class)
class BucketLocksIT {
  private static final String QUEUE = "locked";
  private static final OrderedMigrations ORDERED = OrderedMigrations.of("public", "outbox", QUEUE);

  private final TestDatabase database;
  private final HikariDataSource pool;
  private final OutboxStore store;
  private final BucketStore buckets;

  BucketLocksIT(TestDatabase database) {
    this.database = database;
    this.pool = database.pool(2);
    this.store = PostgresOutbox.on(pool, database.table()).store();
    this.buckets = store.buckets().orElseThrow();
  }

  @BeforeEach
  void migrate() {
    ORDERED.migrate(database.plain());
  }

  @AfterEach
  void drop() {
    database.update("delete from outbox where queue = ?", QUEUE);
    database.update(ORDERED.dropQueuesSql());
    pool.close();
  }

  private Map<Integer, Long> join() {
    return buckets.join(new Join(QUEUE, "me", Duration.ofMinutes(5), Set.of(), 0)).owned().stream()
        .collect(Collectors.toMap(Owned::bucket, Owned::epoch));
  }

  @Test
  void aDeadOwnerWhoseRowIsLockedStopsNoRenewal() throws SQLException {
    join();
    database.update(
        "insert into outbox_bucket_owners (queue, owner, lease_until) values (?, 'dead', now() - interval '2 hours'), (?, 'dead too', now() - interval '2 hours')",
        QUEUE,
        QUEUE);
    try (Connection stranger = database.plain().getConnection();
        Statement statement = stranger.createStatement()) {
      stranger.setAutoCommit(false);
      statement.execute("select from outbox_bucket_owners where owner = 'dead' for update");
      assertThat(join()).hasSize(64);
      assertThat(owners()).containsExactlyInAnyOrder("me", "dead");
      stranger.rollback();
    }
    join();
    assertThat(owners()).containsExactly("me");
  }

  private List<String> owners() {
    return database.list(
        String.class, "select owner from outbox_bucket_owners where queue = ?", QUEUE);
  }

  @Test
  void aLockedBucketHoldsUpWhatIsInItAndNothingElse() throws SQLException {
    Map<Integer, Long> epochs = join();
    List<LeaseRef> leases = new ArrayList<>();
    for (int i = 0; i < 10; i++) {
      long id =
          database.one(
              Long.class,
              "insert into outbox (queue, payload) values (?, 'x') returning id",
              QUEUE);
      int bucket = (int) (id & 63);
      leases.add(new LeaseRef(QUEUE, id, 0, new BucketLease(bucket, epochs.get(bucket), false)));
    }
    LeaseRef locked = leases.get(4);
    LeaseRef alsoLocked = leases.get(5);
    try (Connection stranger = database.plain().getConnection();
        Statement statement = stranger.createStatement()) {
      stranger.setAutoCommit(false);
      statement.execute(
          "select from outbox_buckets where queue = 'locked' and bucket in (%d, %d) for update"
              .formatted(bucket(locked), bucket(alsoLocked)));

      Written acked = store.ack(leases.subList(0, 5));
      assertThat(acked.done()).hasSize(4);
      assertThat(acked.busy()).containsExactly(locked.id());
      Written retried =
          store.retry(
              leases.subList(5, 10).stream()
                  .map(lease -> new RetryUpdate(lease, Duration.ofDays(1), "failed"))
                  .toList());
      assertThat(retried.done()).hasSize(4);
      assertThat(retried.busy()).containsExactly(alsoLocked.id());
      stranger.rollback();
    }
    Written after = store.ack(List.of(locked, alsoLocked));
    assertThat(after.done()).containsExactlyInAnyOrder(locked.id(), alsoLocked.id());
  }

  @Test
  void aBucketThatIsAnothersNowIsLostAndNotLocked() throws SQLException {
    Map<Integer, Long> epochs = join();
    long id =
        database.one(
            Long.class, "insert into outbox (queue, payload) values (?, 'x') returning id", QUEUE);
    int bucket = (int) (id & 63);
    LeaseRef lease = new LeaseRef(QUEUE, id, 0, new BucketLease(bucket, epochs.get(bucket), false));
    database.update(
        "update outbox_buckets set epoch = epoch + 1, owner = 'other' where queue = ? and bucket = ?",
        QUEUE,
        bucket);
    try (Connection stranger = database.plain().getConnection();
        Statement statement = stranger.createStatement()) {
      stranger.setAutoCommit(false);
      statement.execute("select from outbox_buckets where queue = 'locked' for update");
      Written written = store.ack(List.of(lease));
      assertThat(written.done()).isEmpty();
      assertThat(written.busy()).isEmpty();
      stranger.rollback();
    }
  }

  private static int bucket(LeaseRef lease) {
    return Objects.requireNonNull(lease.bucket()).bucket();
  }
}
