package dev.outbox4j.spring;

import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;

/** The role that owns the tables: that of the service's own migrations, if it has a Flyway. */
final class FlywayOwner {
  private FlywayOwner() {}

  static DataSource of(ConfigurableListableBeanFactory beans, DataSource otherwise) {
    Flyway flyway = beans.getBeanProvider(Flyway.class).getIfUnique();
    DataSource own = flyway == null ? null : flyway.getConfiguration().getDataSource();
    return own == null ? otherwise : own;
  }
}
