package dev.outbox4j.examples.chaos;

import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import javax.sql.DataSource;

/**
 * What has become of instances of monitors, by the server: triggers write down each commit of a
 * check and each end, so it does not rest on what the library says of itself.
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
          // instances whose message a process had under its lease when it was hit
          "create table hits (id bigint not null, at timestamptz not null default clock_timestamp())",
          """
          create function note_monitor() returns trigger language plpgsql as $$
          begin
            if new.iteration <> old.iteration then
              insert into commits (id, execution, iteration, said, wait_ms, due)
              values (new.id::bigint, new.execution, new.iteration,
                coalesce(new.output ->> 'check', new.state ->> 'check')::bigint,
                case when new.ended_at is null then (new.state ->> 'wait')::bigint end, old.due_at);
            end if;
            if new.ended_at is not null and old.ended_at is null then
              insert into ends (id, execution, iteration, status, outcome, expires)
              values (new.id::bigint, new.execution, new.iteration, new.status, new.outcome,
                new.expires_at);
            end if;
            return null;
          end $$""",
          """
          create trigger note_monitor after update on outbox_monitor
            for each row execute function note_monitor()""");

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
            "create index on ends (id)",
            "create index on hits (id)",
            "analyze"));
  }

  /** Notes what a process has under its lease, and returns how much that is. */
  long hit(String process) throws SQLException {
    return Database.update(
        direct,
        "insert into hits (id) select (o.headers ->> 'monitor-id')::bigint from outbox o"
            + " where split_part(o.leased_by, '/', 1) = ? and o.lease_until > clock_timestamp()"
            + " and o.queue = 'monitors.proof'",
        process);
  }

  long started() throws SQLException {
    return Database.number(direct, "select count(*) from outbox_monitor");
  }

  long alive() throws SQLException {
    return Database.number(direct, "select count(*) from outbox_monitor where ended_at is null");
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

  /** Checks that were left out: of each instance they are counted from 1 without a gap. */
  long leftOut() throws SQLException {
    return Database.number(
        direct,
        """
        select coalesce(sum(m.iteration - c.count), 0)
        from outbox_monitor m
        cross join lateral (
          select count(distinct c.iteration)
          from commits c
          where c.id = m.id::bigint and c.execution = m.execution
            and c.iteration between 1 and m.iteration) c""");
  }

  /** Commits of another check than the one whose result they hold. */
  long notOfTheirCheck() throws SQLException {
    return Database.number(
        direct, "select count(*) from commits where said is distinct from iteration");
  }

  /** Checks that were committed before the one before had said to look again. */
  long checkedEarly() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from commits c join commits b"
            + " on b.id = c.id and b.execution = c.execution and b.iteration = c.iteration - 1"
            + " where c.at < b.at + (b.wait_ms - 50) * interval '1 ms'");
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
            + "select from outbox o where o.queue = 'alerts' and o.headers ->> 'of' = e.id::text)");
  }

  /** Alerts beyond one for each condition that was met. */
  long toldTooOften() throws SQLException {
    return Database.number(
        direct,
        "select count(*) - (select count(distinct o.headers ->> 'of') from outbox o join ends e"
            + " on e.id::text = o.headers ->> 'of' and e.outcome = 'condition_met'"
            + " where o.queue = 'alerts') from outbox o where o.queue = 'alerts'");
  }

  /** The longest time from the expiry to the end of an instance, of those that were hit, or not. */
  Duration longestOvershoot(boolean hit) throws SQLException {
    return millis(
        "select coalesce(max(extract(epoch from e.at - e.expires) * 1000), 0)::bigint from ends e"
            + " where e.outcome = 'expired' and "
            + isHit(hit, "e.expires"));
  }

  /** The longest time from when a check was due to its commit, of those that were hit, or not. */
  Duration longestDelay(boolean hit) throws SQLException {
    return millis(
        "select coalesce(max(extract(epoch from e.at - e.due) * 1000), 0)::bigint from commits e"
            + " where "
            + isHit(hit, "e.due"));
  }

  /** Of all checks; those that failed once are among them. */
  Duration delayOf(double share) throws SQLException {
    return millis(
        "select coalesce(percentile_cont("
            + share
            + ") within group (order by extract(epoch from c.at - c.due) * 1000), 0)::bigint"
            + " from commits c");
  }

  /** One may wait for as long as a lease after its hit. */
  private static String isHit(boolean hit, String due) {
    return (hit ? "" : "not ")
        + "exists (select from hits h where h.id = e.id and h.at between "
        + due
        + " - interval '20 s' and e.at)";
  }

  private Duration millis(String sql) throws SQLException {
    return Duration.ofMillis(Database.number(direct, sql));
  }
}
