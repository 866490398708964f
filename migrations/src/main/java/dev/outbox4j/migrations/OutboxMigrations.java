package dev.outbox4j.migrations;

import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.output.MigrateResult;

/**
 * The migrations of one outbox. Immutable. Each outbox keeps a history table of its own, {@code
 * <table>_schema_history}, so that several live in one database and beside the service's own
 * migrations.
 */
public final class OutboxMigrations {
  /** Where the migrations are on the class path, for a Flyway set-up of one's own: {@value}. */
  public static final String LOCATION = "classpath:dev/outbox4j/migrations";

  private final String schema;
  private final String table;
  private final String deadLetterSchema;
  private final String deadLetterTable;

  private OutboxMigrations(
      String schema, String table, String deadLetterSchema, String deadLetterTable) {
    this.schema = Objects.requireNonNull(schema, "schema");
    this.table = Objects.requireNonNull(table, "table");
    this.deadLetterSchema = Objects.requireNonNull(deadLetterSchema, "deadLetterSchema");
    this.deadLetterTable = Objects.requireNonNull(deadLetterTable, "deadLetterTable");
  }

  /** {@return the migrations of {@code public.outbox} and {@code public.outbox_dlq}} */
  public static OutboxMigrations standard() {
    return of("public", "outbox");
  }

  /**
   * Returns the migrations of a table and of {@code <table>_dlq} beside it.
   *
   * @param schema the schema of both
   * @param table the outbox table
   * @return the migrations
   */
  public static OutboxMigrations of(String schema, String table) {
    return new OutboxMigrations(schema, table, schema, table + "_dlq");
  }

  /**
   * Returns the same with another dead-letter table.
   *
   * @param schema its schema
   * @param table its name
   * @return the migrations
   */
  public OutboxMigrations deadLetters(String schema, String table) {
    return new OutboxMigrations(this.schema, this.table, schema, table);
  }

  /**
   * Applies what is missing.
   *
   * @param dataSource connections of the tables' owner
   * @return how many migrations were applied
   */
  public int migrate(DataSource dataSource) {
    MigrateResult result =
        Flyway.configure()
            .dataSource(dataSource)
            .locations(LOCATION)
            .table(table + "_schema_history")
            .defaultSchema(schema)
            .placeholders(placeholders())
            .baselineOnMigrate(true)
            .baselineVersion("0")
            .load()
            .migrate();
    return result.migrationsExecuted;
  }

  /** {@return the placeholders that the migrations use} */
  public Map<String, String> placeholders() {
    Map<String, String> values = new HashMap<>();
    values.put("outbox_schema", schema);
    values.put("outbox_table", table);
    values.put("outbox_dlq_schema", deadLetterSchema);
    values.put("outbox_dlq_table", deadLetterTable);
    return values;
  }
}
