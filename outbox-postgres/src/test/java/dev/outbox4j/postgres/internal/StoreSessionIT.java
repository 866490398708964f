package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxException;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.testing.CountingDataSource;
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
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.PGConnection;

/** What the store does to the connections it borrows. */
@ExtendWith(PostgresExtension.class)
class StoreSessionIT {
  private static final Duration LEASE = Duration.ofSeconds(60);

  private final TestDatabase database;

  StoreSessionIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void fill() {
    database.update("truncate outbox, outbox_sleepers");
    Rows.fill(database, "outbox", "orders", 10);
  }

  @Test
  void everyOperationIsOneExecutionAndEndsNoTransaction() {
    CountingDataSource counting = new CountingDataSource(database.pool(1));
    PostgresStore store = PostgresOutbox.store(counting, database.table());

    for (Idle.Mode mode : Idle.Mode.values()) {
      claim(store, new Idle(mode, Duration.ofSeconds(1)), 1, "orders");
      claim(store, new Idle(mode, Duration.ofSeconds(1)), 1, "orders", "letters");
    }
    assertThat(counting.executions()).isEqualTo(8);

    database.update("update outbox set lease_until = null");
    List<LeaseRef> leases = claim(store, Idle.UNCHANGED, 10, "orders");
    long before = counting.executions();
    store.renew(leases, LEASE);
    store.retry(List.of(new RetryUpdate(leases.get(0), LEASE, "failed")));
    store.reschedule(List.of(new RescheduleUpdate(leases.get(1), LEASE)));
    store.release(leases.subList(2, 4));
    store.ack(leases.subList(4, 10));
    store.forget("me");
    assertThat(counting.executions() - before).isEqualTo(6);
    assertThat(counting.transactionEnds()).isZero();
    assertThat(database.count("outbox")).isEqualTo(4);
  }

  @Test
  void nothingIsAskedOfTheServerForAnEmptyList() {
    CountingDataSource counting = new CountingDataSource(database.pool(1));
    PostgresStore store = PostgresOutbox.store(counting, database.table());

    assertThat(store.ack(List.of())).isEmpty();
    assertThat(counting.executions()).isZero();
  }

  @Test
  void makingAStoreTouchesNoDatabase() {
    HikariDataSource nowhere = new HikariDataSource();
    nowhere.setJdbcUrl("jdbc:postgresql://localhost:1/none");
    PostgresStore store =
        PostgresOutbox.store(nowhere, OutboxTable.named("outbox"), Duration.ofSeconds(1));

    assertThat(store.connectionLimit()).hasValue(10);
    assertThat(store.connectionSource()).isSameAs(nowhere);
    assertThat(store.channel()).isEqualTo("outbox_outbox");
    nowhere.close();
  }

  @Test
  void aTimeoutOutOfRangeIsRefused() {
    OutboxTable table = database.table();

    assertThatThrownBy(() -> PostgresOutbox.store(database.plain(), table, Duration.ZERO))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("networkTimeout is PT0S");
    assertThatThrownBy(() -> PostgresOutbox.store(database.plain(), table, Duration.ofDays(25)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void theSizeOfAPoolIsKnownThroughAWrapperAndNotWithoutOne() {
    HikariDataSource pool = database.pool(3);
    CountingDataSource wrapped = new CountingDataSource(pool);

    assertThat(PostgresOutbox.store(pool, database.table()).connectionLimit()).hasValue(3);
    assertThat(PostgresOutbox.store(wrapped, database.table()).connectionLimit()).hasValue(3);
    assertThat(PostgresOutbox.store(database.plain(), database.table()).connectionLimit())
        .isEmpty();
  }

  @Test
  void noSettingOutlivesItsStatement() throws SQLException {
    try (HikariDataSource pool = database.pool(1)) {
      PostgresStore store = PostgresOutbox.store(pool, database.table());
      String before = settings(pool);

      for (int i = 0; i < 10; i++) {
        List<LeaseRef> leases = claim(store, Idle.sleep(LEASE), 1, "orders");
        store.ack(leases);
      }

      assertThat(settings(pool)).isEqualTo(before).contains("enable_seqscan=on");
    }
  }

  @Test
  void aPoolWithoutAutocommitWorksAndStaysSo() throws SQLException {
    HikariDataSource real = database.pool(1);
    HikariDataSource pool = new HikariDataSource();
    pool.setDataSource(database.plain());
    pool.setMaximumPoolSize(1);
    pool.setAutoCommit(false);
    try (pool) {
      PostgresStore store = PostgresOutbox.store(pool, database.table());

      List<LeaseRef> leases = claim(store, Idle.UNCHANGED, 10, "orders");
      assertThat(claim(PostgresOutbox.store(real, database.table()), Idle.UNCHANGED, 1, "orders"))
          .as("the claim was committed")
          .isEmpty();
      assertThat(store.ack(leases)).hasSize(10);
      assertThat(database.count("outbox")).isZero();
      try (Connection connection = pool.getConnection()) {
        assertThat(connection.getAutoCommit()).isFalse();
      }
    }
  }

  @Test
  void theNetworkTimeoutIsRestored() throws SQLException {
    try (Connection only = database.plain().getConnection()) {
      only.setNetworkTimeout(Runnable::run, 70_000);
      PostgresStore store =
          PostgresOutbox.store(new SingleConnection(only), database.table(), LEASE);

      assertThat(claim(store, Idle.UNCHANGED, 1, "orders")).hasSize(1);

      assertThat(only.getNetworkTimeout()).isEqualTo(70_000);
    }
  }

  @Test
  void aConnectionOnWhichAnErrorBrokeOffIsNotUsedAgain() {
    Jdbc jdbc = new Jdbc(database.pool(1), database.table(), LEASE);
    int before = jdbc.run("test", StoreSessionIT::backend);
    OutboxException ours = new OutboxException("read and found odd");

    assertThatThrownBy(() -> jdbc.run("test", connection -> breakOff(connection, ours)))
        .isSameAs(ours);
    assertThat(jdbc.<Integer>run("test", StoreSessionIT::backend)).isEqualTo(before);

    for (Throwable thrown :
        List.of(new OutOfMemoryError("while reading"), new IllegalStateException("the driver"))) {
      int last = jdbc.run("test", StoreSessionIT::backend);
      assertThatThrownBy(() -> jdbc.run("test", connection -> breakOff(connection, thrown)))
          .isSameAs(thrown);
      assertThat(jdbc.<Integer>run("test", StoreSessionIT::backend)).isNotEqualTo(last);
    }
  }

  private static int backend(Connection connection) throws SQLException {
    return connection.unwrap(PGConnection.class).getBackendPID();
  }

  private static int breakOff(Connection connection, Throwable thrown) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute("select 1");
      if (thrown instanceof Error error) {
        throw error;
      }
      throw (RuntimeException) thrown;
    }
  }

  @Test
  void aTransactionThatIsOpenHoldsTheOldestBack() throws SQLException {
    PostgresStore store = PostgresOutbox.store(database.pool(1), database.table());
    ClaimRequest look = request(Idle.LOOK_AHEAD, 1, "orders");
    try (Connection open = database.plain().getConnection();
        Statement statement = open.createStatement()) {
      open.setAutoCommit(false);
      statement.execute("insert into outbox (queue, payload) values ('other', '')");
      long held = store.claim(look).lookAhead().nextTransaction();

      assertThat(store.claim(look).lookAhead().oldestTransaction()).isLessThan(held);
      open.commit();
      assertThat(store.claim(look).lookAhead().oldestTransaction()).isGreaterThanOrEqualTo(held);
    }
  }

  private static String settings(HikariDataSource pool) throws SQLException {
    try (Connection connection = pool.getConnection();
        Statement statement = connection.createStatement();
        ResultSet rows =
            statement.executeQuery(
                "select string_agg(name || '=' || setting, ' ' order by name) from pg_settings"
                    + " where name like 'enable%' or name = 'plan_cache_mode'")) {
      rows.next();
      return rows.getString(1);
    }
  }

  private static ClaimRequest request(Idle idle, int limit, String... queues) {
    return new ClaimRequest(
        List.of(queues).stream().map(queue -> new QueueScan(queue, null)).toList(),
        limit,
        LEASE,
        "me",
        idle);
  }

  private static List<LeaseRef> claim(PostgresStore store, Idle idle, int limit, String... queues) {
    return store.claim(request(idle, limit, queues)).rows().stream()
        .map(ClaimedRow::lease)
        .toList();
  }
}
