package dev.outbox4j.examples.chaos;

import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * What has become of instances of monitors, by the server: a trigger writes down each start, each
 * commit of a check and each end, so it does not rest on what the library says of itself. Beside it
 * is what {@link MonitorPeople} did, and what they were answered.
 */
final class MonitorLedger {
  private static final List<String> TABLES =
      List.of(
          """
          create table commits (
            id bigint not null, execution bigint not null, iteration bigint not null,
            -- which check its state is of, and how long that has put the next one off
            said bigint, wait_ms bigint,
            due timestamptz, at timestamptz not null default clock_timestamp())""",
          """
          create table ends (
            id bigint not null, execution bigint not null, iteration bigint not null,
            status text not null, outcome text, expires timestamptz,
            at timestamptz not null default clock_timestamp())""",
          // executions
          """
          create table starts (
            id bigint not null, execution bigint not null,
            at timestamptz not null default clock_timestamp())""",
          // attempts at a check that failed
          """
          create table failures (
            id bigint not null, execution bigint not null,
            at timestamptz not null default clock_timestamp())""",
          // what people did, by the clock of their process, which is the server's
          """
          create table deeds (
            id bigint not null, verb text not null, said text not null, event bigint,
            began timestamptz not null, ended timestamptz not null)""",
          // instances whose message a process had under its lease when it was killed, or else
          // frozen
          "create table hits (id bigint not null, killed boolean not null, at timestamptz not null)",
          "create table stops (process text not null, killed boolean not null,"
              + " at timestamptz not null)",
          // by the clock of their process; by what a stop of that makes of them
          """
          create table long_checks (
            process text not null, id bigint not null, began timestamptz not null,
            ended timestamptz, killed boolean not null default false)""",
          """
          create function note_monitor() returns trigger language plpgsql as $$
          begin
            if tg_op = 'INSERT' or new.execution <> old.execution then
              insert into starts (id, execution) values (new.id::bigint, new.execution);
              return null;
            end if;
            if new.attempts_count > old.attempts_count then
              insert into failures (id, execution) values (new.id::bigint, new.execution);
            end if;
            if new.ended_at is not null and old.ended_at is null then
              insert into ends (id, execution, iteration, status, outcome, expires)
              values (new.id::bigint, new.execution, new.iteration, new.status, new.outcome,
                new.expires_at);
            end if;
            return null;
          end $$""",
          """
          create trigger note_monitor after insert or update on outbox_monitor
            for each row execute function note_monitor()""",
          // before, since the other is called at the end of a statement that writes many
          """
          create function note_commit() returns trigger language plpgsql as $$
          begin
            insert into commits (id, execution, iteration, said, wait_ms, due)
            values (new.id::bigint, new.execution, new.iteration,
              coalesce(new.output ->> 'check', new.state ->> 'check')::bigint,
              case when new.ended_at is null then (new.state ->> 'wait')::bigint end, old.due_at);
            return new;
          end $$""",
          """
          create trigger note_commit before update on outbox_monitor
            for each row when (new.iteration <> old.iteration and new.execution = old.execution)
            execute function note_commit()""");

  private static final String MICROS = "timestamptz 'epoch' + ? * interval '1 microsecond'";

  /**
   * The end of the check in which an instance has expired, if it was in one; such a check may begin
   * a moment after the expiry, since its node has read the instance before.
   */
  private static final String IN_CHECK =
      """
      cross join lateral (
        select max(c.ended) as ended, bool_or(c.killed) as killed
        from long_checks c
        where c.id = e.id and c.began <= e.expires + interval '100 ms' and c.ended > e.expires) c
      """;

  /** Of instances that people do nothing to. */
  private static final String LEFT_ALONE = ".id % " + MonitorPeople.ONE_OF_SO_MANY + " <> 0";

  /** The execution to which a deed was done, with its end. */
  private static final String TO_EXECUTION =
      """
      cross join lateral (
        select s.execution
        from starts s
        where s.id = d.id and s.at < d.began
        order by s.at desc
        limit 1) s
      left join lateral (
        select e.at, e.status
        from ends e
        where e.id = d.id and e.execution = s.execution
        order by e.at
        limit 1) e on true
      """;

  private static final String EARLY =
      """
      from commits c
      join commits b
        on b.id = c.id and b.execution = c.execution and b.iteration = c.iteration - 1
      left join commits a
        on a.id = b.id and a.execution = b.execution and a.iteration = b.iteration - 1
      where c.at < b.at + (b.wait_ms - 50) * interval '1 ms' and not exists (
        select
        from deeds d
        where d.id = c.id and d.verb in ('wake', 'raise') and d.began <= c.at
          and d.ended >= coalesce(a.at, '-infinity'))
      """;

  private static final String IN_VAIN =
      """
      from deeds d
      cross join (select ? * interval '1 ms' as within) w
      where d.verb = 'wake' and d.said = 'DONE'
        and not exists (
          select
          from commits c
          where c.id = d.id and c.at >= d.began and c.at < d.ended + w.within)
        and not exists (
          select
          from failures f
          where f.id = d.id and f.at >= d.began and f.at < d.ended + w.within)
        and not exists (
          select
          from ends e
          where e.id = d.id and e.at >= d.began and e.at < d.ended + w.within)
        and not exists (
          select
          from deeds n
          where n.id = d.id and n.verb = 'suspend' and n.began >= d.ended
            and n.began < d.ended + w.within)
      """;

  private final DataSource direct;

  MonitorLedger(DataSource direct) {
    this.direct = direct;
  }

  void create() throws SQLException {
    Database.transaction(direct, TABLES);
  }

  /** Before the sums. */
  void index() throws SQLException {
    Database.transaction(
        direct,
        List.of(
            "create index on commits (id, execution, iteration)",
            "create index on commits (id, at)",
            "create index on ends (id)",
            "create index on starts (id, at)",
            "create index on failures (id, at)",
            "create index on deeds (id, began)",
            "create index on hits (id)",
            "create index on long_checks (id)",
            "analyze"));
  }

  /** Messages that a process has under its lease. */
  private static final String IN_HAND =
      " from outbox o where split_part(o.leased_by, '/', 1) = ?"
          + " and o.lease_until > clock_timestamp() and o.queue = 'monitors.proof'";

  /** {@return how many messages a process has under its lease} */
  long inHandOf(String process) throws SQLException {
    return Database.number(direct, "select count(*)" + IN_HAND, process);
  }

  /** {@return how many of them are of instances that have expired, in whose checks it may be} */
  long inOvertimeOf(String process) throws SQLException {
    return Database.number(
        direct,
        "select count(*)"
            + IN_HAND
            + " and exists (select from outbox_monitor m where m.message_id = o.id"
            + " and m.ended_at is null and m.overtime_at > m.expires_at)",
        process);
  }

  /**
   * Notes what a process has under its lease that stands still, and returns how much that is.
   *
   * @param process its name
   * @param killed whether it is killed now, or goes on later
   * @param at since when it stands still, in microseconds of the epoch
   */
  long hit(String process, boolean killed, long at) throws SQLException {
    Database.update(direct, "insert into stops values (?, ?, " + MICROS + ")", process, killed, at);
    return Database.update(
        direct,
        "insert into hits select (o.headers ->> 'monitor-id')::bigint, ?, " + MICROS + IN_HAND,
        killed,
        at,
        process);
  }

  /** Notes instances whose messages were locked. */
  void hit(List<Long> ids) throws SQLException {
    Database.update(
        direct,
        "insert into hits select unnest(?::bigint[]), false, clock_timestamp()",
        (Object) ids.toArray(Long[]::new));
  }

  /** Takes over when checks ended; of those of a process that was stopped they ended then. */
  void take(LongChecks checks) throws SQLException {
    checks.write(direct);
    Database.transaction(
        direct,
        List.of(
            """
            update long_checks c
            set ended = s.at, killed = s.killed
            from (
              select c.ctid as place, s.*
              from long_checks c
              cross join lateral (
                select s.at, s.killed
                from stops s
                where s.process = c.process and s.at between c.began and coalesce(c.ended, 'infinity')
                order by s.at
                limit 1) s) s
            where c.ctid = s.place""",
            "delete from long_checks where ended is null"));
  }

  /** Notes what people did; times are in microseconds of the epoch. */
  void deed(
      DataSource pool,
      long id,
      MonitorPeople.Verb verb,
      String said,
      @Nullable Long event,
      long began,
      long ended)
      throws SQLException {
    Database.update(
        pool,
        "insert into deeds values (?, ?, ?, ?::bigint, " + MICROS + ", " + MICROS + ")",
        id,
        verb.label(),
        said,
        event,
        began,
        ended);
  }

  /** Instances that are suspended. */
  List<Long> suspended() throws SQLException {
    return Database.texts(direct, "select id from outbox_monitor where status = 'suspended'")
        .stream()
        .map(Long::valueOf)
        .toList();
  }

  /** How often people did something and were answered so. */
  long deeds(MonitorPeople.Verb verb, String said) throws SQLException {
    return Database.number(
        direct, "select count(*) from deeds where verb = ? and said = ?", verb.label(), said);
  }

  long deeds(String said) throws SQLException {
    return Database.number(direct, "select count(*) from deeds where said = ?", said);
  }

  long started() throws SQLException {
    return Database.number(direct, "select count(*) from outbox_monitor");
  }

  long alive() throws SQLException {
    return Database.number(direct, "select count(*) from outbox_monitor where ended_at is null");
  }

  /** Instances that wait for their first check. */
  long notChecked() throws SQLException {
    return Database.number(
        direct, "select count(*) from outbox_monitor where ended_at is null and iteration = 0");
  }

  long commits() throws SQLException {
    return Database.number(direct, "select count(*) from commits");
  }

  long ended(String status, String outcome) throws SQLException {
    return Database.number(
        direct,
        "select count(*) from ends where status = ? and coalesce(outcome, '') = ?",
        status,
        outcome);
  }

  /** Commits of a check that had been committed before. */
  long committedTwice() throws SQLException {
    return Database.number(
        direct, "select count(*) - count(distinct (id, execution, iteration)) from commits");
  }

  /** Checks that were left out: of each execution they are counted from 1 without a gap. */
  long leftOut() throws SQLException {
    return Database.number(
        direct,
        """
        select coalesce(sum(m.iteration - c.count), 0)
        from (
          select id::bigint, execution, iteration from outbox_monitor
          union
          select id, execution, iteration from ends) m
        cross join lateral (
          select count(distinct c.iteration)
          from commits c
          where c.id = m.id and c.execution = m.execution
            and c.iteration between 1 and m.iteration) c""");
  }

  /** Commits of another check than the one whose result they hold. */
  long notOfTheirCheck() throws SQLException {
    return Database.number(
        direct, "select count(*) from commits where said is distinct from iteration");
  }

  /**
   * Checks that were committed before the one before had said to look again, and nobody had asked
   * for it since the one before that.
   */
  long checkedEarly() throws SQLException {
    return Database.number(direct, "select count(*) " + EARLY);
  }

  /** What is on record of some that were checked early, a line each. */
  List<String> recordsOfTheEarly() throws SQLException {
    return records("select c.id " + EARLY);
  }

  long expiredEarly() throws SQLException {
    return Database.number(
        direct, "select count(*) from ends where outcome = 'expired' and at < expires");
  }

  long endedTwice() throws SQLException {
    return Database.number(direct, "select count(*) - count(distinct (id, execution)) from ends");
  }

  /** Commits of a check behind the end of its instance. */
  long committedAfterTheEnd() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from commits c join ends e using (id, execution)"
            + " where c.iteration > e.iteration or c.at > e.at");
  }

  /** Conditions that were met and of which nobody was told. */
  long untold() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from ends e where e.outcome = 'condition_met' and not exists ("
            + "select from outbox o where o.queue = 'alerts'"
            + " and o.headers ->> 'of' = e.id || '/' || e.execution)");
  }

  /** Alerts beyond one for each condition that was met. */
  long toldTooOften() throws SQLException {
    return Database.number(
        direct,
        "select count(*) - (select count(distinct o.headers ->> 'of') from outbox o join ends e"
            + " on e.id || '/' || e.execution = o.headers ->> 'of' and e.outcome = 'condition_met'"
            + " where o.queue = 'alerts') from outbox o where o.queue = 'alerts'");
  }

  /** Events that more than one committed check was given. */
  long eventsSeenTwice() throws SQLException {
    return Database.number(
        direct,
        "select count(*) - count(distinct headers ->> 'event') from outbox where queue = 'seen'");
  }

  /** Events that a check was given though nobody was told that they were raised. */
  long eventsOfNobody() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from outbox o where o.queue = 'seen' and not exists (select from deeds d"
            + " where d.event::text = o.headers ->> 'event' and d.said in ('DONE', 'LOST'))");
  }

  long eventsSeen() throws SQLException {
    return Database.number(direct, "select count(*) from outbox where queue = 'seen'");
  }

  /**
   * Events that no check was given, though two were committed since: the second of them began when
   * the event was there.
   */
  long eventsUnseen() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from deeds d "
            + TO_EXECUTION
            + """
            where d.verb = 'raise' and d.said = 'DONE'
              and not exists (
                select
                from outbox o
                where o.queue = 'seen' and o.headers ->> 'event' = d.event::text)
              and (
                select count(*)
                from commits c
                where c.id = d.id and c.execution = s.execution and c.at > d.ended) >= 2""");
  }

  /** Suspensions in which more checks were committed than the one that ran when it began. */
  long checkedWhileSuspended() throws SQLException {
    return Database.number(
        direct,
        """
        select count(*)
        from deeds d
        cross join lateral (
          select coalesce(min(n.began), 'infinity') as began
          from deeds n
          where n.id = d.id and n.began >= d.ended
            and n.verb in ('resume', 'terminate', 'restart')) n
        where d.verb = 'suspend' and d.said = 'DONE' and (
          select count(*)
          from commits c
          where c.id = d.id and c.at > d.ended and c.at < n.began) >= 2""");
  }

  /**
   * Wakes that were promised and followed by no check within a time, whether it was committed or
   * its attempt failed, nor by an end.
   */
  long wakesInVain(Duration within) throws SQLException {
    return Database.number(direct, "select count(*) " + IN_VAIN, within.toMillis());
  }

  /** What is on record of some that were woken in vain, a line each. */
  List<String> recordsOfTheWokenInVain(Duration within) throws SQLException {
    return records("select d.id " + IN_VAIN, within.toMillis());
  }

  /** All that is on record of three instances, by time. */
  private List<String> records(String ids, Object... parameters) throws SQLException {
    return Database.texts(
        direct,
        """
        with of as (select distinct i.id from (%s) i limit 3)
        select concat_ws(' ', r.id, to_char(r.at, 'HH24:MI:SS.US'), r.what)
        from (
          select f.id, f.at, format('failed attempt of %%s', f.execution) as what from failures f
          union all
          select c.id, c.at, format('check %%s of %%s, due %%s, next in %%s ms', c.iteration,
            c.execution, to_char(c.due, 'HH24:MI:SS.US'), c.wait_ms) as what
          from commits c
          union all
          select e.id, e.at, format('end of %%s: %%s %%s', e.execution, e.status, e.outcome) from ends e
          union all
          select s.id, s.at, format('start of %%s', s.execution) from starts s
          union all
          select d.id, d.began, format('%%s until %%s: %%s', d.verb,
            to_char(d.ended, 'HH24:MI:SS.US'), d.said)
          from deeds d
          union all
          select h.id, h.at, 'its process was hit' from hits h) r
        join of using (id)
        order by r.id, r.at"""
            .formatted(ids),
        parameters);
  }

  /**
   * Answers that what became of the instance contradicts. Who is answered as of an instance that is
   * alive, or that has ended, was so at some moment of the call.
   */
  long answersThatWereWrong() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from deeds d "
            + TO_EXECUTION
            + """
            where case
              when d.said = 'UNKNOWN' then true
              when d.said = 'FINISHED' then e.at is null or e.at > d.ended
              when d.said = 'DONE' and d.verb = 'terminate' then
                e.at is null or e.status <> 'terminated' or e.at not between d.began and d.ended
              when d.said = 'DONE' and d.verb = 'restart' then
                e.at is null or e.at > d.ended or not exists (
                  select
                  from starts n
                  where n.id = d.id and n.at between d.began and d.ended)
              when d.said in ('DONE', 'UNCHANGED', 'ALIVE', 'FULL') then e.at < d.began
              else false end""");
  }

  /** Answers of an instance that is suspended when it is not, and of one that is not when it is. */
  long answersOfAnotherState() throws SQLException {
    return Database.number(
        direct,
        """
        select count(*)
        from deeds d
        left join lateral (
          select b.verb = 'suspend' as suspended, b.said = 'LOST' as unknown
          from deeds b
          where b.id = d.id and b.ended <= d.began and b.verb in ('suspend', 'resume', 'restart')
            and b.said in ('DONE', 'LOST')
          order by b.ended desc
          limit 1) b on true
        where d.verb in ('suspend', 'resume', 'wake') and d.said in ('DONE', 'UNCHANGED')
          and b.unknown is not true
          and coalesce(b.suspended, false)
            <> ((d.said = 'UNCHANGED') = (d.verb in ('suspend', 'wake')))""");
  }

  /** What had become of the process that had an instance's message. */
  enum Hit {
    NONE,
    KILLED,
    FROZEN
  }

  /** Instances that have expired while a check went on. */
  long expiredInACheck() throws SQLException {
    return Database.number(
        direct, "select count(c.ended) from ends e " + IN_CHECK + " where e.outcome = 'expired'");
  }

  /** The longest time from an expiry to the begin of a check, which was read of before. */
  Duration longestBeginBehindTheExpiry() throws SQLException {
    return millis(
        "select coalesce(max(extract(epoch from c.began - e.expires) * 1000), 0)::bigint"
            + " from ends e join long_checks c on c.id = e.id and c.began > e.expires"
            + " and c.began < e.at where e.outcome = 'expired'");
  }

  /** Those of them whose process was killed then. */
  long expiredInACheckOfTheKilled() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from ends e " + IN_CHECK + " where e.outcome = 'expired' and c.killed");
  }

  /** Those that were ended while a process still ran their check, since that was late to say so. */
  long cutOff() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from ends e "
            + IN_CHECK
            + " where e.outcome = 'expired' and e.at < c.ended");
  }

  /**
   * The longest time to the end of an instance to which people do something, from its expiry, from
   * the end of its check, or from when they have resumed it after that.
   */
  Duration longestOvershootOfThoseOfPeople() throws SQLException {
    return millis(
        "select coalesce(max(extract(epoch from e.at - greatest(e.expires, c.ended, r.at)) * 1000),"
            + " 0)::bigint from ends e "
            + IN_CHECK
            + " cross join lateral (select max(d.ended) as at from deeds d"
            + " where d.id = e.id and d.verb = 'resume' and d.began <= e.at) r"
            + " where e.outcome = 'expired' and not e"
            + LEFT_ALONE);
  }

  /** The longest time to the end of an instance from its expiry, or from the end of its check. */
  Duration longestOvershoot(Hit hit) throws SQLException {
    return millis(
        "select coalesce(max(extract(epoch from e.at - greatest(e.expires, c.ended)) * 1000), 0)"
            + "::bigint "
            + expired(hit));
  }

  /** What is on record of three instances that were ended latest, a line each. */
  List<String> recordsOfTheLate(Hit hit) throws SQLException {
    return records(
        "select e.id from (select e.id, e.at - greatest(e.expires, c.ended) as late "
            + expired(hit)
            + ") e order by e.late desc limit 3");
  }

  private static String expired(Hit hit) {
    String frozen = isHit("e.expires", "and not h.killed");
    String killed = "not " + frozen + " and " + isHit("e.expires", "");
    return "from ends e "
        + IN_CHECK
        + " where e.outcome = 'expired' and e"
        + LEFT_ALONE
        + " and "
        + switch (hit) {
          case NONE -> "not " + isHit("e.expires", "");
          case KILLED -> killed;
          case FROZEN -> frozen;
        };
  }

  /** The longest time from when a check was due to its commit, of those that were hit, or not. */
  Duration longestDelay(boolean hit) throws SQLException {
    return millis(
        "select coalesce(max(extract(epoch from e.at - e.due) * 1000), 0)::bigint from commits e"
            + " where e"
            + LEFT_ALONE
            + " and "
            + (hit ? "" : "not ")
            + isHit("e.due", ""));
  }

  /** Of all checks; those that failed once are among them. */
  Duration delayOf(double share) throws SQLException {
    return millis(
        "select coalesce(percentile_cont("
            + share
            + ") within group (order by extract(epoch from c.at - c.due) * 1000), 0)::bigint"
            + " from commits c where c"
            + LEFT_ALONE);
  }

  /** One may wait for as long as a lease after its hit. */
  private static String isHit(String due, String condition) {
    return "exists (select from hits h where h.id = e.id and h.at between "
        + due
        + " - interval '20 s' and e.at "
        + condition
        + ")";
  }

  private Duration millis(String sql) throws SQLException {
    return Duration.ofMillis(Database.number(direct, sql));
  }
}
