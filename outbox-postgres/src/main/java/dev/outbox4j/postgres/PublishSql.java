package dev.outbox4j.postgres;

import org.jooq.DSLContext;
import org.jooq.SQLDialect;
import org.jooq.impl.DSL;

/** The publishers' statements, rendered once, with R2DBC's markers or with JDBC's. */
record PublishSql(String publish, String cancelTimer) {

  /**
   * One row a message, in the order of the arrays. Payloads come as one value and are cut apart
   * here, because not every driver has arrays of bytes. The notification hangs on the last select:
   * PostgreSQL does not run a select CTE that nothing reads.
   */
  private static final String PUBLISH =
      """
      with inserted as (
        insert into {table} (payload, queue, type, ordering_key, timer_id, headers, available_at)
        select
          substr($1::bytea, m.first_byte, m.bytes), m.queue, m.type, m.ordering_key, m.timer_id, m.headers::jsonb,
          case
            when m.deliver_at is null then clock_timestamp() + m.delay * interval '1 microsecond'
            else m.deliver_at::timestamptz
          end
        from unnest(
            $2::int[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::text[])
          with ordinality as m(
            first_byte, bytes, queue, type, ordering_key, timer_id, headers, delay, deliver_at, place)
        order by m.place
        on conflict (queue, timer_id) where timer_id is not null do nothing
        returning id, queue, timer_id, available_at
      )""";

  private static final String NOTIFY =
      """
      , notified as materialized (
        select pg_notify({channel}, wanted.queue) from (
          {wanted}) wanted
      )
      select i.id, i.queue, i.timer_id, (select count(*) from notified) from inserted i
      """;

  private static final String NO_NOTIFY = "\nselect i.id, i.queue, i.timer_id from inserted i\n";

  private static final String FIRST_DUE =
      "select due.queue from (select i.queue, min(i.available_at) as available_at from inserted i group by i.queue) due where ";

  /**
   * A join for the planner, so that the generic plan is estimated as cheap and taken: a sub-select
   * per queue was planned anew in each call, which took as long as the rest of a small one.
   */
  private static final String BEFORE_A_SLEEPER_WAKES =
      FIRST_DUE
          + "exists (select from {sleepers} s where s.queue = due.queue and s.wake_at > due.available_at)";

  private static final String DUE_NOW = FIRST_DUE + "due.available_at <= clock_timestamp()";

  /** The statement's time, not the transaction's start: a lease may have run out since then. */
  private static final String CANCEL_TIMER =
      """
      delete from {table}
      where queue = $1 and timer_id = $2 and (lease_until is null or lease_until < clock_timestamp())
      """;

  static PublishSql forJdbc(OutboxTable table, NotifyMode mode) {
    PublishSql sql = forR2dbc(table, mode);
    // each marker occurs once, in order
    return new PublishSql(
        sql.publish.replaceAll("\\$\\d+", "?"), sql.cancelTimer.replaceAll("\\$\\d+", "?"));
  }

  static PublishSql forR2dbc(OutboxTable table, NotifyMode mode) {
    String notify =
        switch (mode) {
          case AUTO -> NOTIFY.replace("{wanted}", BEFORE_A_SLEEPER_WAKES);
          case ALWAYS -> NOTIFY.replace("{wanted}", DUE_NOW + " union " + BEFORE_A_SLEEPER_WAKES);
          case NEVER -> NO_NOTIFY;
        };
    return new PublishSql(named(PUBLISH + notify, table), named(CANCEL_TIMER, table));
  }

  private static String named(String template, OutboxTable table) {
    DSLContext dsl = DSL.using(SQLDialect.POSTGRES);
    return template
        .replace("{table}", dsl.render(table.qualifiedName()))
        .replace("{sleepers}", dsl.render(table.qualifiedSleepers()))
        .replace("{channel}", dsl.render(DSL.inline(table.channel())));
  }
}
