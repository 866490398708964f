package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.LeaseRef;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Two partitions whose rows have the same places, ids and tokens: the queue tells them apart. */
@ExtendWith(PostgresExtension.class)
@Tag("plans")
class PartitionedTableIT {
  private static final int ROWS = 10;
  private static final Duration LEASE = Duration.ofSeconds(60);

  private final TestDatabase database;
  private final PostgresStore store;

  PartitionedTableIT(TestDatabase database) {
    this.database = database;
    this.store = PostgresOutbox.on(database.pool(2), OutboxTable.named("parted")).store();
  }

  @BeforeEach
  void fill() {
    database.update("drop table if exists parted, parted_sleepers");
    database.update("create table parted_sleepers (like outbox_sleepers including all)");
    database.update(
        "create table parted (like outbox including defaults) partition by list (queue)");
    database.update("alter table parted add primary key (id, queue)");
    database.update(
        "create index on parted (queue, available_at, id) where available_at is not null");
    for (String queue : List.of("a", "b")) {
      database.update(
          "create table parted_" + queue + " partition of parted for values in ('" + queue + "')");
      database.update(
          "insert into parted (id, queue, payload) select n, ?, 'x' from generate_series(1, ?) n",
          queue,
          ROWS);
    }
    database.update("create table parted_default partition of parted default");
    assertThat(samePlaces()).isEqualTo(ROWS);
  }

  @Test
  void claimsOnlyTheRowsOfItsQueue() {
    assertThat(claim("a")).hasSize(ROWS).allMatch(lease -> lease.queue().equals("a"));
    assertThat(touched("b")).isZero();
    assertThat(claim("b")).hasSize(ROWS).allMatch(lease -> lease.queue().equals("b"));
  }

  @Test
  void acksOnlyTheRowsOfItsQueue() {
    List<LeaseRef> leases = claim("a");
    assertThat(claim("b")).hasSize(ROWS);

    assertThat(store.renew(leases, LEASE).done()).hasSize(ROWS);
    assertThat(store.ack(leases).done()).hasSize(ROWS);

    assertThat(rows("a")).isZero();
    assertThat(rows("b")).isEqualTo(ROWS);
  }

  /** Such as while it is detached, or gets an index. */
  @Test
  void aLockOnAnotherQueuesPartitionHoldsUpNoStatement() throws SQLException {
    CountingDataSource counting = new CountingDataSource(database.pool(1));
    PostgresStore counted = PostgresOutbox.on(counting, OutboxTable.named("parted")).store();
    try (Connection stranger = database.plain().getConnection();
        Statement statement = stranger.createStatement()) {
      stranger.setAutoCommit(false);
      statement.execute("lock table parted_b, parted_default in access exclusive mode");
      List<LeaseRef> leases = Requests.leases(counted, Requests.claim("a", ROWS, Idle.LOOK_AHEAD));
      long before = counting.executions();

      assertThat(counted.renew(leases, LEASE).done()).hasSize(ROWS);
      assertThat(counted.ack(leases.subList(0, 5)).done()).hasSize(5);
      assertThat(counted.release(leases.subList(5, ROWS)).done()).hasSize(5);

      assertThat(counting.executions() - before)
          .as("none had to wait for the lock, and was repeated")
          .isEqualTo(3);
      stranger.rollback();
    }
  }

  private List<LeaseRef> claim(String queue) {
    return Requests.leases(store, Requests.claim(queue, ROWS, Idle.LOOK_AHEAD));
  }

  private long samePlaces() {
    return database.one(
        Long.class,
        "select count(*) from parted_a a join parted_b b on a.ctid = b.ctid and a.id = b.id");
  }

  private long touched(String queue) {
    return database.one(
        Long.class, "select count(*) from parted where queue = ? and lease_token > 0", queue);
  }

  private long rows(String queue) {
    return database.one(Long.class, "select count(*) from parted where queue = ?", queue);
  }
}
