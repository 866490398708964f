package dev.outbox4j.examples.orders;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;

/** The service's own tables, in a database of a test's. */
final class OrderTables {
  private OrderTables() {}

  static void migrate(DataSource dataSource) {
    Flyway.configure()
        .dataSource(dataSource)
        .locations("classpath:dev/outbox4j/examples/orders/migrations")
        .table("orders_schema_history")
        .baselineOnMigrate(true) // the outbox is in the schema already
        .baselineVersion("0")
        .load()
        .migrate();
  }

  static void empty(DataSource dataSource) throws SQLException {
    try (Connection connection = dataSource.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("truncate orders, shipments");
    }
  }
}
