package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.RescheduleUpdate;
import dev.outbox4j.spi.RetryUpdate;
import dev.outbox4j.spi.Written;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/** What holds a statement within bounds: strangers' locks, odd settings, wrong servers. */
@ExtendWith(PostgresExtension.class)
class StoreBoundsIT {
  private static final Duration TIMEOUT = Duration.ofMillis(1_500);
  private static final String WAITING =
      "select count(*) from pg_stat_activity"
          + " where datname = current_database() and wait_event_type = 'Lock'";

  private final TestDatabase database;

  StoreBoundsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void empty() {
    database.update("truncate outbox, outbox_sleepers");
    database.update("create table if not exists seen (name text, value text)");
    database.update(
        """
        create or replace function look() returns trigger language plpgsql as $$
        begin
          insert into seen select name, current_setting(name) from unnest(array['jit',
            'statement_timeout', 'lock_timeout', 'enable_seqscan', 'transaction_isolation']) name;
          return new;
        end $$
        """);
    database.update(
        "create trigger look before update on outbox for each statement execute function look()");
  }

  @AfterEach
  void dropTrigger() {
    database.update("drop trigger look on outbox");
    database.update("truncate seen");
  }

  @Test
  void aStrangersRowLockHoldsUpNoOtherRowAndLeavesNoBackendWaiting() throws SQLException {
    Rows.fill(database, "outbox", "orders", 50);
    PostgresStore store = PostgresOutbox.on(database.pool(3), database.table()).store(TIMEOUT);
    List<LeaseRef> leases = Requests.claim(store, 50);
    LeaseRef locked = leases.get(0);
    Written onlyLocked = new Written(Set.of(), Set.of(locked.id()));
    try (Connection stranger = database.plain().getConnection();
        Statement statement = stranger.createStatement()) {
      stranger.setAutoCommit(false);
      statement.execute("select 1 from outbox where id = " + locked.id() + " for update");

      for (int i = 0; i < 20; i++) {
        assertThat(store.renew(leases, Duration.ofSeconds(60)))
            .isEqualTo(new Written(ids(leases.subList(1, 50)), Set.of(locked.id())));
        assertThat(store.ack(List.of(locked))).isEqualTo(onlyLocked);
      }
      assertThat(store.ack(leases))
          .isEqualTo(new Written(ids(leases.subList(1, 50)), Set.of(locked.id())));
      assertThat(database.one(Long.class, WAITING)).isZero();
      stranger.rollback();
    }
    assertThat(store.ack(List.of(locked))).isEqualTo(Written.done(Set.of(locked.id())));
  }

  @Test
  void aRenewalNeverWaitsForALockedRowAndOtherWritesWaitOnceForAll() throws SQLException {
    Rows.fill(database, "outbox", "orders", 3);
    CountingDataSource counting = new CountingDataSource(database.pool(1));
    PostgresStore store = PostgresOutbox.on(counting, database.table()).store(TIMEOUT);
    List<LeaseRef> leases = Requests.claim(store, 3);
    try (Connection stranger = database.plain().getConnection();
        Statement statement = stranger.createStatement()) {
      stranger.setAutoCommit(false);
      statement.execute("select 1 from outbox where id = " + leases.get(0).id() + " for update");

      assertThat(executions(counting, () -> store.renew(leases, Duration.ofSeconds(60))))
          .as("of a renewal, which passes by what is locked from the first")
          .isEqualTo(1);
      assertThat(executions(counting, () -> store.ack(leases)))
          .as("of a write that has waited for the lock in vain")
          .isEqualTo(2);
      assertThat(executions(counting, () -> store.ack(leases.subList(0, 1))))
          .as("of one that knows of locked rows")
          .isEqualTo(1);
      stranger.rollback();
    }
  }

  /** As a foreign key of yours has it kept while somebody inserts what refers to the row. */
  @Test
  void aRowWhoseKeyAStrangerKeepsIsRenewedAndOnlyItsAckPassesItBy() throws SQLException {
    Rows.fill(database, "outbox", "orders", 2);
    PostgresStore store = PostgresOutbox.on(database.pool(1), database.table()).store(TIMEOUT);
    List<LeaseRef> leases = Requests.claim(store, 2);
    LeaseRef kept = leases.get(0);
    try (Connection stranger = database.plain().getConnection();
        Statement statement = stranger.createStatement()) {
      stranger.setAutoCommit(false);
      statement.execute("select 1 from outbox where id = " + kept.id() + " for key share");

      assertThat(store.renew(leases, Duration.ofSeconds(60))).isEqualTo(Written.done(ids(leases)));
      assertThat(store.ack(leases))
          .isEqualTo(new Written(Set.of(leases.get(1).id()), Set.of(kept.id())));
      stranger.rollback();
    }
  }

  private static long executions(CountingDataSource counting, Runnable operation) {
    long before = counting.executions();
    operation.run();
    return counting.executions() - before;
  }

  @Test
  void aLockOnTheTableEndsEachOperationAndNoBackendGoesOnWaiting() throws SQLException {
    Rows.fill(database, "outbox", "orders", 2);
    HikariDataSource pool = database.pool(1);
    PostgresStore store = PostgresOutbox.on(pool, database.table()).store(TIMEOUT);
    List<LeaseRef> leases = Requests.claim(store, 1);
    int backend = backend(pool);
    try (Connection stranger = database.plain().getConnection();
        Statement statement = stranger.createStatement()) {
      stranger.setAutoCommit(false);
      statement.execute("lock table outbox in access exclusive mode");

      for (int i = 0; i < 5; i++) {
        assertTimeout(() -> Requests.claim(store, 1));
        assertTimeout(() -> store.ack(leases));
        assertTimeout(() -> store.renew(leases, Duration.ofSeconds(60)));
      }
      assertThat(database.one(Long.class, WAITING)).isZero();
      stranger.rollback();
    }
    assertThat(store.ack(leases).done()).hasSize(1);
    assertThat(Requests.claim(store, 1)).hasSize(1);
    assertThat(backend(pool)).as("the connection is still good").isEqualTo(backend);
  }

  private static void assertTimeout(Runnable operation) {
    OutboxStoreException e = catchThrowableOfType(OutboxStoreException.class, operation::run);
    assertThat(e.fault()).isEqualTo(Fault.TIMEOUT);
    assertThat(e.outcomeUnknown()).isFalse();
    assertThat(e).hasMessageContaining("nothing was changed");
  }

  @Test
  void theServerIsToGiveUpBeforeTheClientAndCompilesNothing() {
    Rows.fill(database, "outbox", "orders", 1);

    life(PostgresOutbox.on(database.pool(1), database.table()).store(TIMEOUT));

    assertThat(seen("jit")).containsExactly("off");
    assertThat(seen("enable_seqscan")).containsExactly("off");
    assertThat(seen("statement_timeout"))
        .as("shared by the three statements of a claim that announces")
        .containsExactlyInAnyOrder("1200ms", "400ms");
    assertThat(seen("lock_timeout")).containsExactly("100ms");
  }

  @ParameterizedTest
  @ValueSource(strings = {"read uncommitted", "read committed", "repeatable read", "serializable"})
  void whateverThePoolsIsolationStatementsRunAtReadCommitted(String isolation) throws SQLException {
    try (HikariDataSource pool = pool("default_transaction_isolation", isolation)) {
      PostgresStore store = PostgresOutbox.on(pool, database.table()).store();
      Requests.leases(store, Requests.claim("nothing", 1, Idle.UNCHANGED)); // learns it
      database.update("truncate seen");
      Rows.fill(database, "outbox", "orders", 10);

      for (int i = 0; i < 10; i++) {
        life(store);
      }

      assertThat(seen("transaction_isolation")).containsExactly("read committed");
      try (Connection connection = pool.getConnection();
          Statement statement = connection.createStatement();
          ResultSet row = statement.executeQuery("show transaction_isolation")) {
        row.next();
        assertThat(row.getString(1)).as("for others").isEqualTo(isolation);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"statement_timeout", "idle_in_transaction_session_timeout"})
  void aDefaultTimeoutOfASecondIsNoHindrance(String setting) throws SQLException {
    try (HikariDataSource pool = pool(setting, "1s")) {
      Rows.fill(database, "outbox", "orders", 10);
      PostgresStore store = PostgresOutbox.on(pool, database.table()).store();

      for (int i = 0; i < 10; i++) {
        life(store);
      }
    }
  }

  @Test
  void textsOfUnspecifiedTypeDoNotSplitAnExecution() {
    PGSimpleDataSource source = database.plain();
    source.setStringType("unspecified");
    try (HikariDataSource pool = pool(source)) {
      Rows.fill(database, "outbox", "orders", 20);
      PostgresStore store = PostgresOutbox.on(pool, database.table()).store();

      for (int i = 0; i < 20; i++) { // the server has prepared the statements after five
        life(store);
      }

      assertThat(seen("enable_seqscan")).containsExactly("off");
    }
  }

  @Test
  void anExecutionThatIsSplitLeasesNothingAndSaysWhy() {
    PGSimpleDataSource source = database.plain();
    source.setPreferQueryMode(org.postgresql.jdbc.PreferQueryMode.SIMPLE);
    Rows.fill(database, "outbox", "orders", 1);
    PostgresStore store = PostgresOutbox.on(source, database.table()).store();

    OutboxStoreException e =
        catchThrowableOfType(OutboxStoreException.class, () -> Requests.claim(store, 1));

    assertThat(e.fault()).isEqualTo(Fault.SETUP);
    assertThat(e)
        .hasMessageContaining("not run in one transaction")
        .hasMessageContaining("preferQueryMode");
    assertThat(database.one(Long.class, "select count(*) from outbox where lease_token > 0"))
        .isZero();
  }

  @Test
  void aServerThatIsReadOnlyIsLeftForABetterOne() throws SQLException {
    Rows.fill(database, "outbox", "orders", 1);
    try (HikariDataSource pool = pool("default_transaction_read_only", "on")) {
      PostgresStore store = PostgresOutbox.on(pool, database.table()).store();
      int backend = backend(pool);

      OutboxStoreException e =
          catchThrowableOfType(OutboxStoreException.class, () -> Requests.claim(store, 1));

      assertThat(e.fault()).isEqualTo(Fault.TRANSIENT);
      assertThat(e.outcomeUnknown()).isFalse();
      assertThat(e).hasMessageContaining("this server is read-only");
      assertThat(backend(pool)).isNotEqualTo(backend);
      alter("reset default_transaction_read_only");
      await().ignoreExceptions().until(() -> Requests.claim(store, 1).size() == 1);
    }
  }

  @Test
  void noConnectionToAReadOnlyServerStaysInThePool() throws SQLException {
    alter("set default_transaction_read_only = on");
    try (HikariDataSource pool = new HikariDataSource(threeAtOnce())) {
      await().until(() -> pool.getHikariPoolMXBean().getIdleConnections() == 3);
      alter("reset default_transaction_read_only");
      PostgresStore store = PostgresOutbox.on(pool, database.table()).store();

      assertThat(catchThrowableOfType(OutboxStoreException.class, () -> Requests.claim(store, 1)))
          .hasMessageContaining("this server is read-only");
      for (int i = 0; i < 5; i++) { // whichever connection it gets
        Requests.claim(store, 1);
      }
    }
  }

  @Test
  void aReadOnlyConnectionOfAPoolThatIsNotHikariCPsIsGivenUpToo() throws SQLException {
    try (HikariDataSource pool = pool("default_transaction_read_only", "on")) {
      alter("reset default_transaction_read_only");
      PostgresStore store =
          PostgresOutbox.on(new CountingDataSource(pool), database.table()).store();

      assertThat(catchThrowableOfType(OutboxStoreException.class, () -> Requests.claim(store, 1)))
          .hasMessageContaining("this server is read-only");
      await().ignoreExceptions().until(() -> Requests.claim(store, 1).isEmpty());
    }
  }

  private HikariConfig threeAtOnce() {
    HikariConfig config = new HikariConfig();
    config.setDataSource(database.plain());
    config.setMaximumPoolSize(3);
    config.setMinimumIdle(3);
    return config;
  }

  /** Has one row claimed, written in each way, and acked at last. */
  private static void life(PostgresStore store) {
    LeaseRef lease = claimOne(store);
    assertThat(store.renew(List.of(lease), Duration.ofSeconds(60)).done()).hasSize(1);
    assertThat(store.retry(List.of(new RetryUpdate(lease, Duration.ZERO, "no"))).done()).hasSize(1);
    lease = claimOne(store);
    assertThat(store.reschedule(List.of(new RescheduleUpdate(lease, Duration.ZERO))).done())
        .hasSize(1);
    assertThat(store.release(List.of(claimOne(store))).done()).hasSize(1);
    assertThat(store.ack(List.of(claimOne(store))).done()).hasSize(1);
    store.pass("orders", "me");
    store.forget("me");
  }

  private static LeaseRef claimOne(PostgresStore store) {
    Idle idle = Idle.sleep(Duration.ofSeconds(10), Idle.NEW_MARK);
    return Requests.leases(store, Requests.claim("orders", 1, idle)).get(0);
  }

  private List<String> seen(String setting) {
    return database.list(
        String.class, "select distinct value from seen where name = ? order by 1", setting);
  }

  /** Returns a pool whose one connection was made while the database had another default. */
  private HikariDataSource pool(String setting, String value) throws SQLException {
    alter("set " + setting + " = '" + value + "'");
    try {
      HikariDataSource pool = pool(database.plain());
      backend(pool);
      return pool;
    } finally {
      if (!setting.endsWith("read_only")) {
        alter("reset " + setting);
      }
    }
  }

  private void alter(String change) throws SQLException {
    try (Connection connection = database.server().dataSource("postgres").getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("alter database \"" + database.name() + "\" " + change);
    }
  }

  private static HikariDataSource pool(PGSimpleDataSource source) {
    HikariConfig config = new HikariConfig();
    config.setDataSource(source);
    config.setMaximumPoolSize(1);
    return new HikariDataSource(config);
  }

  private static int backend(HikariDataSource pool) throws SQLException {
    try (Connection connection = pool.getConnection();
        Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery("select pg_backend_pid()")) {
      row.next();
      return row.getInt(1);
    }
  }

  private static Set<Long> ids(List<LeaseRef> leases) {
    return leases.stream().map(LeaseRef::id).collect(Collectors.toSet());
  }
}
