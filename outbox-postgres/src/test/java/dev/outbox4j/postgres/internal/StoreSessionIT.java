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
import dev.outbox4j.postgres.testing.SingleConnection;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.ClaimRequest.Idle;
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
import org.postgresql.ds.PGSimpleDataSource;

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
    PostgresStore store = PostgresOutbox.on(counting, database.table()).store();

    for (Idle.Mode mode : Idle.Mode.values()) {
      claim(store, new Idle(mode, Duration.ofSeconds(1), null), 1);
      claim(store, new Idle(mode, Duration.ofSeconds(1), Idle.NEW_MARK), 1);
    }
    assertThat(counting.executions()).isEqualTo(8);

    database.update("update outbox set lease_until = null");
    List<LeaseRef> leases = claim(store, Idle.UNCHANGED, 10);
    long before = counting.executions();
    store.renew(leases, LEASE);
    store.retry(List.of(new RetryUpdate(leases.get(0), LEASE, "failed")));
    store.reschedule(List.of(new RescheduleUpdate(leases.get(1), LEASE)));
    store.release(leases.subList(2, 4));
    store.ack(leases.subList(4, 10));
    store.pass("orders", "me");
    store.forget("me");
    assertThat(counting.executions() - before).isEqualTo(7);
    assertThat(counting.transactionEnds()).isZero();
    assertThat(database.count("outbox")).isEqualTo(4);
  }

  @Test
  void aLookForPausesHasTwoSecondsWhateverTheStoreHas() {
    database.update(
        """
        create view outbox_pauses as
          select text 'orders' as queue, now() as paused_at,
            current_setting('statement_timeout') as paused_by, text 'why' as reason,
            null::timestamptz as resumed_at
        """);
    try {
      assertThat(timeoutOfALook(Duration.ofSeconds(15))).isEqualTo("1600ms");
      assertThat(timeoutOfALook(Duration.ofSeconds(1))).isEqualTo("800ms");
    } finally {
      database.update("drop view outbox_pauses");
    }
  }

  /** Of the statement, by the server: it gives up before the client does. */
  private String timeoutOfALook(Duration networkTimeout) {
    PostgresStore store =
        PostgresOutbox.on(database.plain(), database.table()).store(networkTimeout);
    return store.pauses().orElseThrow().open(List.of("orders")).get(0).by();
  }

  @Test
  void nothingIsAskedOfTheServerForAnEmptyList() {
    CountingDataSource counting = new CountingDataSource(database.pool(1));
    PostgresStore store = PostgresOutbox.on(counting, database.table()).store();

    assertThat(store.ack(List.of()).done()).isEmpty();
    assertThat(counting.executions()).isZero();
  }

  @Test
  void makingAStoreTouchesNoDatabase() {
    HikariDataSource nowhere = new HikariDataSource();
    nowhere.setJdbcUrl("jdbc:postgresql://localhost:1/none");
    PostgresStore store =
        PostgresOutbox.on(nowhere, OutboxTable.named("outbox")).store(Duration.ofSeconds(1));

    assertThat(store.connectionLimit()).hasValue(10);
    assertThat(store.connectionSource()).isSameAs(nowhere);
    assertThat(store.channel()).isEqualTo("outbox_outbox");
    nowhere.close();
  }

  @Test
  void aStoreTellsWhatItWasMadeOf() {
    PGSimpleDataSource source = database.plain();
    OutboxTable table = OutboxTable.named("outbox").inSchema("sales");

    PostgresStore store = PostgresOutbox.on(source, table).store(LEASE);

    assertThat(store.dataSource()).isSameAs(source);
    assertThat(store.connectionSource()).isSameAs(source);
    assertThat(store.table()).isEqualTo(table);
    assertThat(store.networkTimeout()).isEqualTo(LEASE);
    assertThat(store).hasToString("PostgresStore[sales.outbox]");
  }

  @Test
  void aTimeoutOutOfRangeIsRefused() {
    OutboxTable table = database.table();

    assertThatThrownBy(() -> PostgresOutbox.on(database.plain(), table).store(Duration.ZERO))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("networkTimeout is PT0S");
    assertThatThrownBy(() -> PostgresOutbox.on(database.plain(), table).store(Duration.ofDays(25)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void theSizeOfAPoolIsKnownThroughAWrapperAndNotWithoutOne() {
    HikariDataSource pool = database.pool(3);
    CountingDataSource wrapped = new CountingDataSource(pool);

    assertThat(PostgresOutbox.on(pool, database.table()).store().connectionLimit()).hasValue(3);
    assertThat(PostgresOutbox.on(wrapped, database.table()).store().connectionLimit()).hasValue(3);
    assertThat(PostgresOutbox.on(database.plain(), database.table()).store().connectionLimit())
        .isEmpty();
  }

  @Test
  void noSettingOutlivesItsStatement() throws SQLException {
    try (HikariDataSource pool = database.pool(1)) {
      PostgresStore store = PostgresOutbox.on(pool, database.table()).store();
      String before = settings(pool);

      for (int i = 0; i < 10; i++) {
        List<LeaseRef> leases = claim(store, Idle.sleep(LEASE, null), 1);
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
      PostgresStore store = PostgresOutbox.on(pool, database.table()).store();

      List<LeaseRef> leases = claim(store, Idle.UNCHANGED, 10);
      assertThat(claim(PostgresOutbox.on(real, database.table()).store(), Idle.UNCHANGED, 1))
          .as("the claim was committed")
          .isEmpty();
      assertThat(store.ack(leases).done()).hasSize(10);
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
          PostgresOutbox.on(new SingleConnection(only), database.table()).store(LEASE);

      assertThat(claim(store, Idle.UNCHANGED, 1)).hasSize(1);

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

  private static String settings(HikariDataSource pool) throws SQLException {
    try (Connection connection = pool.getConnection();
        Statement statement = connection.createStatement();
        ResultSet rows =
            statement.executeQuery(
                "select string_agg(name || '=' || setting, ' ' order by name) from pg_settings"
                    + " where name like 'enable%' or name in"
                    + " ('plan_cache_mode', 'jit', 'statement_timeout', 'lock_timeout')")) {
      rows.next();
      return rows.getString(1);
    }
  }

  private static List<LeaseRef> claim(PostgresStore store, Idle idle, int limit) {
    return Requests.leases(store, Requests.claim("orders", limit, idle));
  }
}
