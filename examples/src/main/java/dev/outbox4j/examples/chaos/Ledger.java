package dev.outbox4j.examples.chaos;

import java.sql.SQLException;
import java.util.List;
import javax.sql.DataSource;

/**
 * What really happened, written where no fault of the framework can reach: the publisher's domain
 * rows, the handlers' effects, and by triggers every deletion of an outbox row and every claim of a
 * row whose lease was still alive.
 */
final class Ledger {
  /** Kinds of messages, by what their handler does. */
  enum Kind {
    NORMAL,
    /** Fails twice. */
    FLAKY,
    /** Always fails: belongs in the dead letters. */
    POISON,
    /** Throws an Error once. */
    ERROR,
    /** Takes a while. */
    SLOW,
    /** Runs past its timeout once and ignores the interrupt. */
    STUBBORN,
    /** Is due later. */
    DELAYED
  }

  private static final List<String> TABLES =
      List.of(
          "create table committed (no bigint primary key, kind text not null, outbox_id bigint not null,"
              + " due_at timestamptz not null, at timestamptz not null default clock_timestamp())",
          "create table handled (no bigint not null, outbox_id bigint not null, token int not null,"
              + " owner text not null, lease_until timestamptz,"
              + " at timestamptz not null default clock_timestamp())",
          "create index on handled (no)",
          "create index on handled (at)",
          "create table deleted (outbox_id bigint not null, token int not null,"
              + " at timestamptz not null default clock_timestamp())",
          "create table retried (outbox_id bigint not null, token int not null)",
          "create index on retried (outbox_id)",
          "create index on deleted (outbox_id)",
          "create table stolen (outbox_id bigint not null, lease_until timestamptz,"
              + " at timestamptz not null default clock_timestamp())",
          """
          create function note_deletion() returns trigger language plpgsql as $$
          begin
            insert into public.deleted (outbox_id, token) values (old.id, old.lease_token);
            return null;
          end $$""",
          """
          create function note_theft() returns trigger language plpgsql as $$
          begin
            insert into public.stolen (outbox_id, lease_until) values (old.id, old.lease_until);
            return null;
          end $$""",
          """
          create function note_retry() returns trigger language plpgsql as $$
          begin
            insert into public.retried (outbox_id, token) values (old.id, old.lease_token);
            return null;
          end $$""",
          "create trigger note_retry after update on outbox for each row"
              + " when (new.attempts_count > old.attempts_count)"
              + " execute function note_retry()",
          "create trigger note_deletion after delete on outbox"
              + " for each row execute function note_deletion()",
          "create trigger note_theft after update on outbox for each row"
              + " when (new.lease_token <> old.lease_token and old.lease_until > now())"
              + " execute function note_theft()");

  private static final String REPORTED_FAILURE =
      "exists (select from retried r where r.outbox_id = x.outbox_id and r.token = x.earlier_token)";

  private final DataSource direct;

  Ledger(DataSource direct) {
    this.direct = direct;
  }

  void create() throws SQLException {
    for (String statement : TABLES) {
      Database.update(direct, statement);
    }
  }

  long committed() throws SQLException {
    return Database.number(direct, "select count(*) from committed");
  }

  /** Messages whose effect is there, or that are dead letters as they should be. */
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

  long duplicates() throws SQLException {
    return Database.number(
        direct,
        "select coalesce(sum(n - 1), 0) from (select count(*) n from handled group by no) x");
  }

  /** Second effects after the first one's lease was over, or lost before the effect was written. */
  long duplicatesAfterLease() throws SQLException {
    return duplicatesWhere(
        "token <> earlier_token and (earlier_lease is null or at >= earlier_lease)");
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
            lag(lease_until) over w as earlier_lease
          from handled where no in (select no from handled group by no having count(*) > 1)
          window w as (partition by no order by at)) x
        where earlier_token is not null and ("""
            + condition
            + ")");
  }

  long duplicatesSince(String instant) throws SQLException {
    return Database.number(
        direct,
        """
        select count(*) from (
          select at, row_number() over (partition by no order by at) as nth from handled) x
        where nth > 1 and at >= ?::timestamptz""",
        instant);
  }
}
