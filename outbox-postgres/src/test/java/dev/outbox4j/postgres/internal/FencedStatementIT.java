package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.FaultyDataSource;
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
  void rowsOfOneTokenAreFoundByOneListOfIdsAndALostOneIsLeft() {
    List<LeaseRef> leases = leases(5);
    LeaseRef lost = leases.get(1);
    LeaseRef released = leases.get(2);
    database.update("update outbox set lease_token = lease_token + 1 where id = ?", lost.id());
    database.update("update outbox set lease_until = null where id = ?", released.id());

    Written written = ack.execute(leases, rows -> Map.of());

    assertThat(counting.executionsOf("o.id = any (?::bigint[])")).isEqualTo(1);
    assertThat(counting.executions())
        .as("with one for whether the others were replaced")
        .isEqualTo(2);
    assertThat(written.done()).hasSize(3).doesNotContain(lost.id(), released.id());
    assertThat(database.count("outbox")).isEqualTo(2);
  }

  /** Then what is tried again finds no row, and nobody is to look for a reason. */
  @Test
  void ifTheAnswerIsLostOfLettingGoOfAReplacedRowItIsNotKnownWhatBecameOfIt() throws SQLException {
    List<LeaseRef> leases = leases(2);
    database.update("update outbox set next_id = 1000 + id");
    FencedStatement<LeaseRef> cut = losesTheAnswerOf("set id = o.next_id");

    OutboxStoreException failure =
        catchThrowableOfType(
            OutboxStoreException.class, () -> cut.execute(leases, rows -> Map.of()));

    assertThat(failure.outcomeUnknown()).isTrue();
    assertThat(database.list(Long.class, "select id from outbox where lease_until is null"))
        .hasSize(2);
  }

  @Test
  void whatWasWrittenIsToldThoughItIsNotKnownWhatBecameOfAReplacedRow() throws SQLException {
    List<LeaseRef> leases = leases(2);
    long replaced = leases.get(1).id();
    database.update("update outbox set next_id = 1000 + id where id = ?", replaced);

    Written written = losesTheAnswerOf("set id = o.next_id").execute(leases, rows -> Map.of());

    assertThat(written).isEqualTo(new Written(Set.of(leases.get(0).id()), Set.of(replaced)));
  }

  /** On a connection that fails once it has sent such a statement, and it was committed. */
  private FencedStatement<LeaseRef> losesTheAnswerOf(String part) {
    FaultyDataSource losing = new FaultyDataSource(database.plain());
    losing.cutAfter(sql -> sql.contains(part));
    return new FencedStatement<>(
        "ack",
        new Jdbc(losing, database.table(), Duration.ofSeconds(15)),
        DELETE,
        Function.identity());
  }

  @Test
  void whatWasWrittenIsToldThoughItIsNotKnownWhetherTheOthersWereReplaced() {
    List<LeaseRef> leases = leases(3);
    LeaseRef lost = leases.get(1);
    database.update("update outbox set lease_token = lease_token + 1 where id = ?", lost.id());
    counting.beforeEach(
        text -> {
          if (text.contains("set id = o.next_id")) {
            database.list(
                Boolean.class,
                "select pg_terminate_backend(pid) from pg_stat_activity"
                    + " where datname = current_database() and pid <> pg_backend_pid()");
          }
        });

    Written written = ack.execute(leases, rows -> Map.of());

    assertThat(written.done()).containsExactlyInAnyOrder(leases.get(0).id(), leases.get(2).id());
    assertThat(written.busy()).as("to be asked for again").containsExactly(lost.id());
    counting.beforeEach(text -> {});
    assertThat(ack.execute(List.of(lost), rows -> Map.of())).isEqualTo(Written.done(Set.of()));
    assertThat(database.count("outbox")).isEqualTo(1);
  }

  @Test
  void rowsOfSeveralTokensEachHaveTheirOwn() {
    List<LeaseRef> leases = leases(4);
    LeaseRef older = leases.get(1);
    LeaseRef younger = new LeaseRef(older.queue(), leases.get(2).id(), older.token() + 1);
    database.update("update outbox set lease_token = lease_token + 1 where id = ?", younger.id());

    Written written =
        ack.execute(
            List.of(leases.get(0), older, younger, inVain(leases.get(3))), rows -> Map.of());

    assertThat(counting.executionsOf("o.id = any (?::bigint[])")).isZero();
    assertThat(written.done())
        .containsExactlyInAnyOrder(leases.get(0).id(), older.id(), younger.id());
    assertThat(database.count("outbox")).isEqualTo(1);
  }

  private static LeaseRef inVain(LeaseRef lease) {
    return new LeaseRef(lease.queue(), lease.id(), lease.token() + 1);
  }

  @Test
  void aRowThatIsKnownToBeLockedIsNotWaitedForAgain() throws SQLException {
    List<LeaseRef> leases = leases(1);
    try (Connection stranger = holding("select 1 from outbox for update")) {
      assertThat(executions(leases)).as("one that waits, and one that passes by").isEqualTo(2);
      pass(60);
      assertThat(executions(leases)).isEqualTo(1);
      pass(60);
      assertThat(executions(leases)).isEqualTo(1);
      stranger.rollback(); // the server notices a close a while later
    }
    assertThat(executions(leases)).isEqualTo(1);
    assertThat(database.count("outbox")).isZero();
  }

  @Test
  void rowsThatArePassedByHaveOthersWaitedForAgainAfterASecond() throws SQLException {
    List<LeaseRef> leases = leases(4);
    try (Connection stranger = holding("select 1 from outbox where id % 2 = 0 for update")) {
      List<LeaseRef> locked = leases.stream().filter(lease -> lease.id() % 2 == 0).toList();
      List<LeaseRef> free = leases.stream().filter(lease -> lease.id() % 2 != 0).toList();
      assertThat(executions(locked.subList(0, 1))).isEqualTo(2);
      assertThat(executions(locked.subList(1, 2))).as("at once").isEqualTo(1);
      pass(1);
      assertThat(passingBy(free.subList(0, 1))).isFalse();
      assertThat(passingBy(locked)).isTrue();
      assertThat(passingBy(free.subList(1, 2))).as("to pass by is no new wait").isFalse();
    }
    assertThat(database.count("outbox")).isEqualTo(2);
  }

  @Test
  void aRowThatWasLockedAndIsFreeIsForgotten() {
    LockedRows rows = new LockedRows(clock::get);
    rows.passedBy(new long[] {1, 2, 3}, Set.of(1L, 2L));
    assertThat(rows.areExpectedAmong(new long[] {3, 4})).isFalse();
    assertThat(rows.areExpectedAmong(new long[] {3, 2})).isTrue();
    rows.passedBy(new long[] {2}, Set.of());
    assertThat(rows.areExpectedAmong(new long[] {3, 2})).isFalse();
    assertThat(rows.areExpectedAmong(new long[] {1})).isTrue();
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

  private boolean passingBy(List<LeaseRef> leases) {
    long before = counting.executionsOf("skip locked");
    assertThat(executions(leases)).isEqualTo(1);
    return counting.executionsOf("skip locked") > before;
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
