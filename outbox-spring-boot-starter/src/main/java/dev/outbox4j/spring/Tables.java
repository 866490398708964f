package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import dev.outbox4j.migrations.DeadLetterMigrations;
import dev.outbox4j.migrations.DedupMigrations;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.PauseMigrations;
import dev.outbox4j.migrations.SlotMigrations;
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

  /**
   * Returns the migrations of the ordered queues, of which there must be one.
   *
   * @throws dev.outbox4j.OutboxException if a name is not allowed
   */
  static OrderedMigrations orderedMigrations(OutboxProperties properties) {
    standard(properties);
    return Setting.of(
        "outbox4j.ordered-queues",
        () ->
            OrderedMigrations.of(
                properties.schema(),
                properties.table(),
                properties.orderedQueues().toArray(String[]::new)));
  }

  /** Returns the migrations of the pauses. */
  static PauseMigrations pauseMigrations(OutboxProperties properties) {
    standard(properties);
    return PauseMigrations.of(properties.schema(), properties.table());
  }

  /** Returns the migrations of the dedup keys. */
  static DedupMigrations dedupMigrations(OutboxProperties properties) {
    standard(properties);
    return DedupMigrations.of(properties.schema(), properties.table());
  }

  /** Returns the migrations of the slots. */
  static SlotMigrations slotMigrations(OutboxProperties properties) {
    standard(properties);
    return SlotMigrations.of(properties.schema(), properties.table());
  }

  /**
   * Refuses the store of another outbox, such as a parent context's: what publishes and subscribes
   * would use that one's tables, and the service would migrate and validate its own.
   *
   * @throws OutboxException if it is one
   */
  static void requireSame(OutboxProperties properties, OutboxTable ofStore) {
    OutboxTable set = outbox(properties);
    boolean same =
        set.name().equals(ofStore.name())
            && ofStore.schema().map(set.schema().orElseThrow()::equals).orElse(true);
    if (!same) {
      throw new OutboxException(
          "The PostgresStore bean is of the table "
              + ofStore
              + ", and outbox4j.schema and outbox4j.table say "
              + set
              + "; set them to the store's table, or declare a store of this context where the bean"
              + " is one of a parent context");
    }
  }

  private static OutboxMigrations standard(OutboxProperties properties) {
    return Setting.of(
        "outbox4j.schema, outbox4j.table",
        () -> OutboxMigrations.of(properties.schema(), properties.table()));
  }
}
