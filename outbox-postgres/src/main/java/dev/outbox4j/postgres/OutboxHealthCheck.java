package dev.outbox4j.postgres;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.postgres.internal.QueueDepths;
import dev.outbox4j.postgres.internal.schema.Unanswered;
import java.sql.SQLException;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import javax.sql.DataSource;

/**
 * The deeper health check, which asks the database: is the schema right, and how much do the queues
 * hold? Immutable and thread-safe. A subscriber's own {@code health()} is answered from memory.
 */
public final class OutboxHealthCheck {
  private final DataSource dataSource;
  private final SchemaValidator validator;
  private final QueueDepths depths;
  private final OutboxTable table;
  private final List<String> queues;

  OutboxHealthCheck(
      DataSource dataSource,
      OutboxTable table,
      SchemaValidator validator,
      Collection<String> queues) {
    this.dataSource = Objects.requireNonNull(dataSource, "dataSource");
    this.table = Objects.requireNonNull(table, "table");
    this.validator = Objects.requireNonNull(validator, "validator");
    this.queues = QueueDepths.checked(queues);
    this.depths = new QueueDepths(table);
  }

  /**
   * Sets what compares the schema.
   *
   * @param validator such as {@link PostgresOutbox#validator()} with the dead letters
   * @return a check that differs in this
   */
  public OutboxHealthCheck validator(SchemaValidator validator) {
    return new OutboxHealthCheck(dataSource, table, validator, queues);
  }

  /**
   * Sets which queues are counted, each up to 10,000 rows, which needs select on the table.
   *
   * @param queues their names
   * @return a check that differs in this
   * @throws IllegalArgumentException if a name is one that no message can have
   */
  public OutboxHealthCheck queues(String... queues) {
    return new OutboxHealthCheck(dataSource, table, validator, List.of(queues));
  }

  /**
   * Asks. Never throws for want of a database: what fails is a fault of the report. The queues are
   * counted only if the schema is right.
   *
   * @return the answer
   */
  public OutboxHealth check() {
    SchemaReport schema = validator.validateSchema();
    if (!schema.valid() || queues.isEmpty()) {
      return new OutboxHealth(schema, List.of());
    }
    try {
      return new OutboxHealth(
          schema, depths.read(dataSource, queues, QueueDepths.DEFAULT_COUNT_LIMIT));
    } catch (OutboxStoreException e) {
      String found =
          e.getCause() instanceof SQLException cause
              ? Unanswered.found(cause)
              : "the statement failed";
      return new OutboxHealth(
          schema.with(
              new SchemaFault(
                  "queues of " + table,
                  "a role that may count rows, and an answer in time",
                  found,
                  "grant select on the outbox table, or look for what blocks it")),
          List.of());
    }
  }
}
