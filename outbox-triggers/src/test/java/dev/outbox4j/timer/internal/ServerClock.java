package dev.outbox4j.timer.internal;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Instant;
import javax.sql.DataSource;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * The time of a server that goes by when a test says so. It is what statements read in sessions of
 * this clock; what tables have as defaults is the real time.
 */
final class ServerClock implements AutoCloseable {
  private final TestDatabase database;
  private final HikariDataSource sessions;

  ServerClock(TestDatabase database) {
    this.database = database;
    database.update("create schema if not exists clock");
    database.update("create table if not exists clock.hand (instant timestamptz)");
    for (String function : new String[] {"now", "clock_timestamp"}) {
      database.update(
          "create or replace function clock.%s() returns timestamptz stable language sql"
                  .formatted(function)
              + " as 'select instant from clock.hand'");
    }
    this.sessions = new HikariDataSource(config(database.plain()));
  }

  /** Of sessions that find the functions of this clock before those of the server. */
  private static HikariConfig config(PGSimpleDataSource source) {
    source.setOptions("-c search_path=clock,public,pg_catalog");
    HikariConfig config = new HikariConfig();
    config.setDataSource(source);
    config.setMaximumPoolSize(1);
    return config;
  }

  DataSource sessions() {
    return sessions;
  }

  void set(Instant now) {
    database.update(
        "with before as (delete from clock.hand) insert into clock.hand values (?::timestamptz)",
        now.toString());
  }

  @Override
  public void close() {
    sessions.close();
  }
}
