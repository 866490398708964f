package dev.outbox4j.examples.chaos;

import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import javax.sql.DataSource;

/**
 * What was written to a table, what handlers were called with, and who moved which position when:
 * the first and the last by triggers, so that they do not rest on what the library says of itself.
 */
final class PollerLedger {
  private static final List<String> POLLERS =
      Stream.concat(PollingNode.PLAIN.stream(), PollingNode.TRANSACTIONAL.stream()).toList();

  private static final String EFFECTS =
      """
      create table %s (
        poller text not null, id bigint not null, revision int not null, process text not null,
        token bigint not null, tx xid8 not null default pg_current_xact_id(),
        at timestamptz not null default clock_timestamp())""";

  private static final List<String> TABLES =
      List.of(
          "create sequence change_numbers",
          """
          create table changes (
            id bigint generated always as identity primary key, revision int not null default 1,
            change bigint not null default nextval('change_numbers'),
            changed_at timestamptz not null default now())""",
          "create index on changes (change, id)",
          "create index on changes (changed_at, id)",
          """
          create function move_change() returns trigger language plpgsql as $$
          begin
            new.revision := old.revision + 1;
            new.change := nextval('change_numbers');
            new.changed_at := now();
            return new;
          end $$""",
          """
          create trigger move_change before update on changes
            for each row execute function move_change()""",
          // each version that was committed, and when, but for a moment
          """
          create table written (
            id bigint not null, revision int not null, change bigint not null,
            at timestamptz not null default clock_timestamp(), primary key (id, revision))""",
          """
          create function note_change() returns trigger language plpgsql as $$
          begin
            insert into written (id, revision, change) values (new.id, new.revision, new.change);
            return null;
          end $$""",
          """
          create constraint trigger note_change after insert or update on changes
            deferrable initially deferred for each row execute function note_change()""",
          EFFECTS.formatted("handled"),
          EFFECTS.formatted("counted"),
          "create index on handled (poller, id, revision)",
          "create index on counted (poller, id, revision)",
          // what handlers are at, each from before it writes to after that
          """
          create table handling (
            poller text not null, process text not null, token bigint not null,
            primary key (poller, process))""",
          """
          create table told (
            poller text not null, process text not null,
            at timestamptz not null default clock_timestamp())""",
          """
          create table leases (
            poller text not null, token bigint not null, process text not null,
            acquired timestamptz not null default clock_timestamp(), primary key (poller, token))""",
          // by whom, as its session is called
          """
          create table moves (
            poller text not null, token bigint not null, process text, session text not null,
            tx xid8 not null default pg_current_xact_id(),
            at timestamptz not null default clock_timestamp())""",
          """
          create function note_poller() returns trigger language plpgsql as $$
          begin
            if new.token <> old.token and new.owner is not null then
              insert into leases (poller, token, process)
              values (new.name, new.token, split_part(new.owner, '/', 1));
            end if;
            if (new.position_side, new.position_cursor, new.position_key)
                is distinct from (old.position_side, old.position_cursor, old.position_key) then
              insert into moves (poller, token, process, session)
              values (new.name, new.token, split_part(old.owner, '/', 1),
                current_setting('application_name'));
            end if;
            return null;
          end $$""",
          """
          create trigger note_poller after update on outbox_poller
            for each row execute function note_poller()""",
          """
          create table hits (
            no bigint primary key, process text not null, frozen boolean not null,
            at timestamptz not null default clock_timestamp(), until timestamptz)""",
          """
          create table held_at_hit (
            no bigint not null, poller text not null, token bigint not null,
            handling boolean not null)""",
          """
          create table long_writes (
            no bigint primary key, seconds bigint not null,
            at timestamptz not null default clock_timestamp(), until timestamptz)""",
          """
          create table seen_delays (
            no bigint not null, poller text not null, primary key (no, poller))""");

  /** When a process was hit that had a lease, and when the next one was acquired. */
  private static final String HANDOVERS =
      """
      select h.at, (
        select min(l.acquired) from leases l where l.poller = g.poller and l.token > g.token)
        as taken
      from held_at_hit g join hits h using (no)""";

  /** Who has a lease, and runs a handler under it if it must. */
  private static final String HOLDERS =
      """
      from outbox_poller p left join handling h on h.poller = p.name and h.token = p.token
        and h.process = split_part(p.owner, '/', 1)
      where p.owner is not null and p.lease_until > clock_timestamp()
        and (h.token is not null or not ?)""";

  /** When a process was frozen in a handler, and which one, whose lease was taken meanwhile. */
  private static final String REPLACED =
      """
      select h.no, h.process, h.at, h.until, g.poller
      from held_at_hit g join hits h using (no)
      where h.frozen and g.handling and exists (
        select from leases l
        where l.poller = g.poller and l.token > g.token and l.acquired < h.until)""";

  private final DataSource direct;

  PollerLedger(DataSource direct) {
    this.direct = direct;
  }

  void create() throws SQLException {
    Database.transaction(direct, TABLES);
  }

  /** A process that has a lease, and whose handler runs under it, if it must; empty if none has. */
  String holder(boolean handling) throws SQLException {
    return Database.texts(
            direct,
            "select coalesce((select split_part(p.owner, '/', 1) "
                + HOLDERS
                + " order by random() limit 1), '')",
            handling)
        .get(0);
  }

  boolean holds(String process, boolean handling) throws SQLException {
    return Database.number(
            direct,
            "select count(*) " + HOLDERS + " and split_part(p.owner, '/', 1) = ?",
            handling,
            process)
        > 0;
  }

  /**
   * Notes the leases that a process has, which stands still, and under which of them a handler
   * runs; returns how many these are.
   */
  long hit(long no, String process, boolean frozen) throws SQLException {
    Database.update(
        direct, "insert into hits (no, process, frozen) values (?, ?, ?)", no, process, frozen);
    return Database.update(
        direct,
        "insert into held_at_hit (no, poller, token, handling) select ?, p.name, p.token, exists ("
            + "select from handling h where h.poller = p.name and h.process = ?"
            + " and h.token = p.token) from outbox_poller p"
            + " where split_part(p.owner, '/', 1) = ? and p.lease_until > clock_timestamp()",
        no,
        process,
        process);
  }

  void hitIsOver(long no) throws SQLException {
    Database.update(direct, "update hits set until = clock_timestamp() where no = ?", no);
  }

  void longWriteBegins(long no, Duration time) throws SQLException {
    Database.update(
        direct, "insert into long_writes (no, seconds) values (?, ?)", no, time.toSeconds());
  }

  void longWriteEnds(long no) throws SQLException {
    Database.update(direct, "update long_writes set until = clock_timestamp() where no = ?", no);
  }

  /** Notes that a poller shows that its rows wait for a transaction. */
  void seesDelay(long no, String poller) throws SQLException {
    Database.update(
        direct,
        "insert into seen_delays (no, poller) values (?, ?) on conflict do nothing",
        no,
        poller);
  }

  /** Sessions of handlers under a lease that another process has taken since. */
  long sessionsLeft() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from pg_stat_activity a cross join outbox_poller p"
            + " where case when a.application_name like 'poller % ' || p.name"
            + " then p.token > split_part(a.application_name, ' ', 3)::bigint else false end");
  }

  long written() throws SQLException {
    return Database.number(direct, "select count(*) from written");
  }

  long effects() throws SQLException {
    return Database.number(
        direct, "select (select count(*) from handled) + (select count(*) from counted)");
  }

  /** Versions that were committed after one of a greater number. */
  long committedOutOfOrder() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from (select change, max(change) over (order by at, change rows between"
            + " unbounded preceding and 1 preceding) as before from written) w"
            + " where w.change < w.before");
  }

  long told() throws SQLException {
    return Database.number(direct, "select count(*) from told");
  }

  /** Handlers of frozen processes whose lease another one took before these went on. */
  long handlersReplaced() throws SQLException {
    return Database.number(direct, "select count(*) from (" + REPLACED + ") r");
  }

  /**
   * Those of them that were not told that their lease was lost, unless their process was hit again
   * within a time. They may be told before it is noted that their process goes on.
   */
  long replacedAndNotTold(Duration limit) throws SQLException {
    return Database.number(
        direct,
        "select count(*) from ("
            + REPLACED
            + """
            ) r
            where not exists (
                select from told t
                where t.poller = r.poller and t.process = r.process and t.at >= r.at)
              and not exists (
                select from hits x
                where x.process = r.process and x.no > r.no
                  and x.at <= r.until + ? * interval '1 ms')""",
        limit.toMillis());
  }

  long longWrites() throws SQLException {
    return Database.number(direct, "select count(*) from long_writes where until is not null");
  }

  /** Rows whose latest version a poller has not handled; an earlier one it may have missed. */
  long lost() throws SQLException {
    return Database.number(
        direct,
        """
        select count(*)
        from unnest(?::text[]) p (poller)
          cross join (select id, max(revision) as revision from written group by id) w
        where not exists (
            select from handled h
            where h.poller = p.poller and h.id = w.id and h.revision = w.revision)
          and not exists (
            select from counted c
            where c.poller = p.poller and c.id = w.id and c.revision = w.revision)""",
        (Object) POLLERS.toArray(String[]::new));
  }

  /** Versions that were handled and that no transaction has committed. */
  long handledAfterRollback() throws SQLException {
    return Database.number(
        direct,
        """
        select count(*)
        from (select id, revision from handled union all select id, revision from counted) e
        where not exists (
          select from written w where w.id = e.id and w.revision = e.revision)""");
  }

  /** Second effects of a plain handler. */
  long deliveredTwice() throws SQLException {
    return Database.number(
        direct, "select count(*) - count(distinct (poller, id, revision)) from handled");
  }

  /** Of those the ones since whose first effect neither process was hit, nor shortly before. */
  long deliveredTwiceWithoutFault() throws SQLException {
    return Database.number(
        direct,
        """
        select count(*)
        from (
          select h.process, h.at, lag(h.process) over w as process_before,
            lag(h.at) over w as at_before
          from handled h
          window w as (partition by h.poller, h.id, h.revision order by h.at)) d
        where d.at_before is not null and not exists (
          select from hits x
          where x.process in (d.process, d.process_before) and x.at <= d.at
            and coalesce(x.until, 'infinity') + interval '5 s' >= d.at_before)""");
  }

  /** Second effects of a transactional handler, whatever was done. */
  long repeatedTransactions() throws SQLException {
    return Database.number(
        direct, "select count(*) - count(distinct (poller, id, revision)) from counted");
  }

  /**
   * Positions that were moved by another than who had the lease, and transactions with effects that
   * did not move the position under their token.
   */
  long lateCommits() throws SQLException {
    return Database.number(
        direct,
        """
        select (
          select count(*)
          from moves m
          where case when m.session like 'poller %'
            then split_part(m.session, ' ', 3) <> m.token::text
            else m.session is distinct from m.process end)
        + (
          select count(distinct c.tx)
          from counted c
          where not exists (
            select from moves m
            where m.tx = c.tx and m.poller = c.poller and m.token = c.token))""");
  }

  /** Leases of processes that were hit which nobody has taken within a time after that. */
  long handoversTooLate(Duration limit) throws SQLException {
    return Database.number(
        direct,
        "select count(*) from ("
            + HANDOVERS
            + ") o where coalesce(o.taken, 'infinity') > o.at + ? * interval '1 ms'",
        limit.toMillis());
  }

  Duration longestHandover() throws SQLException {
    return Duration.ofMillis(
        Database.number(
            direct,
            "select coalesce(max(extract(epoch from o.taken - o.at) * 1000), 0)::bigint from ("
                + HANDOVERS
                + ") o"));
  }

  /** Pairs of a long transaction and a poller that did not show that its rows waited for it. */
  long delaysNotVisible() throws SQLException {
    return Database.number(
        direct,
        """
        select count(*)
        from long_writes l cross join unnest(?::text[]) p (poller)
        where l.until is not null and not exists (
          select from seen_delays s where s.no = l.no and s.poller = p.poller)""",
        (Object) POLLERS.toArray(String[]::new));
  }
}
