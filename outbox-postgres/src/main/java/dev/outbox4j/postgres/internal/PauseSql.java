package dev.outbox4j.postgres.internal;

/** The texts of the statements on pauses. Each runs behind the {@link Preamble}. */
final class PauseSql {
  /** Of the queues of a subscriber. */
  static final String OPEN_OF =
      """
      select queue, paused_at, paused_by, reason
      from {pauses}
      where queue = any (:queues::text[]) and resumed_at is null
      """;

  static final String OPEN =
      """
      select queue, paused_at, paused_by, reason, resumed_at, resumed_by
      from {pauses}
      where resumed_at is null
      order by queue
      """;

  static final String HISTORY =
      """
      select queue, paused_at, paused_by, reason, resumed_at, resumed_by
      from {pauses}
      where queue = :queue
      order by id desc
      limit :limit
      """;

  static final String PAUSE =
      """
      insert into {pauses} (queue, paused_by, reason) values (:queue, :by, :reason)
      on conflict (queue) where resumed_at is null do nothing
      """;

  /** A payload without a queue is heard by every subscriber, whatever it waits for. */
  static final String RESUME =
      """
      with resumed as (
        update {pauses} set resumed_at = now(), resumed_by = :by
        where queue = :queue and resumed_at is null
        returning queue)
      select pg_notify(:channel, '') from resumed
      """;

  private PauseSql() {}
}
