package dev.outbox4j.spring;

import dev.outbox4j.postgres.SchemaValidator;
import java.util.function.Supplier;
import javax.sql.DataSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.InitializingBean;

/**
 * Brings the tables to the version that the code needs, and refuses a schema that does not fit.
 * Runs after the service's own migrations, with a history of its own.
 */
final class OutboxSchemaInitializer implements InitializingBean {
  private static final Logger log = LoggerFactory.getLogger(OutboxSchemaInitializer.class);

  private final OutboxProperties properties;
  private final Supplier<DataSource> owner;
  private final SchemaValidator validator;

  /**
   * Takes what it needs; {@link #afterPropertiesSet} does the work.
   *
   * @param owner finds connections of the tables' owner; asked only to migrate
   * @param validator compares, as the service's own role
   */
  OutboxSchemaInitializer(
      OutboxProperties properties, Supplier<DataSource> owner, SchemaValidator validator) {
    this.properties = properties;
    this.owner = owner;
    this.validator = validator;
  }

  @Override
  public void afterPropertiesSet() {
    if (properties.migrate()) {
      DataSource of = owner.get();
      int applied = Tables.migrations(properties).migrate(of);
      if (!properties.orderedQueues().isEmpty()) {
        applied += Tables.orderedMigrations(properties).migrate(of);
      }
      if (properties.pausable()) {
        applied += Tables.pauseMigrations(properties).migrate(of);
      }
      if (properties.dedupKeys()) {
        applied += Tables.dedupMigrations(properties).migrate(of);
      }
      if (properties.limitsConcurrency()) {
        applied += Tables.slotMigrations(properties).migrate(of);
      }
      if (applied > 0) {
        log.info(
            "Applied {} migration(s) to the outbox {} and its dead letters",
            applied,
            Tables.outbox(properties));
      }
    }
    if (properties.validate()) {
      validator.validateSchema().requireValid();
    }
  }
}
