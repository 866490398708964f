package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.SubscriberHealth.Listener;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.NeedsRestartableServer;
import dev.outbox4j.postgres.testing.RestartableServer;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;

/** A primary and its standby change places under a running subscriber. */
@NeedsRestartableServer
class FailoverIT {
  private static final OutboxTable TABLE = OutboxTable.named("outbox");
  private static final Duration LONG = Duration.ofSeconds(30);

  private final AtomicInteger handled = new AtomicInteger();
  private RestartableServer first;
  private RestartableServer second;

  @BeforeEach
  void startBoth() throws Exception {
    first = RestartableServer.start();
    OutboxMigrations.standard().migrate(first.dataSource());
    second = first.startStandby();
    await()
        .atMost(LONG)
        .until(() -> flag(first.dataSource(), "select count(*) = 1 from pg_stat_replication"));
  }

  @AfterEach
  void stopBoth() throws Exception {
    try (RestartableServer one = first;
        RestartableServer other = second) {
      assertThat(one).isNotSameAs(other);
    }
  }

  @Test
  void aSubscriberThatKnowsBothFollowsThePrimary() throws Exception {
    PGSimpleDataSource either = either();
    try (HikariDataSource pool = pool(either);
        OutboxSubscriber subscriber = start(pool, either)) {
      publish(either);
      await().until(() -> handled.get() == 1);
      await().until(() -> count(either) == 0);

      changePlaces();
      await().atMost(LONG).until(() -> subscriber.health().listener() == Listener.UP);
      publish(either);
      await().atMost(LONG).until(() -> handled.get() == 2);
      await().atMost(LONG).until(() -> subscriber.health().healthy());
      await().atMost(LONG).until(() -> count(second.dataSource()) == 0);
    }
  }

  @Test
  void listenLeavesAFormerPrimaryThatGoesOnReadOnly() throws Exception {
    PGSimpleDataSource either = either();
    try (HikariDataSource pool = pool(either);
        OutboxSubscriber subscriber = start(pool, either)) {
      await().until(() -> subscriber.health().listener() == Listener.UP);
      assertThat(listeners(first)).isEqualTo(1);

      execute(first, "alter system set default_transaction_read_only = on");
      execute(first, "select pg_reload_conf()");
      assertThat(flag(second.dataSource(), "select pg_promote()")).isTrue();
      publish(second.dataSource());

      await().atMost(LONG).until(() -> handled.get() == 1);
      await().atMost(LONG).until(() -> listeners(second) == 1);
      await().atMost(LONG).until(() -> listeners(first) == 0);
      await().atMost(LONG).until(() -> subscriber.health().listener() == Listener.UP);
    }
  }

  /** A read-only role is no reason to leave: what it listens to is published by others. */
  @Test
  void listenStaysWhereOnlyItsOwnRoleIsReadOnly() throws Exception {
    execute(first, "create role watcher login");
    execute(first, "alter role watcher set default_transaction_read_only = on");
    PGSimpleDataSource listen = first.dataSource();
    listen.setUser("watcher");
    try (HikariDataSource pool = pool(first.dataSource());
        OutboxSubscriber subscriber = start(pool, listen)) {
      await().until(() -> subscriber.health().listener() == Listener.UP);
      String session = listener();

      publish(first.dataSource());
      await().until(() -> handled.get() == 1);
      String checks = stateChange(session);
      await().atMost(LONG).until(() -> !stateChange(session).equals(checks)); // by the probe
      assertThat(listener()).isEqualTo(session);
    }
  }

  /** Nor is one that may not write in this database, or may not read the server's settings. */
  @Test
  void listenStaysWhereTheDatabaseIsReadOnlyForItAlone() throws Exception {
    execute(first, "create role watcher login");
    execute(first, "revoke select on pg_catalog.pg_settings from public");
    execute(first, "alter role current_user set default_transaction_read_only = off");
    PGSimpleDataSource listen = first.dataSource();
    listen.setUser("watcher");
    try (HikariDataSource pool = pool(first.dataSource());
        OutboxSubscriber subscriber = start(pool, listen)) {
      await().until(() -> subscriber.health().listener() == Listener.UP);
    }
    execute(first, "grant select on pg_catalog.pg_settings to public");
    execute(
        first,
        "do $$ begin execute format('alter database %I set default_transaction_read_only = on',"
            + " current_database()); end $$");
    try (HikariDataSource pool = pool(first.dataSource());
        OutboxSubscriber subscriber = start(pool, listen)) {
      await().until(() -> subscriber.health().listener() == Listener.UP);
      publish(first.dataSource());
      await().until(() -> handled.get() == 1);
    }
  }

  @Test
  void aSubscriberOfAServerThatIsAStandbyNowSaysSoAndGoesOnWhenItIsPromoted() throws Exception {
    DataSource only = first.dataSource();
    try (HikariDataSource pool = pool(only);
        OutboxSubscriber subscriber = start(pool, only)) {
      publish(only);
      await().until(() -> handled.get() == 1);
      await().until(() -> count(only) == 0);

      changePlaces();
      publish(second.dataSource());
      await()
          .atMost(LONG)
          .untilAsserted(
              () ->
                  assertThat(subscriber.health().lastFailure())
                      .get()
                      .asString()
                      .contains("read-only"));
      assertThat(subscriber.health().failing()).isTrue();
      assertThat(handled).hasValue(1);

      await().atMost(LONG).until(() -> count(only) == 1); // the standby has the message
      second.crash();
      assertThat(flag(only, "select pg_promote()")).isTrue();
      await().atMost(LONG).until(() -> handled.get() == 2);
      await().atMost(LONG).until(() -> subscriber.health().healthy());
    }
  }

  private PGSimpleDataSource either() {
    PGSimpleDataSource either = first.dataSource();
    either.setServerNames(new String[] {"localhost", "localhost"});
    either.setPortNumbers(new int[] {first.port(), second.port()});
    either.setTargetServerType("primary");
    either.setHostRecheckSeconds(0);
    return either;
  }

  private static long listeners(RestartableServer server) throws SQLException {
    return Long.parseLong(
        text(
            server,
            "select count(*) from pg_stat_activity where application_name = 'outbox4j-listen'"));
  }

  /** The process of the session that listens on the first server. */
  private String listener() throws SQLException {
    return text(
        first, "select pid from pg_stat_activity where application_name = 'outbox4j-listen'");
  }

  private String stateChange(String session) throws SQLException {
    return text(first, "select state_change from pg_stat_activity where pid = " + session);
  }

  private static String text(RestartableServer server, String sql) throws SQLException {
    try (Connection connection = server.dataSource().getConnection();
        Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery(sql)) {
      row.next();
      return row.getString(1);
    }
  }

  private static void execute(RestartableServer server, String sql) throws SQLException {
    try (Connection connection = server.dataSource().getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(sql);
    }
  }

  /** The standby has all there is, since the primary ends only when it does. */
  private void changePlaces() throws Exception {
    await()
        .atMost(LONG)
        .until(
            () ->
                flag(
                    first.dataSource(),
                    "select replay_lsn >= pg_current_wal_lsn() from pg_stat_replication"));
    first.stop();
    assertThat(flag(second.dataSource(), "select pg_promote()")).isTrue();
    first.startBehind(second);
  }

  private OutboxSubscriber start(DataSource pool, DataSource listen) {
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("failover")
            .deleteTerminalFailures()
            .store(PostgresOutbox.on(pool, TABLE).store())
            .listen(PgjdbcListen.on(listen).probe(Duration.ofMillis(500), Duration.ofSeconds(5)))
            .on(
                "t",
                (payload, delivery) -> {
                  handled.incrementAndGet();
                })
            .build();
    subscriber.start();
    return subscriber;
  }

  private static HikariDataSource pool(DataSource source) {
    HikariConfig config = new HikariConfig();
    config.setDataSource(source);
    config.setMaximumPoolSize(3);
    config.setConnectionTimeout(1_000);
    return new HikariDataSource(config);
  }

  private static void publish(DataSource source) throws SQLException {
    try (Connection connection = source.getConnection()) {
      connection.setAutoCommit(false);
      PostgresOutbox.publisher(TABLE)
          .build()
          .publish(connection, OutboxMessage.to("failover").type("t").body("x").build());
      connection.commit();
    }
  }

  private static long count(DataSource source) throws SQLException {
    try (Connection connection = source.getConnection();
        Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery("select count(*) from outbox")) {
      row.next();
      return row.getLong(1);
    }
  }

  private static boolean flag(DataSource source, String sql) throws SQLException {
    try (Connection connection = source.getConnection();
        Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery(sql)) {
      return row.next() && row.getBoolean(1);
    }
  }
}
