package dev.outbox4j.examples.chaos;

import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import javax.sql.DataSource;

/**
 * What really happened, written where no fault of the framework can reach: the publisher's domain
 * rows, the handlers' effects, and by triggers every deletion of an outbox row, every counted
 * failure, every claim of a row whose lease was still alive, and every lease of a wrong length.
 */
final class Ledger {
  /** Kinds of messages, by what their handler does, and how many in ten thousand there are. */
  enum Kind {
    /** Fails twice. */
    FLAKY(200),
    /** Always fails: belongs in the dead letters. */
    POISON(100),
    /** Throws an Error once. */
    ERROR(50),
    /** Takes a while. */
    SLOW(100),
    /** Hangs once, until it is interrupted. */
    HANGING(2),
    /** Runs past its timeout once and ignores the interrupt. */
    STUBBORN(2),
    /** Is due later. */
    DELAYED(100),
    NORMAL(9_446);

    private final int share;

    Kind(int share) {
      this.share = share;
    }

    static Kind drawn(Random random) {
      int lot = random.nextInt(10_000);
      for (Kind kind : values()) {
        lot -= kind.share;
        if (lot < 0) {
          return kind;
        }
      }
      return NORMAL;
    }
  }

  private static final List<String> TABLES =
      List.of(
          "create table committed (no bigint primary key, kind text not null,"
              + " outbox_id bigint not null, due_at timestamptz not null)",
          "create table handled (no bigint not null, outbox_id bigint not null, token int not null,"
              + " owner text not null, lease_until timestamptz,"
              + " at timestamptz not null default clock_timestamp())",
          "create index on handled (no)",
          "create index on handled (at)",
          "create table deleted (outbox_id bigint not null, token int not null)",
          "create table retried (outbox_id bigint not null, token int not null,"
              + " delay interval not null, put_off boolean not null)",
          "create table stolen (outbox_id bigint not null)",
          "create table misdated (outbox_id bigint not null)",
          "create table killed (owner text not null)",
          """
          create function note_deletions() returns trigger language plpgsql as $$
          begin
            insert into public.deleted (outbox_id, token) select id, lease_token from gone;
            return null;
          end $$""",
          """
          create function note_theft() returns trigger language plpgsql as $$
          begin
            insert into public.stolen (outbox_id) values (old.id);
            return null;
          end $$""",
          """
          create function note_lease() returns trigger language plpgsql as $$
          begin
            insert into public.misdated (outbox_id) values (old.id);
            return null;
          end $$""",
          """
          create function note_retry() returns trigger language plpgsql as $$
          begin
            insert into public.retried (outbox_id, token, delay, put_off)
            values (old.id, old.lease_token, new.available_at - now(),
              new.last_error like 'the dead letters are broken%');
            return null;
          end $$""",
          "create trigger note_deletions after delete on outbox referencing old table as gone"
              + " for each statement execute function note_deletions()",
          "create trigger note_retry after update on outbox for each row"
              + " when (new.attempts_count > old.attempts_count)"
              + " execute function note_retry()",
          "create trigger note_theft after update on outbox for each row"
              + " when (new.lease_token <> old.lease_token and old.lease_until > now())"
              + " execute function note_theft()",
          """
          create trigger note_lease after update on outbox for each row
            when (new.lease_until is distinct from old.lease_until
              and abs(extract(epoch from new.lease_until - now()) - %d) > 1)
            execute function note_lease()""");

  private static final String LEASE_OVER =
      "token <> earlier_token and (earlier_lease is null or at >= earlier_lease)";

  private static final String REPORTED_FAILURE =
      "exists (select from retried r where r.outbox_id = x.outbox_id and r.token = x.earlier_token)";

  private final DataSource direct;

  /** Needs a source that waits for long statements. */
  Ledger(DataSource direct) {
    this.direct = direct;
  }

  void create(Duration lease) throws SQLException {
    for (String statement : TABLES) {
      Database.update(direct, statement.replace("%d", Long.toString(lease.toSeconds())));
    }
  }

  void killed(String owner) throws SQLException {
    Database.update(direct, "insert into killed values (?)", owner);
  }

  long committed() throws SQLException {
    return Database.number(direct, "select count(*) from committed");
  }

  /** How many were committed of each kind. */
  Map<String, Long> kinds() throws SQLException {
    Map<String, Long> kinds = new TreeMap<>();
    for (String line :
        Database.texts(
            direct, "select kind || ' ' || count(*) from committed group by kind order by kind")) {
      int gap = line.indexOf(' ');
      kinds.put(
          line.substring(0, gap).toLowerCase(Locale.ROOT), Long.valueOf(line.substring(gap + 1)));
    }
    return kinds;
  }

  long deadLetters() throws SQLException {
    return Database.number(direct, "select count(*) from outbox_dlq");
  }

  /** Rows that are neither acked nor dead-lettered. */
  long unsettled() throws SQLException {
    return Database.number(direct, "select count(*) from outbox");
  }

  long lost() throws SQLException {
    return Database.number(
        direct,
        """
        select count(*) from committed c
        where not exists (select from handled h where h.no = c.no)
          and not exists (select from outbox_dlq d where d.original_id = c.outbox_id)""");
  }

  long handledAfterRollback() throws SQLException {
    return Database.number(
        direct,
        "select count(distinct h.no) from handled h"
            + " where not exists (select from committed c where c.no = h.no)");
  }

  /** Rows deleted under a token whose handler never ended well, and that are no dead letters. */
  long staleAcks() throws SQLException {
    return Database.number(
            direct,
            """
            select count(*) from deleted d
            where not exists (
                select from handled h where h.outbox_id = d.outbox_id and h.token = d.token)
              and not exists (select from outbox_dlq q where q.original_id = d.outbox_id)""")
        + Database.number(direct, "select count(*) from stolen");
  }

  long poisonNotDeadLettered() throws SQLException {
    return Database.number(
        direct,
        """
        select count(*) from committed c where c.kind = 'POISON'
          and not exists (
            select from outbox_dlq d
            where d.original_id = c.outbox_id and d.failure_reason = 'retry_terminal')""");
  }

  long healthyDeadLettered() throws SQLException {
    return Database.number(
        direct,
        """
        select count(*) from outbox_dlq d join committed c on c.outbox_id = d.original_id
        where c.kind <> 'POISON'""");
  }

  long early() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from handled h join committed c using (no)"
            + " where h.at < c.due_at - interval '1 second'");
  }

  /** Leases, and delays of retries, that end more than a second from when they should. */
  long misdated(Duration retryDelay) throws SQLException {
    return Database.number(direct, "select count(*) from misdated")
        + Database.number(
            direct,
            "select count(*) from retried"
                + " where not put_off and abs(extract(epoch from delay) - ?) > 1",
            retryDelay.toMillis() / 1e3);
  }

  /** How many effects a second there were between two instants. */
  double handledPerSecond(String from, String to) throws SQLException {
    return Database.number(
            direct,
            "select (1000 * count(*) / extract(epoch from ?::timestamptz - ?::timestamptz))::bigint"
                + " from handled where at >= ?::timestamptz and at < ?::timestamptz",
            to,
            from,
            from,
            to)
        / 1e3;
  }

  long duplicates() throws SQLException {
    return Database.number(
        direct,
        "select coalesce(sum(n - 1), 0) from (select count(*) n from handled group by no) x");
  }

  /** Second effects after the lease of the first one, whose process was killed, was over. */
  long duplicatesAfterKill() throws SQLException {
    return duplicatesWhere(LEASE_OVER + " and earlier_owner in (select owner from killed)");
  }

  /**
   * Second effects after the lease of the first one was over, or lost before the effect was
   * written: its process was frozen, cut off or could not write its ack.
   */
  long duplicatesAfterLease() throws SQLException {
    return duplicatesWhere(LEASE_OVER + " and earlier_owner not in (select owner from killed)");
  }

  /** Second effects after the first handler reported a failure although its effect was there. */
  long duplicatesAfterUnheardEffect() throws SQLException {
    return duplicatesWhere("token <> earlier_token and at < earlier_lease and " + REPORTED_FAILURE);
  }

  /**
   * Second effects that no rule allows: under the same token as the first, or before the first
   * one's lease, as the server had it when the effect was written, was over.
   */
  long unexplainedDuplicates() throws SQLException {
    return duplicatesWhere(
        "token = earlier_token or (at < earlier_lease and not " + REPORTED_FAILURE + ")");
  }

  private long duplicatesWhere(String condition) throws SQLException {
    return Database.number(
        direct,
        """
        select count(*) from (
          select outbox_id, token, at, lag(token) over w as earlier_token,
            lag(lease_until) over w as earlier_lease, lag(owner) over w as earlier_owner
          from handled where no in (select no from handled group by no having count(*) > 1)
          window w as (partition by no order by at)) x
        where earlier_token is not null and ("""
            + condition
            + ")");
  }

  /** Messages that have two effects, both since the instant. */
  long handledTwiceSince(String instant) throws SQLException {
    return Database.number(
        direct,
        """
        select count(*) from handled h
        where h.at >= ?::timestamptz and exists (
          select from handled e where e.no = h.no and e.at >= ?::timestamptz and e.at < h.at)""",
        instant,
        instant);
  }
}
