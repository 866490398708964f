package dev.outbox4j.examples.orders;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.TimerMigrations;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.postgresql.client.SSLMode;
import java.util.Properties;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.postgresql.Driver;
import org.postgresql.PGProperty;

/** Makes the connections that the service needs, and its tables. */
public final class OrdersDatabase {
  private static final String MIGRATIONS = "classpath:dev/outbox4j/examples/orders/migrations";

  private final OrdersConfig config;

  /**
   * Creates it; does no I/O.
   *
   * @param config where the database is
   */
  public OrdersDatabase(OrdersConfig config) {
    this.config = config;
  }

  /**
   * Opens a pool.
   *
   * @param name its name in logs and metrics
   * @param size its size
   * @return the pool, to be closed by the caller
   */
  public HikariDataSource pool(String name, int size) {
    HikariConfig hikari = new HikariConfig();
    hikari.setPoolName(name);
    hikari.setJdbcUrl(config.jdbcUrl());
    hikari.setUsername(config.user());
    hikari.setPassword(config.password());
    hikari.setSchema(config.schema());
    hikari.setMaximumPoolSize(size);
    return new HikariDataSource(hikari);
  }

  /**
   * Applies the migrations of the outbox and of the timers, then the service's own; each line of
   * them has a history of its own.
   *
   * @param dataSource connections of the tables' owner
   */
  public void migrate(DataSource dataSource) {
    OutboxMigrations.of(config.schema(), OrdersConfig.OUTBOX).migrate(dataSource);
    TimerMigrations.of(config.schema(), OrdersConfig.OUTBOX).migrate(dataSource);
    Flyway.configure()
        .dataSource(dataSource)
        .locations(MIGRATIONS)
        .defaultSchema(config.schema())
        .table("orders_schema_history")
        .baselineOnMigrate(true) // the outbox is in the schema already
        .baselineVersion("0")
        .load()
        .migrate();
  }

  /**
   * Returns connections for LISTEN, outside every pool, to the same database.
   *
   * @return a factory; does no I/O
   */
  public PostgresqlConnectionFactory listening() {
    Properties url = Driver.parseURL(config.jdbcUrl(), new Properties());
    if (url == null) {
      throw new IllegalArgumentException("The database's URL must begin with jdbc:postgresql://");
    }
    PostgresqlConnectionConfiguration.Builder r2dbc =
        PostgresqlConnectionConfiguration.builder()
            .host(first(PGProperty.PG_HOST.getOrDefault(url)))
            .port(Integer.parseInt(first(PGProperty.PG_PORT.getOrDefault(url))))
            .database(PGProperty.PG_DBNAME.getOrDefault(url))
            .username(config.user())
            .password(config.password());
    String sslMode = PGProperty.SSL_MODE.getOrDefault(url);
    if (sslMode != null) {
      r2dbc.sslMode(SSLMode.fromValue(sslMode));
    }
    return new PostgresqlConnectionFactory(r2dbc.build());
  }

  private static String first(String list) {
    return list.split(",", 2)[0];
  }
}
