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
import java.util.stream.Collectors;
import java.util.stream.IntStream;
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
    return join("me", List.of());
  }

  private Map<Integer, Long> join(String owner, List<Owned> given) {
    return buckets.join(new Join(QUEUE, owner, Duration.ofMinutes(5), given, 0)).owned().stream()
        .collect(Collectors.toMap(Owned::bucket, Owned::epoch));
  }

  private static List<Owned> given(Map<Integer, Long> epochs, int... buckets) {
    return IntStream.of(buckets)
        .mapToObj(bucket -> new Owned(bucket, epochs.get(bucket), 0, 0))
        .toList();
  }

  @Test
  void aLockedBucketIsGivenUpAnotherTimeAndStopsNoRenewal() throws SQLException {
    Map<Integer, Long> epochs = join();
    assertThat(join("other", List.of())).isEmpty();
    try (Connection stranger = database.plain().getConnection();
        Statement statement = stranger.createStatement()) {
      stranger.setAutoCommit(false);
      statement.execute(
          "select from outbox_buckets where queue = 'locked' and bucket = 1 for share");
      assertThat(join("me", given(epochs, 1, 2)))
          .hasSize(63)
          .containsEntry(1, epochs.get(1))
          .doesNotContainKey(2);
      stranger.rollback();
    }
    assertThat(join("me", given(epochs, 1))).hasSize(62).doesNotContainKey(1);
  }

  @Test
  void aBucketThatCameBackMeanwhileIsNotGivenUp() {
    Map<Integer, Long> before = join();
    Map<Integer, Long> now = join("me", given(before, 3)); // there is nobody else to take it
    assertThat(now).hasSize(64).containsEntry(3, before.get(3) + 1);
    assertThat(join("other", List.of())).isEmpty();

    assertThat(join("me", given(before, 3))).isEqualTo(now);
    assertThat(join("me", given(now, 3))).hasSize(63);
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

  @Test
  void bucketsOfALeaseThatIsBeingRenewedAreNotTaken() throws SQLException {
    Map<Integer, Long> epochs = join();
    database.update(
        "update outbox_bucket_owners set lease_until = now() - interval '1 second' where queue = ?",
        QUEUE);
    try (Connection renewal = database.plain().getConnection();
        Statement statement = renewal.createStatement()) {
      renewal.setAutoCommit(false); // it has told what it owns, and its commit takes long
      statement.execute(
          "update outbox_bucket_owners set lease_until = now() + interval '5 minutes'"
              + " where queue = 'locked' and owner = 'me'");
      assertThat(join("other", List.of())).isEmpty();
      renewal.commit();
    }
    assertThat(join()).isEqualTo(epochs);
  }

  @Test
  void bucketsOfALeaseThatIsOverAreTakenAlsoIfItsOwnerIsNotKnownAnyMore() {
    join();
    database.update(
        "update outbox_bucket_owners set lease_until = now() - interval '1 second' where queue = ?",
        QUEUE);
    assertThat(join("second", List.of())).hasSize(64);
    database.update("delete from outbox_bucket_owners where queue = ?", QUEUE);
    assertThat(join("third", List.of())).hasSize(64);
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
      leases.add(insert(epochs));
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
  void anAckOfRowsOfWhichOneHasALostBucketDeletesTheOthers() {
    Map<Integer, Long> epochs = join();
    List<LeaseRef> leases = new ArrayList<>();
    for (int i = 0; i < 10; i++) {
      leases.add(insert(epochs));
    }
    LeaseRef lost = leases.get(3);
    database.update(
        "update outbox_buckets set epoch = epoch + 1, owner = 'other' where queue = ? and bucket = ?",
        QUEUE,
        bucket(lost));

    assertThat(store.ack(leases).done())
        .containsExactlyInAnyOrderElementsOf(
            leases.stream().filter(lease -> !lease.equals(lost)).map(LeaseRef::id).toList());
    assertThat(database.list(Long.class, "select id from outbox where queue = ?", QUEUE))
        .containsExactly(lost.id());
  }

  /** As of a subscriber that lost a bucket while a handler of it ran, and has it again. */
  @Test
  void ofABucketThatWasLostAndCameBackARowOfBeforeIsNotAckedWithThoseOfNow() {
    Map<Integer, Long> before = join();
    LeaseRef ofBefore = insert(before);
    Map<Integer, Long> now = join("me", given(before, bucket(ofBefore)));
    LeaseRef ofNow = insert(bucket(ofBefore), now);
    LeaseRef ofAnother = insert((bucket(ofBefore) + 1) % 64, now);

    assertThat(store.ack(List.of(ofBefore, ofNow, ofAnother)).done())
        .containsExactlyInAnyOrder(ofNow.id(), ofAnother.id());
    assertThat(database.list(Long.class, "select id from outbox where queue = ?", QUEUE))
        .containsExactly(ofBefore.id());
  }

  @Test
  void toGiveBackTakesADeliveryFromTheCountIfItWasAdded() {
    Map<Integer, Long> epochs = join();
    LeaseRef uncounted = insert(epochs);
    LeaseRef counted = insert(epochs);
    database.update("update outbox set deliveries_count = 2 where queue = ?", QUEUE);
    counted =
        new LeaseRef(
            QUEUE,
            counted.id(),
            0,
            new BucketLease(bucket(counted), epochs.get(bucket(counted)), true));

    assertThat(store.release(List.of(uncounted, counted)).done()).hasSize(2);
    assertThat(
            database.list(
                Integer.class,
                "select deliveries_count from outbox where queue = ? order by id",
                QUEUE))
        .containsExactly(2, 1);
  }

  /** Inserts a row of a bucket. */
  private LeaseRef insert(int bucket, Map<Integer, Long> epochs) {
    LeaseRef row = insert(epochs);
    while (bucket(row) != bucket) {
      database.update("delete from outbox where id = ?", row.id());
      row = insert(epochs);
    }
    return row;
  }

  private LeaseRef insert(Map<Integer, Long> epochs) {
    long id =
        database.one(
            Long.class, "insert into outbox (queue, payload) values (?, 'x') returning id", QUEUE);
    int bucket = (int) (id & 63);
    return new LeaseRef(QUEUE, id, 0, new BucketLease(bucket, epochs.get(bucket), false));
  }

  @Test
  void aBucketThatIsAnothersNowIsLostAndNotLocked() throws SQLException {
    Map<Integer, Long> epochs = join();
    LeaseRef lease = insert(epochs);
    database.update(
        "update outbox_buckets set epoch = epoch + 1, owner = 'other' where queue = ? and bucket = ?",
        QUEUE,
        bucket(lease));
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
