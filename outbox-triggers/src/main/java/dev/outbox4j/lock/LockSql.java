package dev.outbox4j.lock;

/** The statements on locks. The server's clock alone decides whether a lease is over. */
final class LockSql {
  /**
   * Takes a lock that is free, or whose lease is over, or that this attempt has taken already
   * without hearing of it. A row that somebody is writing is passed over. Gives the token; else
   * what is known of the holder.
   */
  static final String ACQUIRE =
      """
      with taken as (
        update {locks} l
        set token = default, owner = :owner, acquired_at = now(), renewed_at = now(),
          held_until = now() + make_interval(secs => :seconds)
        where l.application = :application and l.name = :name and l.token = (
          select f.token
          from {locks} f
          where f.application = :application and f.name = :name
            and (f.owner is null or f.owner = :owner or f.held_until <= now())
          for update skip locked)
        returning l.token),
      created as (
        insert into {locks} as l (application, name, owner, held_until)
        select :application, :name, :owner, now() + make_interval(secs => :seconds)
        where not exists (
          select from {locks} e where e.application = :application and e.name = :name)
        on conflict do nothing
        returning l.token)
      select a.token, null, null
      from (select token from taken union all select token from created) a
      union all
      select null, h.owner, extract(epoch from h.held_until - clock_timestamp())::float8
      from {locks} h
      where h.application = :application and h.name = :name and not exists (select from taken)
      """;

  /**
   * Nothing, if the lock is another's. A lease that is over is renewed if nobody took the lock. The
   * time is when the row is written: one that waited for it shortens no later one.
   */
  static final String RENEW =
      """
      update {locks} l
      set renewed_at = clock_timestamp(),
        held_until = clock_timestamp() + make_interval(secs => :seconds)
      where l.application = :application and l.name = :name and l.owner = :owner
      """;

  /** Keeps the row, and with it the token. Tells those who wait. */
  static final String RELEASE =
      """
      with released as (
        update {locks} l
        set owner = null, held_until = now()
        where l.application = :application and l.name = :name and l.owner = :owner
        returning l.application)
      select pg_notify({locks_channel}, :payload)::text from released
      """;

  /**
   * Until the transaction's end nobody takes the lock: that would change the token, which is part
   * of a key. Of a holder that is cut off the server hears nothing, so it ends a transaction that
   * is idle for as long as the lease lasts now; what is shorter is left so.
   */
  static final String GUARD =
      """
      select set_config('idle_in_transaction_session_timeout', (
        select case when known > 0 and known < remaining then known else greatest(remaining, 1) end
        from (
          select 1000 * extract(epoch from
              current_setting('idle_in_transaction_session_timeout')::interval),
            1000 * extract(epoch from l.held_until - clock_timestamp())) as s (known, remaining)
        )::bigint::text, true)
      from {locks} l
      where l.application = :application and l.name = :name and l.owner = :owner
        and l.held_until > clock_timestamp()
      for key share
      """;

  static final String LIST =
      """
      select l.name, l.token, l.owner, l.held_until, l.acquired_at, l.renewed_at,
        l.owner is not null and l.held_until > clock_timestamp()
      from {locks} l
      where l.application = :application
      order by l.name
      """;

  /** What is younger may be waited for by an attempt that has its token already. */
  static final String PURGE =
      """
      delete from {locks} l
      where l.application = :application and l.name in (
        select p.name
        from {locks} p
        where p.application = :application and p.renewed_at < least(:before::timestamptz, now() - interval '10 minutes')
          and (p.owner is null or p.held_until <= now())
        order by p.name
        limit :most
        for update skip locked)
      """;

  private LockSql() {}
}
