package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.RetryUpdate;
import dev.outbox4j.spi.Written;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What a write under leases asks the server for, and how often beside strangers' locks. */
@ExtendWith(PostgresExtension.class)
class FencedStatementIT {
  private static final FencedSql DELETE = new FencedSql(FencedSql.ACK);

  private final TestDatabase database;
  private final AtomicLong clock = new AtomicLong();
  private CountingDataSource counting;
  private Jdbc jdbc;
  private FencedStatement<LeaseRef> ack;

  FencedStatementIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void make() {
    database.update("truncate outbox");
    counting = new CountingDataSource(database.pool(1));
    jdbc = new Jdbc(counting, database.table(), Duration.ofSeconds(15));
    ack =
        new FencedStatement<>(
            "ack", jdbc, DELETE, Function.identity(), new LockedRows(clock::get), false);
  }

  @Test
  void ofSeveralWritesForARowTheYoungestLeaseCountsAndOfEqualOnesTheFirst() {
    FencedStatement<RetryUpdate> write =
        new FencedStatement<>("ack", jdbc, DELETE, RetryUpdate::lease);
    List<LeaseRef> leases = leases(2);
    LeaseRef held = leases.get(0);
    LeaseRef lost = leases.get(1);
    List<String> asked = new ArrayList<>();

    Written written =
        write.execute(
            List.of(
                update(lost, 0, "lost"),
                update(held, 0, "first"),
                update(held, -1, "older"),
                update(held, 0, "again"),
                update(lost, 1, "younger")),
            rows -> {
              rows.forEach(row -> asked.add(row.error()));
              return Map.of();
            });

    assertThat(asked).containsExactly("first", "younger");
    assertThat(written).isEqualTo(Written.done(Set.of(held.id())));
  }

  /** An update under a token that many claims later than the lease's. */
  private static RetryUpdate update(LeaseRef lease, int later, String error) {
    return new RetryUpdate(
        new LeaseRef(lease.queue(), lease.id(), lease.token() + later), Duration.ZERO, error);
  }

  @Test
  void lockedRowsAreWaitedForAgainThirtySecondsAfterTheyWereMetLast() throws SQLException {
    List<LeaseRef> leases = leases(1);
    try (Connection stranger = holding("select 1 from outbox for update")) {
      assertThat(executions(leases)).as("one that waits, and one that passes by").isEqualTo(2);
      pass(29);
      assertThat(executions(leases)).isEqualTo(1);
      pass(29);
      assertThat(executions(leases)).as("58 s after the first").isEqualTo(1);
      pass(30);
      assertThat(executions(leases)).isEqualTo(2);
    }
  }

  @Test
  void aWriteThatMeetsNoLockedRowDoesNotPutOffTheNextWait() throws SQLException {
    List<LeaseRef> leases = leases(2);
    List<LeaseRef> locked = leases.subList(0, 1);
    try (Connection stranger =
        holding("select 1 from outbox where id = " + locked.get(0).id() + " for update")) {
      assertThat(executions(locked)).isEqualTo(2);
      pass(20);
      assertThat(executions(leases.subList(1, 2))).isEqualTo(1);
      pass(11);
      assertThat(executions(locked)).isEqualTo(2);
    }
    assertThat(database.count("outbox")).isEqualTo(1);
  }

  @Test
  void aWriteThatHasWaitedForATableInVainIsFollowedByOnesThatTryOnce() throws SQLException {
    List<LeaseRef> leases = leases(1);
    try (Connection stranger = holding("lock table outbox in access exclusive mode")) {
      assertThat(executionsInVain(leases)).isEqualTo(2);
      assertThat(executionsInVain(leases)).isEqualTo(1);
    }
  }

  private long executions(List<LeaseRef> leases) {
    long before = counting.executions();
    ack.execute(leases, rows -> Map.of());
    return counting.executions() - before;
  }

  private long executionsInVain(List<LeaseRef> leases) {
    long before = counting.executions();
    OutboxStoreException e =
        catchThrowableOfType(OutboxStoreException.class, () -> executions(leases));
    assertThat(e.fault()).isEqualTo(Fault.TIMEOUT);
    return counting.executions() - before;
  }

  private void pass(long seconds) {
    clock.addAndGet(TimeUnit.SECONDS.toNanos(seconds));
  }

  private List<LeaseRef> leases(int count) {
    Rows.fill(database, "outbox", "orders", count);
    return Requests.claim(PostgresOutbox.on(database.plain(), database.table()).store(), count);
  }

  /** Returns a connection whose transaction holds what the statement locks. */
  private Connection holding(String lock) throws SQLException {
    Connection connection = database.plain().getConnection();
    connection.setAutoCommit(false);
    try (Statement statement = connection.createStatement()) {
      statement.execute(lock);
    }
    return connection;
  }
}
