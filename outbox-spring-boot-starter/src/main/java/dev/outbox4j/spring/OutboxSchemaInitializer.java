package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import dev.outbox4j.postgres.SchemaValidator;
import dev.outbox4j.postgres.internal.Remedies;
import java.sql.SQLException;
import java.util.function.Supplier;
import javax.sql.DataSource;
import org.flywaydb.core.api.FlywayException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.InitializingBean;
import org.springframework.core.NestedExceptionUtils;

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
      int applied;
      try {
        applied = migrate(of);
      } catch (FlywayException | IllegalStateException e) {
        throw notMigrated(e);
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

  private int migrate(DataSource of) {
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
    return applied;
  }

  private OutboxException notMigrated(RuntimeException failure) {
    String state = null;
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (cause instanceof SQLException known) {
        state = known.getSQLState();
      }
    }
    Throwable root = NestedExceptionUtils.getMostSpecificCause(failure);
    return new OutboxException(
        "The tables of the outbox "
            + Tables.outbox(properties)
            + " could not be made or brought up to date"
            + (state == null ? "" : " [" + state + "]")
            + ": "
            + String.valueOf(root.getMessage()).lines().findFirst().orElse("")
            + "; "
            + remedy(state),
        failure);
  }

  private static String remedy(@Nullable String state) {
    if ((state != null && state.startsWith("08"))
        || Remedies.isRefusal(state)
        || Remedies.isFull(state)) {
      return Remedies.ofNoConnection(state);
    }
    return "42501".equals(state)
        ? "let a role migrate that may: that of the service's Flyway, if it has one"
            + " (spring.flyway.user), or that of the data source, or set outbox4j.migrate=false and"
            + " run the SQL of the migrations by hand"
        : "mend what the database says, or set outbox4j.migrate=false and run the SQL of the"
            + " migrations by hand";
  }
}
