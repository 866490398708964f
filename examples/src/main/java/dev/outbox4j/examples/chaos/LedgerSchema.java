package dev.outbox4j.examples.chaos;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;

/**
 * The ledger's tables and its triggers on the outbox. A writer is known by its application name,
 * which a transaction pooler hands on, and the owner of a lease by the same name in {@code
 * leased_by}.
 */
final class LedgerSchema {
  /** In the server's data directory: by how much its clock is off, as in {@code +40s}. */
  static final String SERVER_CLOCK = "server-clock";

  /** A setting of a handler's transaction: the subscriber's name. */
  static final String WRITER = "chaos.writer";

  /** Above the numbers of all publishers. */
  static final long FIRST_LINK = 1_000_000_000_000_000L;

  static final int COUNTERS = 256;

  /** The time, whatever the server's clock was turned to. */
  private static final List<String> CLOCK =
      List.of(
          "create function clock_offset() returns interval language sql as $$ select coalesce("
              + "nullif(pg_read_file('%s', 0, 20, true), ''), '0')::interval $$"
                  .formatted(SERVER_CLOCK),
          "create function true_now() returns timestamptz language sql as"
              + " $$ select clock_timestamp() - public.clock_offset() $$");

  private static final List<String> TABLES =
      List.of(
          // ordered says that the message has no delay, so that the order of its key is its own
          "create table committed (no bigint primary key, kind text not null,"
              + " outbox_id bigint not null, due_at timestamptz not null, key text,"
              + " ordered boolean not null default false,"
              + " queue text not null default '%s',".formatted(Subscriber.QUEUE)
              // of a link of a chain, the number of the one before
              + " origin bigint)",
          "create index on committed (origin) where origin is not null",
          "create sequence links minvalue %d".formatted(FIRST_LINK),
          // several, so that those who count wait for each other seldom
          "create table counters (slot int primary key, counted bigint not null)",
          "insert into counters select slot, 0 from generate_series(0, %d) slot"
              .formatted(COUNTERS - 1),
          // lease and token of the row, as the server had them when the effect was written
          "create table handled (no bigint not null, outbox_id bigint not null, token bigint not null,"
              + " row_token bigint, owner text not null, lease_until timestamptz,"
              + " at timestamptz not null default true_now(), began timestamptz,"
              + " in_order boolean not null default false, nth bigserial)",
          "create index on handled (no, nth) where in_order",
          "create index on handled (no)",
          "create index on handled (at)",
          "create table deleted (outbox_id bigint not null, token bigint not null,"
              + " stale boolean not null, at timestamptz not null default true_now(),"
              + " act xid8 not null default pg_current_xact_id(), nth bigserial)",
          "create index on deleted (at)",
          "create table retried (outbox_id bigint not null, token bigint not null,"
              + " delay interval not null, put_off boolean not null)",
          "create table stale (outbox_id bigint not null, token bigint not null, owner text,"
              + " writer text not null)",
          "create table stolen (outbox_id bigint not null)",
          "create table misdated (outbox_id bigint not null)",
          "create table faults (fault text not null, owner text, hit_from timestamptz not null,"
              + " hit_to timestamptz not null)",
          "create table episodes (fault text not null, began timestamptz not null,"
              + " ended timestamptz not null)",
          "create table pauses (began timestamptz not null, ended timestamptz not null)",
          "create table pulse (at timestamptz not null)",
          "insert into pulse values (now())",
          "create table dead_letters_kept (original_id bigint not null, failure_reason text not null)",
          "create table dead_letters_pattern (like outbox_dlq including all)");

  private static final List<String> FUNCTIONS =
      List.of(
          // a handler's transaction is of another pool, and says for whom it acks
          """
          create function writer() returns text language sql as $$
            select coalesce(nullif(current_setting('%s', true), ''),
              current_setting('application_name')) $$"""
              .formatted(WRITER),
          // whether the writer owns the bucket of a row of the ordered queue
          """
          create function owns(queue text, key text, id bigint) returns boolean language sql as $$
            select exists (
              select from public.outbox_buckets b
              where b.queue = $1
                and b.bucket = (case when $2 is null then $3 else hashtextextended($2, 0) end & 63)
                and split_part(b.owner, '/', 1) = public.writer()) $$""",
          """
          create function note_deletions() returns trigger language plpgsql as $$
          begin
            insert into public.deleted (outbox_id, token, stale)
            select id, lease_token, case when queue = '%s' then not public.owns(queue, ordering_key, id)
              else lease_until is null or split_part(leased_by, '/', 1)
                is distinct from public.writer() end
            from gone;
            return null;
          end $$"""
              .formatted(Subscriber.ORDERED_QUEUE),
          """
          create function note_disorder() returns trigger language plpgsql as $$
          begin
            insert into public.stale (outbox_id, token, owner, writer)
            values (old.id, old.lease_token, 'a bucket', current_setting('application_name'));
            return null;
          end $$""",
          """
          create function note_stale() returns trigger language plpgsql as $$
          begin
            insert into public.stale (outbox_id, token, owner, writer)
            values (old.id, old.lease_token, old.leased_by, current_setting('application_name'));
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
              coalesce(new.last_error like 'the dead letters are broken%', false));
            return null;
          end $$""");

  private static final List<String> TRIGGERS =
      List.of(
          """
          create trigger note_disorder after update on outbox for each row
            when (old.queue = '%s' and not public.owns(old.queue, old.ordering_key, old.id))
            execute function note_disorder()"""
              .formatted(Subscriber.ORDERED_QUEUE),
          "create trigger note_deletions after delete on outbox referencing old table as gone"
              + " for each statement execute function note_deletions()",
          "create trigger note_retry after update on outbox for each row"
              + " when (new.attempts_count > old.attempts_count)"
              + " execute function note_retry()");

  /** These look at {@code lease_until}, so they come and go with that column. */
  private static final List<String> LEASE_TRIGGERS =
      List.of(
          // all but a claim needs a lease that is the writer's own; a claim adds to the token
          """
          create trigger note_stale after update on outbox for each row
            when (old.queue <> '%s' and new.lease_token <= old.lease_token and (old.lease_until is null
              or split_part(old.leased_by, '/', 1)
                is distinct from current_setting('application_name')))
            execute function note_stale()"""
              .formatted(Subscriber.ORDERED_QUEUE),
          "create trigger note_theft after update on outbox for each row"
              + " when (new.lease_token <> old.lease_token and old.lease_until > now())"
              + " execute function note_theft()",
          """
          create trigger note_lease after update on outbox for each row
            when (new.lease_until is distinct from old.lease_until
              and abs(extract(epoch from new.lease_until - now()) - %d) > 1)
            execute function note_lease()""");

  private final DataSource direct;
  private final Duration lease;

  LedgerSchema(DataSource direct, Duration lease) {
    this.direct = direct;
    this.lease = lease;
  }

  void create() throws SQLException {
    List<String> all = new ArrayList<>(CLOCK);
    all.addAll(TABLES);
    all.addAll(FUNCTIONS);
    all.addAll(TRIGGERS);
    all.addAll(leaseTriggers());
    Database.transaction(direct, all);
  }

  private List<String> leaseTriggers() {
    return LEASE_TRIGGERS.stream()
        .map(trigger -> trigger.replace("%d", Long.toString(lease.toSeconds())))
        .toList();
  }

  /** Drops the outbox's {@code lease_until}, and with it every lease. */
  void dropLeases() throws SQLException {
    Database.transaction(
        direct,
        List.of(
            "drop trigger note_stale on outbox",
            "drop trigger note_theft on outbox",
            "drop trigger note_lease on outbox",
            "alter table outbox drop column lease_until"));
  }

  /** Adds the column again: no row is leased, whoever works on it. */
  void addLeases() throws SQLException {
    List<String> all = new ArrayList<>();
    all.add("alter table outbox add column lease_until timestamptz");
    all.addAll(leaseTriggers());
    Database.transaction(direct, all);
  }

  /** Drops the dead-letter table; what it holds is kept for the sums at the end. */
  void dropDeadLetters() throws SQLException {
    Database.transaction(
        direct,
        List.of(
            "lock table outbox_dlq in access exclusive mode",
            "insert into dead_letters_kept select original_id, failure_reason from outbox_dlq",
            "drop table outbox_dlq"));
  }

  /** Creates a dead-letter table like the first one. */
  void createDeadLetters() throws SQLException {
    Database.transaction(
        direct, List.of("create table outbox_dlq (like dead_letters_pattern including all)"));
  }
}
