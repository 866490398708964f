package dev.outbox4j.spring;

import dev.outbox4j.migrations.DeadLetterMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import java.util.Objects;

/** The tables that the properties name. */
final class Tables {
  private Tables() {}

  static OutboxTable outbox(OutboxProperties properties) {
    return OutboxTable.named(properties.table()).inSchema(properties.schema());
  }

  /** Returns the migrations of both tables, which also know the dead letters' name. */
  static OutboxMigrations migrations(OutboxProperties properties) {
    OutboxMigrations standard = OutboxMigrations.of(properties.schema(), properties.table());
    DeadLetterMigrations beside = standard.deadLetters();
    return standard.deadLetters(
        Objects.requireNonNullElse(properties.deadLetterSchema(), beside.schema()),
        Objects.requireNonNullElse(properties.deadLetterTable(), beside.table()));
  }
}
