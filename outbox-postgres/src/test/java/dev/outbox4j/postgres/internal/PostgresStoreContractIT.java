package dev.outbox4j.postgres.internal;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.migrations.SlotMigrations;
import dev.outbox4j.postgres.NotifyMode;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.testing.OutboxStoreContract;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class PostgresStoreContractIT extends OutboxStoreContract {
  private TestDatabase database;
  private HikariDataSource pool;
  private OutboxStore store;
  private OutboxPublisher publisher;
  private Ears ears;

  @BeforeAll
  void makeStore(TestDatabase database) throws SQLException {
    this.database = database;
    this.pool = database.pool(2);
    this.publisher = PostgresOutbox.publisher(database.table()).notify(NotifyMode.AUTO).build();
    this.ears = new Ears(database);
    SlotMigrations.of("public", "outbox").migrate(database.plain());
    database.update("create table refused (id bigint)");
    database.update("create table cost (seconds float8)");
    database.update(
        """
        create function burden() returns trigger language plpgsql as $$
        begin
          if new.lease_token > old.lease_token then
            perform pg_sleep(seconds) from cost;
            if exists (select from refused r where r.id = new.id) then
              raise exception 'row % is refused', new.id;
            end if;
          end if;
          return new;
        end $$
        """);
    database.update(
        "create trigger burden before update on outbox for each row execute function burden()");
  }

  @BeforeEach
  void empty() throws SQLException {
    database.update("truncate outbox, outbox_sleepers, outbox_slots, refused, cost");
    store = PostgresOutbox.on(pool, database.table()).store();
    ears.heard();
  }

  @AfterAll
  void closeEars() throws SQLException {
    ears.close();
  }

  @Override
  protected Held lock(long id) {
    return inTransaction("select 1 from outbox where id = " + id + " for update");
  }

  @Override
  protected Held openTransaction() {
    return inTransaction("select pg_current_xact_id()");
  }

  private Held inTransaction(String sql) {
    try {
      Connection connection = database.plain().getConnection();
      connection.setAutoCommit(false);
      try (Statement statement = connection.createStatement()) {
        statement.execute(sql);
      }
      return () -> close(connection);
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  private static void close(Connection connection) {
    try {
      connection.rollback();
      connection.close();
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override
  protected Held refuseLease(long id) {
    database.update("insert into refused values (?)", id);
    return () -> database.update("delete from refused where id = ?", id);
  }

  @Override
  protected Held slowClaims(Duration cost) {
    database.update("insert into cost values (?)", cost.toMillis() / 1000.0);
    return () -> database.update("truncate cost");
  }

  @Override
  protected List<String> heard() {
    try {
      return ears.heard();
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override
  protected OutboxStore store() {
    return store;
  }

  @Override
  protected long publish(OutboxMessage message) {
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      long id = publisher.publish(connection, message).rowId().orElseThrow();
      connection.commit();
      return id;
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override
  protected void pass(Duration time) {
    database.update(
        """
        with passed as (select make_interval(secs => ?) as time)
        update outbox set created_at = created_at - time, available_at = available_at - time,
          lease_until = lease_until - time, first_attempt_at = first_attempt_at - time,
          last_attempt_at = last_attempt_at - time
        from passed
        """,
        time.toMillis() / 1000.0);
    database.update(
        """
        with passed as (select make_interval(secs => ?) as time)
        update outbox_sleepers set wake_at = wake_at - time, until = until - time from passed
        """,
        time.toMillis() / 1000.0);
  }

  @Override
  protected Set<Long> liveIds() {
    return new HashSet<>(database.list(Long.class, "select id from outbox"));
  }
}
