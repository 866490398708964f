package dev.outbox4j.dlq;

import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.internal.FencedSql;
import dev.outbox4j.postgres.internal.FencedStatement;
import dev.outbox4j.postgres.internal.Following;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.JdbcStore;
import dev.outbox4j.postgres.internal.Refusal;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.DeadLetterWriter;
import dev.outbox4j.spi.OpenDeadLetters;
import dev.outbox4j.spi.Written;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Moves rows of one outbox to its dead-letter table. */
final class JdbcDeadLetterWriter implements DeadLetterWriter {
  /** The token goes on where no claim has raised it: who tries again finds no row put back. */
  private static final String DELETED =
      """
      o.id, {token} as lease_token, o.queue, o.type, o.ordering_key, o.payload, o.headers,
          {deliveries} as deliveries_count, o.created_at, o.available_at, o.timer_id,
          case when a.attempts > o.attempts_count then coalesce(o.first_attempt_at, now())
            else o.first_attempt_at end as first_attempt_at,
          case when a.attempts > o.attempts_count then now()
            else o.last_attempt_at end as last_attempt_at,
          a.reason, a.attempts, a.exception\
      """;

  /** The outbox is named as the server resolves it, so that it is the same whoever writes. */
  static final String OUTBOX_NAME =
      """
      select n.nspname || '.' || c.relname
      from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where c.oid = cast('{outbox}' as regclass)\
      """;

  /**
   * A letter that was redriven is the same letter when its message fails again. Its message is told
   * by its age: the statement that put it back has resolved the letter at the same instant. Another
   * one that has its id, since ids began anew, is a letter of its own. Who resolved the letter, and
   * how, is left as it was: nobody's words are a subscriber's to write. Only the index that begins
   * with the message's id finds it; the sum keeps the planner from a walk of the primary key.
   */
  private static final String INSERT =
      """
      ,
      again as (
        update {dead_letters} d
          set lease_token = done.lease_token, type = done.type, payload = done.payload,
            headers = done.headers, deliveries_count = done.deliveries_count,
            attempts_count = done.attempts, first_attempt_at = done.first_attempt_at,
            last_attempt_at = done.last_attempt_at, failed_at = now(),
            failure_reason = done.reason, last_exception = done.exception, resolved_at = null
          from done
          where (d.outbox = ({outbox_name})) is true and d.original_id = any (array[done.id])
            and (d.resolved_at = done.created_at) is true
            and d.id = (
              select max(e.id + 0) from {dead_letters} e
              where (e.outbox = ({outbox_name})) is true and e.original_id = any (array[done.id])
                and e.redrives_count > 0 and (e.resolved_at = done.created_at) is true
                and (e.queue = done.queue) is true
                and e.ordering_key is not distinct from done.ordering_key)
          returning d.original_id),
      inserted as (
        insert into {dead_letters} (outbox, original_id, lease_token, queue, type, ordering_key,
          payload, headers, deliveries_count, attempts_count, created_at, available_at,
          first_attempt_at, last_attempt_at, timer_id, failure_reason, last_exception)
        select ({outbox_name}),
          id, lease_token, queue, type, ordering_key, payload, headers, deliveries_count, attempts,
          created_at, available_at, first_attempt_at, last_attempt_at, timer_id, reason, exception
        from done
        where not exists (select from again where again.original_id = done.id)
        returning 1)\
      """
          .replace("{outbox_name}", OUTBOX_NAME);

  private static final String ALL_ARRIVED =
      """
        and (
          select cast(case when done.count <> inserted.count
            then '{swallowed}' || inserted.count || ' instead of ' || done.count end as int)
          from (select count(*) from done) done,
            (select (select count(*) from inserted) + (select count(*) from again) as count)
              inserted) is null
      """
          .replace("{swallowed}", Refusal.SWALLOWED.words());

  private final String name;
  private final FencedStatement<DeadLetterEntry> move;
  private final OpenDeadLetters open;

  /**
   * Renders the statements.
   *
   * @param name of the dead letters, for people
   * @param quoted the same, as it is written in a statement
   */
  JdbcDeadLetterWriter(PostgresStore store, String name, String quoted) {
    Jdbc jdbc = new Jdbc(store.dataSource(), store.table(), store.networkTimeout());
    this.name = name;
    String operation = "dead-letter to " + name;
    move =
        new FencedStatement<>(
            operation, jdbc, sql(quoted, following(store)), DeadLetterEntry::lease);
    open = new JdbcOpenDeadLetters(jdbc, name, quoted);
  }

  private static Following following(PostgresStore store) {
    return store instanceof JdbcStore own ? own.following().deadLetter() : Following.NOTHING;
  }

  static FencedSql sql(String deadLetters, Following following) {
    return new FencedSql(
        new FencedSql.Effect(
                "delete from {outbox} o using",
                ", :reasons::text[], :attempts::int[], :exceptions::text[]",
                ", reason, attempts, exception",
                DELETED,
                INSERT.replace("{dead_letters}", deadLetters),
                ALL_ARRIVED)
            .followedBy(following));
  }

  @Override
  public Written write(List<DeadLetterEntry> entries) {
    if (entries.isEmpty()) {
      throw new IllegalArgumentException("There is no row to dead-letter; give one or more");
    }
    return move.execute(entries, JdbcDeadLetterWriter::values);
  }

  @Override
  public Optional<OpenDeadLetters> open() {
    return Optional.of(open);
  }

  @Override
  public String place() {
    return name;
  }

  private static Map<String, Object> values(List<DeadLetterEntry> entries) {
    Map<String, Object> values = new HashMap<>();
    values.put(
        "reasons", entries.stream().map(entry -> entry.reason().code()).toArray(String[]::new));
    values.put("attempts", entries.stream().mapToInt(DeadLetterEntry::attempts).toArray());
    values.put(
        "exceptions", entries.stream().map(DeadLetterEntry::exception).toArray(String[]::new));
    return values;
  }
}
