package dev.outbox4j.test.spring;

import dev.outbox4j.postgres.PostgresStore;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import org.springframework.beans.factory.config.BeanPostProcessor;

/**
 * The database that was made for a context: nothing but its rows may be deleted. A service may have
 * a {@code DataSource} that does not ask the properties where to connect; a context whose outbox is
 * elsewhere by that fails before its tables are touched.
 *
 * @param name what PostgreSQL calls it
 */
record ContextDatabase(String name) {

  /** Looks at the store as soon as it is made. No bean, or Spring would register it twice. */
  BeanPostProcessor check() {
    return new BeanPostProcessor() {
      @Override
      public Object postProcessAfterInitialization(Object bean, String beanName) {
        if (bean instanceof PostgresStore store) {
          require(store);
        }
        return bean;
      }
    };
  }

  private void require(PostgresStore store) {
    try (Connection connection = store.dataSource().getConnection()) {
      require(connection);
      if (!connection.getAutoCommit()) {
        connection.rollback(); // or a pool may complain of what was only read
      }
    } catch (SQLException e) {
      throw new IllegalStateException(
          "It cannot be told whether the outbox is in the database that was made for this test: "
              + e.getMessage(),
          e);
    }
  }

  /**
   * Refuses any other database.
   *
   * @throws IllegalStateException if the connection leads to one
   */
  void require(Connection connection) throws SQLException {
    String found;
    try (Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery("select current_database()")) {
      row.next();
      found = row.getString(1);
    }
    if (!name.equals(found)) {
      throw new IllegalStateException(
          ("The DataSource of the outbox connects to the database '%1$s', and not to the one that was"
                  + " made for this test; nothing was deleted. Let the DataSource bean read"
                  + " spring.datasource.*, or say database = OWN on the test if '%1$s' is for tests"
                  + " alone: its outbox is emptied then")
              .formatted(found));
    }
  }
}
