package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import dev.outbox4j.postgres.OutboxRole;
import dev.outbox4j.postgres.SchemaValidator;
import dev.outbox4j.postgres.internal.Remedies;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import java.util.function.ToIntFunction;
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
 *
 * <p>In two steps. The tables themselves come first, so that beans may publish as soon as they are
 * made. What single queues need, and the comparison, come once all handlers are known: a queue that
 * nobody handles is refused before anything is made for it, and which grants are needed depends on
 * what the service does.
 */
final class OutboxSchemaInitializer implements InitializingBean {
  private static final Logger log = LoggerFactory.getLogger(OutboxSchemaInitializer.class);

  private final OutboxProperties properties;
  private final Supplier<DataSource> owner;
  private final SchemaValidator validator;
  private final List<ToIntFunction<DataSource>> ofAll = new ArrayList<>();
  private final List<ToIntFunction<DataSource>> ofQueues = new ArrayList<>();

  /**
   * Takes what it needs; {@link #afterPropertiesSet} and {@link #complete} do the work.
   *
   * @param owner finds connections of the tables' owner; asked only to migrate, twice at most
   * @param validator compares, as the service's own role
   * @throws OutboxException if a name is not allowed
   */
  OutboxSchemaInitializer(
      OutboxProperties properties, Supplier<DataSource> owner, SchemaValidator validator) {
    this.properties = properties;
    this.owner = owner;
    this.validator = validator;
    ofAll.add(Tables.migrations(properties)::migrate);
    if (properties.pausable()) {
      ofAll.add(Tables.pauseMigrations(properties)::migrate);
    }
    if (properties.dedupKeys()) {
      ofAll.add(Tables.dedupMigrations(properties)::migrate);
    }
    if (!properties.orderedQueues().isEmpty()) {
      ofQueues.add(Tables.orderedMigrations(properties)::migrate);
    }
    if (properties.limitsConcurrency()) {
      ofQueues.add(Tables.slotMigrations(properties)::migrate);
    }
  }

  @Override
  public void afterPropertiesSet() {
    migrate(ofAll);
  }

  /**
   * Migrates what queues need, and compares.
   *
   * @param roles what the service is there for
   */
  void complete(Set<OutboxRole> roles) {
    migrate(ofQueues);
    if (properties.validate()) {
      try {
        with(properties.validateGrants() ? roles : Set.of()).validateSchema().requireValid();
      } catch (OutboxException e) {
        throw new OutboxException(inProperties(String.valueOf(e.getMessage())), e);
      }
    }
  }

  /** What the validator says to call, the start does, if it may. */
  private String inProperties(String faults) {
    String by =
        properties.migrate()
            ? "run the SQL of the migrations by hand"
            : "set outbox4j.migrate=true, or run the SQL of the migrations by hand";
    return faults
        .replace("OrderedMigrations.of(...).migrate(...) for that queue, or its queuesSql()", by)
        .replace("drop it and apply the migrations", "drop it, and " + by)
        .replace("apply the migrations", by);
  }

  private SchemaValidator with(Set<OutboxRole> roles) {
    SchemaValidator all = validator;
    for (OutboxRole role : roles) {
      all = all.checkGrants(role);
    }
    return all;
  }

  private void migrate(List<ToIntFunction<DataSource>> migrations) {
    if (!properties.migrate() || migrations.isEmpty()) {
      return;
    }
    DataSource of = owner.get();
    int applied;
    try {
      applied = migrations.stream().mapToInt(each -> each.applyAsInt(of)).sum();
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
