package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.ListableBeanFactory;

/**
 * Finds the role that owns the tables: that of the service's own Flyway, if it has one and that one
 * connects to the outbox's database.
 */
final class FlywayOwner {
  private static final Logger log = LoggerFactory.getLogger(FlywayOwner.class);

  // any role may ask; a pooler, an alias of the host or another port gives the same answer
  private static final String IDENTITY =
      """
      select d.oid::bigint,
        (extract(epoch from pg_catalog.pg_postmaster_start_time()) * 1000000)::bigint
      from pg_catalog.pg_database d
      where d.datname = pg_catalog.current_database()
      """;

  private FlywayOwner() {}

  /** A database of a server that runs; a copy of the server was started at another time. */
  private record Database(long id, long serverStart) {}

  /**
   * Returns the data source to migrate with. Asks both for their database, unless they are one
   * object.
   *
   * @param outbox where the outbox is
   * @throws OutboxException if one of them cannot be asked
   */
  static DataSource of(ListableBeanFactory beans, DataSource outbox) {
    Flyway flyway = beans.getBeanProvider(Flyway.class).getIfUnique();
    if (flyway == null && several(beans)) {
      log.info(
          "The service has several Flyway beans and none is primary, so the outbox is migrated by"
              + " its own data source; mark the one whose role is to own the outbox with @Primary");
    }
    DataSource own = flyway == null ? null : flyway.getConfiguration().getDataSource();
    if (own == null || own == outbox) {
      return outbox;
    }
    Database migrated = database("the service's Flyway", own);
    if (migrated != null && migrated.equals(database("the outbox", outbox))) {
      return own;
    }
    log.info(
        "The service's Flyway connects to another database than the outbox's, so the outbox is"
            + " migrated by its own data source");
    return outbox;
  }

  private static boolean several(ListableBeanFactory beans) {
    return BeanFactoryUtils.beanNamesForTypeIncludingAncestors(beans, Flyway.class).length > 1;
  }

  private static @Nullable Database database(String whose, DataSource dataSource) {
    try (Connection connection = dataSource.getConnection()) {
      if (!connection.getMetaData().getDatabaseProductName().equals("PostgreSQL")) {
        return null;
      }
      try (Statement statement = connection.createStatement();
          ResultSet row = statement.executeQuery(IDENTITY)) {
        row.next();
        return new Database(row.getLong(1), row.getLong(2));
      }
    } catch (SQLException e) {
      throw new OutboxException(
          "It cannot be told whether the service's Flyway connects to the outbox's database, so it"
              + " is not known which role is to own the outbox's tables: the data source of "
              + whose
              + " does not answer (SQLState "
              + e.getSQLState()
              + "); fix it, or set outbox4j.migrate=false and migrate by hand",
          e);
    }
  }
}
