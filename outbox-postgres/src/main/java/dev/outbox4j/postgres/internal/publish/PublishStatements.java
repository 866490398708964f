package dev.outbox4j.postgres.internal.publish;

/**
 * The texts of the publishers' statements. Only the names of tables and channel are filled in.
 *
 * <p>What several of them do, and why:
 *
 * <ul>
 *   <li>Payloads come as one value and are cut apart by {@code substr}, because not every driver
 *       has arrays of bytes.
 *   <li>A transaction at repeatable read or serializable sees the sleepers of when it began to
 *       look. A subscriber that fell asleep after that cannot see a transaction that has not
 *       written yet. So it notifies whoever sleeps.
 *   <li>In batches, the reasons to notify are branches of a {@code union}, and the sleepers are a
 *       join to the planner. Then it estimates the generic plan as cheap and keeps it. With a
 *       sub-select for each queue, or one condition with {@code or}, each call was planned anew,
 *       which took as long as the rest of a small one.
 * </ul>
 */
final class PublishStatements {
  private PublishStatements() {}

  private static final String COLUMNS =
      "payload, queue, type, ordering_key, timer_id, headers, available_at, expires_at";

  /** The values of {@link #COLUMNS}. */
  private static final String VALUES =
      """
      substr($1::bytea, m.first_byte, m.bytes), m.queue, m.type, m.ordering_key, m.timer_id,
        case when m.headers is null then jsonb '{}' else jsonb_object(m.headers::text[]) end,
        case
          when m.deliver_at is not null then m.deliver_at::timestamptz
          when m.delay is null then clock_timestamp()
          else clock_timestamp() + m.delay * interval '1 microsecond'
        end,
        case
          when m.expires_at is not null then m.expires_at::timestamptz
          when m.expires_in is not null then m.expires_in * interval '1 microsecond' +
            coalesce(
              m.deliver_at::timestamptz,
              clock_timestamp() + coalesce(m.delay, 0) * interval '1 microsecond')
        end\
      """;

  private static final String ARRAYS =
      """
      $2::int[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
          $9::bigint[], $10::text[], $11::bigint[], $12::text[]\
      """;

  private static final String ELEMENTS =
      """
      first_byte, bytes, queue, type, ordering_key, timer_id, headers, delay, deliver_at,
          expires_in, expires_at\
      """;

  /** Inserts the rows of several messages; each statement says what happens beside it. */
  private static final String INSERT =
      """
      insert into {table}
        ({columns})
      select
        {values}
      from unnest(
          {arrays})
        with ordinality as m(
          {elements}, place)
      order by m.place\
      """;

  /**
   * Is true, and begins the transaction as one that writes before an id is taken. Whoever takes an
   * id first and then waits for another's timer id or dedup key is a transaction that readers of
   * ordered queues cannot see.
   */
  private static final String BEGUN = "pg_current_xact_id() is not null";

  /** The same, of messages that may have to wait for others. */
  private static final String INSERT_BEGUN =
      INSERT.replace("order by m.place", "where " + BEGUN + "\norder by m.place");

  /** Notifies of what was inserted, if a subscriber of its queue sleeps past its instant. */
  private static final String NOTIFY_AUTO =
      """
      due as (
        select i.queue, min(i.available_at) as available_at from inserted i group by i.queue
      ), notified as materialized (
        select pg_notify({channel}, n.queue)
        from (
          select due.queue from due
          where exists (
            select from {sleepers} s where s.queue = due.queue and s.wake_at > due.available_at)
          union all
          select due.queue from due
          where current_setting('transaction_isolation') in ('repeatable read', 'serializable')
        ) n
      )\
      """;

  /** The same, and also if it is due. */
  private static final String NOTIFY_ALWAYS =
      """
      due as (
        select i.queue, min(i.available_at) as available_at from inserted i group by i.queue
      ), notified as materialized (
        select pg_notify({channel}, n.queue)
        from (
          select due.queue from due where due.available_at <= clock_timestamp()
          union
          select due.queue from due
          where exists (
            select from {sleepers} s where s.queue = due.queue and s.wake_at > due.available_at)
          union all
          select due.queue from due
          where current_setting('transaction_isolation') in ('repeatable read', 'serializable')
        ) n
      )\
      """;

  /**
   * Takes the dedup keys of a call, and inserts the messages that have got theirs or need none.
   * More parameters, one element a row: dedup key, the windows in flight and completed in
   * microseconds. Ids are taken here, since the key's row has to name its message. The function
   * takes one key after the other, which no statement does: what it deletes, all is deleted before
   * anything is inserted.
   */
  private static final String TAKE =
      """
      input ({columns}, id, dedup_key, in_flight, completed, place) as materialized (
        select
          {values},
          nextval((select pg_get_serial_sequence({name}, 'id')::regclass)),
          m.dedup_key, m.in_flight * interval '1 microsecond',
          m.completed * interval '1 microsecond', m.place
        from unnest(
            {arrays},
            $13::text[], $14::bigint[], $15::bigint[])
          with ordinality as m(
            {elements},
            dedup_key, in_flight, completed, place)
        where {begun}
        order by m.place
      ), taken as materialized (
        select t.message_id
        from (
          select array_agg(i.queue) as queues, array_agg(i.dedup_key) as keys,
            array_agg(i.id) as ids, array_agg(i.in_flight) as in_flight,
            array_agg(i.completed) as completed
          from input i
          where i.dedup_key is not null) w
        cross join lateral {take_keys}(w.queues, w.keys, w.ids, w.in_flight, w.completed)
          as t (message_id)
      ), inserted as (
        insert into {table} (id, {columns})
        select i.id, i.payload, i.queue, i.type, i.ordering_key, i.timer_id, i.headers,
          i.available_at, i.expires_at
        from input i
        where i.dedup_key is null or i.id in (select t.message_id from taken t)
        order by i.place
        on conflict (queue, timer_id) where timer_id is not null do nothing
        returning id, queue, timer_id, available_at
      )\
      """;

  /**
   * One message without timer id and expiry. Parameters: payload, queue, type, ordering key,
   * headers, instant or null, delay in microseconds.
   */
  static final String SINGLE_NEVER =
      """
      insert into {table} as i (payload, queue, type, ordering_key, headers, available_at)
      values (
        $1, $2, $3, $4, jsonb_object($5::text[]),
        coalesce($6::timestamptz, clock_timestamp() + $7::bigint * interval '1 microsecond'))
      returning i.id
      """;

  /** The same, and notifies if a subscriber of the queue sleeps past the row's instant. */
  static final String SINGLE_AUTO =
      """
      insert into {table} as i (payload, queue, type, ordering_key, headers, available_at)
      values (
        $1, $2, $3, $4, jsonb_object($5::text[]),
        coalesce($6::timestamptz, clock_timestamp() + $7::bigint * interval '1 microsecond'))
      returning i.id,
        case
          when current_setting('transaction_isolation') in ('repeatable read', 'serializable')
            or exists (
              select from {sleepers} s where s.queue = i.queue and s.wake_at > i.available_at)
          then pg_notify({channel}, i.queue)
        end
      """;

  /** The same, and notifies also if the row is due. */
  static final String SINGLE_ALWAYS =
      """
      insert into {table} as i (payload, queue, type, ordering_key, headers, available_at)
      values (
        $1, $2, $3, $4, jsonb_object($5::text[]),
        coalesce($6::timestamptz, clock_timestamp() + $7::bigint * interval '1 microsecond'))
      returning i.id,
        case
          when i.available_at <= clock_timestamp()
            or current_setting('transaction_isolation') in ('repeatable read', 'serializable')
            or exists (
              select from {sleepers} s where s.queue = i.queue and s.wake_at > i.available_at)
          then pg_notify({channel}, i.queue)
        end
      """;

  /**
   * Messages without timer ids. Parameters: all payloads as one value; then arrays, one element a
   * row: first byte, size, queue, type, ordering key, timer id (empty), headers, delay in
   * microseconds, instant, and the same two of the expiry. It returns what {@link #TIMERS_NEVER}
   * returns, for one reader of rows.
   */
  static final String PLAIN_NEVER =
      inserting(
          """
          {insert}
          returning id, null::text, null::text
          """);

  /**
   * The same, and notifies. More parameters, one element a queue: queue, least delay, least
   * instant. The sub-select depends on no row, so it runs once, with the first row that is
   * returned. It reads what the call holds for each queue, not what was inserted: passing that on
   * took a fifth of a batch's time.
   */
  static final String PLAIN_AUTO =
      inserting(
          """
          {insert}
          returning id, null::text, null::text, (
            with due as (
              select
                q.queue,
                least(
                  q.deliver_at::timestamptz,
                  clock_timestamp() + q.delay * interval '1 microsecond') as available_at
              from unnest($13::text[], $14::bigint[], $15::text[]) as q(queue, delay, deliver_at))
            select count(pg_notify({channel}, notified.queue))
            from (
              select due.queue from due
              where exists (
                select from {sleepers} s where s.queue = due.queue and s.wake_at > due.available_at)
              union all
              select due.queue from due
              where current_setting('transaction_isolation') in ('repeatable read', 'serializable')
            ) notified)
          """);

  static final String PLAIN_ALWAYS =
      inserting(
          """
          {insert}
          returning id, null::text, null::text, (
            with due as (
              select
                q.queue,
                least(
                  q.deliver_at::timestamptz,
                  clock_timestamp() + q.delay * interval '1 microsecond') as available_at
              from unnest($13::text[], $14::bigint[], $15::text[]) as q(queue, delay, deliver_at))
            select count(pg_notify({channel}, notified.queue))
            from (
              select due.queue from due where due.available_at <= clock_timestamp()
              union
              select due.queue from due
              where exists (
                select from {sleepers} s where s.queue = due.queue and s.wake_at > due.available_at)
              union all
              select due.queue from due
              where current_setting('transaction_isolation') in ('repeatable read', 'serializable')
            ) notified)
          """);

  /** Messages of which some have timer ids. Parameters: as those of {@link #PLAIN_NEVER}. */
  static final String TIMERS_NEVER =
      inserting(
          """
          {insert_begun}
          on conflict (queue, timer_id) where timer_id is not null do nothing
          returning id, queue, timer_id
          """);

  /**
   * The same, and notifies for the rows that were inserted, not for those that a live timer id made
   * unnecessary. The last select counts the notifications because PostgreSQL does not run a select
   * CTE that nothing reads.
   */
  static final String TIMERS_AUTO =
      inserting(
          """
          with inserted as (
            {insert_begun}
            on conflict (queue, timer_id) where timer_id is not null do nothing
            returning id, queue, timer_id, available_at
          ), {notify}
          select i.id, i.queue, i.timer_id, (select count(*) from notified) from inserted i
          """,
          NOTIFY_AUTO);

  static final String TIMERS_ALWAYS =
      inserting(
          """
          with inserted as (
            {insert_begun}
            on conflict (queue, timer_id) where timer_id is not null do nothing
            returning id, queue, timer_id, available_at
          ), {notify}
          select i.id, i.queue, i.timer_id, (select count(*) from notified) from inserted i
          """,
          NOTIFY_ALWAYS);

  /**
   * What a message writes that takes the place of a live one. Of a row that is leased it leaves the
   * lease, so that nobody else begins with it, and the id, by which whoever has the lease renews
   * and ends it; the message has its own from then on. Of any other row it leaves nothing: an
   * ordered queue, whose rows are not leased, finds a new row, and none of the old id.
   */
  private static final String REPLACE =
      """
      on conflict (queue, timer_id) where timer_id is not null do update
      set id = case when o.lease_until >= statement_timestamp() then o.id else excluded.id end,
        next_id = case when o.lease_until >= statement_timestamp() then excluded.id end,
        type = excluded.type, ordering_key = excluded.ordering_key, payload = excluded.payload,
        headers = excluded.headers, created_at = now(), expires_at = excluded.expires_at,
        available_at = case when excluded.available_at <= clock_timestamp()
          then least(o.available_at, excluded.available_at) else excluded.available_at end,
        lease_until = case when o.lease_until >= statement_timestamp() then o.lease_until end,
        leased_at = case when o.lease_until >= statement_timestamp() then o.leased_at end,
        leased_by = case when o.lease_until >= statement_timestamp() then o.leased_by end,
        lease_token = case when o.lease_until >= statement_timestamp() then o.lease_token else 0 end,
        deliveries_count = 0, attempts_count = 0, first_attempt_at = null, last_attempt_at = null,
        last_error = null
      where (o.queue, o.timer_id) in (
        select r.queue, r.timer_id from unnest($13::text[], $14::text[]) as r (queue, timer_id))\
      """;

  /**
   * Messages with timer ids, of which some take the place of live ones. More parameters, one
   * element a row: queues and timer ids of those. A row may have been due for long, as the one
   * before it: whoever is awake since need not be told.
   */
  static final String REPLACING_NEVER =
      inserting(
          """
          {insert_as_o}
          {replace}
          returning coalesce(next_id, id), queue, timer_id
          """);

  static final String REPLACING_AUTO =
      inserting(
          """
          with inserted as (
            {insert_as_o}
            {replace}
            returning coalesce(next_id, id) as id, queue, timer_id,
              greatest(available_at, clock_timestamp()) as available_at
          ), {notify}
          select i.id, i.queue, i.timer_id, (select count(*) from notified) from inserted i
          """,
          NOTIFY_AUTO);

  static final String REPLACING_ALWAYS =
      inserting(
          """
          with inserted as (
            {insert_as_o}
            {replace}
            returning coalesce(next_id, id) as id, queue, timer_id,
              greatest(available_at, clock_timestamp()) as available_at
          ), {notify}
          select i.id, i.queue, i.timer_id, (select count(*) from notified) from inserted i
          """,
          NOTIFY_ALWAYS);

  /** Messages of which some have dedup keys; see {@link #TAKE}. It returns their places, too. */
  static final String DEDUP_NEVER =
      inserting(
          """
          with {take}
          select n.id, n.queue, n.timer_id, i.place
          from inserted n join input i on i.id = n.id
          """);

  static final String DEDUP_AUTO =
      inserting(
          """
          with {take}, {notify}
          select n.id, n.queue, n.timer_id, i.place, (select count(*) from notified)
          from inserted n join input i on i.id = n.id
          """,
          NOTIFY_AUTO);

  static final String DEDUP_ALWAYS =
      inserting(
          """
          with {take}, {notify}
          select n.id, n.queue, n.timer_id, i.place, (select count(*) from notified)
          from inserted n join input i on i.id = n.id
          """,
          NOTIFY_ALWAYS);

  /**
   * Parameters: queue, timer id. It reads the clock and not the transaction's start, since when a
   * lease may have run out.
   */
  static final String CANCEL_TIMER =
      """
      delete from {table}
      where queue = $1 and timer_id = $2 and (lease_until is null or lease_until < clock_timestamp())
      """;

  private static String inserting(String statement, String notify) {
    return inserting(statement.replace("{notify}", notify));
  }

  private static String inserting(String statement) {
    return statement
        .replace("{insert}", INSERT)
        .replace("{insert_begun}", INSERT_BEGUN)
        .replace("{insert_as_o}", INSERT_BEGUN.replace("{table}", "{table} as o"))
        .replace("{replace}", REPLACE)
        .replace("{take}", TAKE)
        .replace("{begun}", BEGUN)
        .replace("{columns}", COLUMNS)
        .replace("{values}", VALUES)
        .replace("{arrays}", ARRAYS)
        .replace("{elements}", ELEMENTS);
  }
}
