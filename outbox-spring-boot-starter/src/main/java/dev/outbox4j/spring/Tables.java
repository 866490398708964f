package dev.outbox4j.spring;

import dev.outbox4j.migrations.DeadLetterMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import java.util.Objects;

/** The tables that the properties name. */
final class Tables {
  private Tables() {}

  /**
   * Returns the outbox.
   *
   * @throws dev.outbox4j.OutboxException if a name is not allowed
   */
  static OutboxTable outbox(OutboxProperties properties) {
    standard(properties); // which refuses the names in words that fit properties
    return OutboxTable.named(properties.table()).inSchema(properties.schema());
  }

  /**
   * Returns the migrations of both tables, which also know the dead letters' name.
   *
   * @throws dev.outbox4j.OutboxException if a name is not allowed
   */
  static OutboxMigrations migrations(OutboxProperties properties) {
    OutboxMigrations standard = standard(properties);
    DeadLetterMigrations beside = standard.deadLetters();
    return Setting.of(
        "outbox4j.dead-letter-schema, outbox4j.dead-letter-table",
        () ->
            standard.deadLetters(
                Objects.requireNonNullElse(properties.deadLetterSchema(), beside.schema()),
                Objects.requireNonNullElse(properties.deadLetterTable(), beside.table())));
  }

  private static OutboxMigrations standard(OutboxProperties properties) {
    return Setting.of(
        "outbox4j.schema, outbox4j.table",
        () -> OutboxMigrations.of(properties.schema(), properties.table()));
  }
}
