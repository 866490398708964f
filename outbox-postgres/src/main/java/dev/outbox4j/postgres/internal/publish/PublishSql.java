package dev.outbox4j.postgres.internal.publish;

import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.postgres.NotifyMode;
import dev.outbox4j.postgres.OutboxTable;

/**
 * The publishers' statements, rendered once, with R2DBC's markers or with JDBC's.
 *
 * @param single inserts one message without timer id, expiry and dedup key
 * @param plain inserts messages of which none has a timer id
 * @param timers inserts messages of which some have timer ids: {@code on conflict} makes every row
 *     of its statement a speculative one, which takes half as long again and more WAL
 * @param replacing inserts messages of which some take the place of live ones: it locks rows that
 *     the others leave alone
 * @param dedup inserts messages of which some have dedup keys
 * @param cancelTimer deletes a message by its timer id
 */
record PublishSql(
    String single,
    String plain,
    String timers,
    String replacing,
    String dedup,
    String cancelTimer) {

  /**
   * Chooses the statement of several messages, or of one with a timer id, an expiry or a dedup key.
   */
  String of(PublishBatch batch) {
    if (batch.hasDedupKeys()) {
      return dedup;
    }
    if (batch.replacesTimers()) {
      return replacing;
    }
    return batch.hasTimers() ? timers : plain;
  }

  static PublishSql forJdbc(OutboxTable table, NotifyMode mode) {
    PublishSql sql = forR2dbc(table, mode);
    return new PublishSql(
        Markers.forJdbc(sql.single),
        Markers.forJdbc(sql.plain),
        Markers.forJdbc(sql.timers),
        Markers.forJdbc(sql.replacing),
        Markers.forJdbc(sql.dedup),
        Markers.forJdbc(sql.cancelTimer));
  }

  static PublishSql forR2dbc(OutboxTable table, NotifyMode mode) {
    PublishSql sql =
        switch (mode) {
          case NEVER ->
              new PublishSql(
                  PublishStatements.SINGLE_NEVER,
                  PublishStatements.PLAIN_NEVER,
                  PublishStatements.TIMERS_NEVER,
                  PublishStatements.REPLACING_NEVER,
                  PublishStatements.DEDUP_NEVER,
                  PublishStatements.CANCEL_TIMER);
          case AUTO ->
              new PublishSql(
                  PublishStatements.SINGLE_AUTO,
                  PublishStatements.PLAIN_AUTO,
                  PublishStatements.TIMERS_AUTO,
                  PublishStatements.REPLACING_AUTO,
                  PublishStatements.DEDUP_AUTO,
                  PublishStatements.CANCEL_TIMER);
          case ALWAYS ->
              new PublishSql(
                  PublishStatements.SINGLE_ALWAYS,
                  PublishStatements.PLAIN_ALWAYS,
                  PublishStatements.TIMERS_ALWAYS,
                  PublishStatements.REPLACING_ALWAYS,
                  PublishStatements.DEDUP_ALWAYS,
                  PublishStatements.CANCEL_TIMER);
        };
    return new PublishSql(
        named(sql.single, table),
        named(sql.plain, table),
        named(sql.timers, table),
        named(sql.replacing, table),
        named(sql.dedup, table),
        named(sql.cancelTimer, table));
  }

  private static String named(String statement, OutboxTable table) {
    return statement
        .replace("{table}", table.qualifiedName())
        .replace("{name}", Names.literal(table.qualifiedName()))
        .replace(
            "{take_keys}",
            Names.qualified(table.schema().orElse(null), Names.dedupTake(table.name())))
        .replace("{sleepers}", table.qualifiedSleepers())
        .replace("{channel}", Names.literal(table.channel()));
  }
}
