package dev.outbox4j.postgres;

import org.jooq.DSLContext;
import org.jooq.SQLDialect;
import org.jooq.impl.DSL;

/**
 * The publishers' statements, rendered once, with R2DBC's markers or with JDBC's.
 *
 * @param single inserts one message without a timer id
 * @param plain inserts messages of which none has a timer id
 * @param timers inserts messages of which some have timer ids: {@code on conflict} makes every row
 *     of its statement a speculative one, which takes half as long again and more WAL
 * @param cancelTimer deletes a message by its timer id
 */
record PublishSql(String single, String plain, String timers, String cancelTimer) {

  private static final String SINGLE =
      """
      insert into {table} as i (payload, queue, type, ordering_key, headers, available_at)
      values (
        $1, $2, $3, $4, $5::jsonb,
        coalesce($6::timestamptz, clock_timestamp() + $7::bigint * interval '1 microsecond'))
      returning i.id""";

  private static final String SINGLE_NOTIFIES =
      """
      ,
        case
          when {wanted}
          then pg_notify({channel}, i.queue)
        end
      """;

  /**
   * At these levels the statement sees the sleepers of when its transaction began to look, and who
   * fell asleep after that cannot see a transaction that has not written yet: so it tells anyway.
   */
  private static final String SLEEPERS_MAY_BE_UNSEEN =
      "current_setting('transaction_isolation') in ('repeatable read', 'serializable')";

  private static final String A_SLEEPER_WAKES_LATER =
      SLEEPERS_MAY_BE_UNSEEN
          + " or exists (select from {sleepers} s where s.queue = i.queue and s.wake_at > i.available_at)";

  /**
   * One row a message, in the order of the arrays. Payloads come as one value and are cut apart
   * here, because not every driver has arrays of bytes.
   */
  private static final String INSERT =
      """
      insert into {table} (payload, queue, type, ordering_key, timer_id, headers, available_at)
        select
          substr($1::bytea, m.first_byte, m.bytes), m.queue, m.type, m.ordering_key, m.timer_id,
          case when m.headers is null then jsonb '{}' else m.headers::jsonb end,
          case
            when m.deliver_at is not null then m.deliver_at::timestamptz
            when m.delay is null then clock_timestamp()
            else clock_timestamp() + m.delay * interval '1 microsecond'
          end
        from unnest(
            $2::int[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::text[])
          with ordinality as m(
            first_byte, bytes, queue, type, ordering_key, timer_id, headers, delay, deliver_at, place)
        order by m.place""";

  private static final String ON_CONFLICT =
      "\n  on conflict (queue, timer_id) where timer_id is not null do nothing";

  private static final String RETURNING = "\n  returning id, null::text, null::text\n";

  /**
   * Counted in the first row that is returned, and once only, since it depends on none. It reads
   * what the call holds for each queue, not what was inserted: passing that on took a fifth of a
   * batch's time.
   */
  private static final String NOTIFIES =
      """

        returning id, null::text, null::text, (
          with due as (
            select
              q.queue,
              least(
                q.deliver_at::timestamptz,
                clock_timestamp() + q.delay * interval '1 microsecond') as available_at
            from unnest($11::text[], $12::bigint[], $13::text[]) as q(queue, delay, deliver_at))
          select count(pg_notify({channel}, wanted.queue)) from (
            {wanted}) wanted)
      """;

  private static final String RETURNING_TIMERS = "\n  returning id, queue, timer_id\n";

  /**
   * What is deduplicated away does not notify. The notification hangs on the last select:
   * PostgreSQL does not run a select CTE that nothing reads.
   */
  private static final String NOTIFY_INSERTED =
      """
      with inserted as (
        {insert}
        returning id, queue, timer_id, available_at
      ), due as (
        select i.queue, min(i.available_at) as available_at from inserted i group by i.queue
      ), notified as materialized (
        select pg_notify({channel}, wanted.queue) from (
          {wanted}) wanted
      )
      select i.id, i.queue, i.timer_id, (select count(*) from notified) from inserted i
      """;

  /**
   * A join for the planner, so that the generic plan is estimated as cheap and taken: a sub-select
   * per queue was planned anew in each call, which took as long as the rest of a small one. For the
   * same reason the other reasons to notify are united with it, not put into its condition.
   */
  private static final String BEFORE_A_SLEEPER_WAKES =
      "select due.queue from due where exists (select from {sleepers} s where s.queue = due.queue and s.wake_at > due.available_at)"
          + " union all select due.queue from due where "
          + SLEEPERS_MAY_BE_UNSEEN;

  private static final String DUE_NOW =
      "select due.queue from due where due.available_at <= clock_timestamp()";

  /** The statement's time, not the transaction's start: a lease may have run out since then. */
  private static final String CANCEL_TIMER =
      """
      delete from {table}
      where queue = $1 and timer_id = $2 and (lease_until is null or lease_until < clock_timestamp())
      """;

  /** Chooses the statement of several messages, or of one with a timer id. */
  String of(PublishBatch batch) {
    return batch.timed() ? timers : plain;
  }

  static PublishSql forJdbc(OutboxTable table, NotifyMode mode) {
    PublishSql sql = forR2dbc(table, mode);
    return new PublishSql(
        jdbc(sql.single), jdbc(sql.plain), jdbc(sql.timers), jdbc(sql.cancelTimer));
  }

  /** Each marker occurs once, in order. */
  private static String jdbc(String sql) {
    return sql.replaceAll("\\$\\d+", "?");
  }

  static PublishSql forR2dbc(OutboxTable table, NotifyMode mode) {
    String plain = INSERT;
    String timers = INSERT + ON_CONFLICT;
    PublishSql sql =
        switch (mode) {
          case NEVER ->
              new PublishSql(SINGLE, plain + RETURNING, timers + RETURNING_TIMERS, CANCEL_TIMER);
          case AUTO ->
              notifying(
                  SINGLE_NOTIFIES.replace("{wanted}", A_SLEEPER_WAKES_LATER),
                  BEFORE_A_SLEEPER_WAKES);
          case ALWAYS ->
              notifying(
                  SINGLE_NOTIFIES.replace(
                      "{wanted}",
                      "i.available_at <= clock_timestamp() or " + A_SLEEPER_WAKES_LATER),
                  DUE_NOW + " union " + BEFORE_A_SLEEPER_WAKES);
        };
    return new PublishSql(
        named(sql.single, table),
        named(sql.plain, table),
        named(sql.timers, table),
        named(sql.cancelTimer, table));
  }

  private static PublishSql notifying(String single, String wanted) {
    return new PublishSql(
        SINGLE + single,
        INSERT + NOTIFIES.replace("{wanted}", wanted),
        NOTIFY_INSERTED.replace("{wanted}", wanted).replace("{insert}", INSERT + ON_CONFLICT),
        CANCEL_TIMER);
  }

  private static String named(String template, OutboxTable table) {
    DSLContext dsl = DSL.using(SQLDialect.POSTGRES);
    return template
        .replace("{table}", dsl.render(table.qualifiedName()))
        .replace("{sleepers}", dsl.render(table.qualifiedSleepers()))
        .replace("{channel}", dsl.render(DSL.inline(table.channel())));
  }
}
