package dev.outbox4j.dlq;

import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.internal.schema.PassingCheck;
import dev.outbox4j.internal.schema.Period;
import java.time.Instant;

/**
 * The texts of the statements on partitions. Each is one execution and one transaction: its locks
 * end with it on the server, whatever becomes of the client.
 */
final class PartitionSql {
  /** What the comment on a partition says that has no unresolved letter, before since when. */
  private static final String CLOSED = "outbox4j closed ";

  /** The time behind it, by which the mark is told from what a person has written there. */
  private static final String SINCE = "([0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+Z)";

  /** What the comment on a partition says beside the mark, which is a person's; null if nothing. */
  private static final String OWN_COMMENT =
      """
      nullif(regexp_replace(
          pg_catalog.obj_description(cast({partition_literal} as regclass), 'pg_class'),
          '^{mark}(, |)|(, |){mark}', '', 'g'), '')\
      """
          .replace("{mark}", CLOSED + SINCE);

  /** What the audit calls the drop of a partition. */
  static final String DROPPED = "drop partition";

  /**
   * Of what keeps out writers: the lock is waited for no longer than they may wait, and with what
   * is done then it takes less than 100 ms, or the server ends it. No standby is waited for while
   * the lock is held; what is lost with a server that is not the primary any more is done again.
   */
  private static final String SHORT =
      """
      set transaction_isolation = 'read committed';
      select set_config('statement_timeout', '90ms', true), set_config('lock_timeout', '50ms', true),
        set_config('synchronous_commit', 'local', true), set_config('enable_seqscan', 'off', true),
        set_config('jit', 'off', true);
      """;

  /** Of what keeps out nobody who writes; only walks of an index are left, and nested loops. */
  private static final String UNHURRIED =
      """
      set transaction_isolation = 'read committed';
      select set_config('statement_timeout', '{limit}', true),
        set_config('lock_timeout', '100ms', true), set_config('enable_seqscan', 'off', true),
        set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true),
        set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
        set_config('jit', 'off', true);
      """;

  /** The server gives up before the client does. */
  private static final String LIGHT = UNHURRIED.replace("{limit}", "12s");

  /** Of the statement that reads a large default partition. */
  private static final String LONG = UNHURRIED.replace("{limit}", "29min");

  /**
   * The server says boundaries as the session writes times: so they are read where it does. It
   * waits for no partition that somebody has locked, but for the default one, whose size is asked:
   * not for long, or each look would leave a process of the server behind that goes on waiting.
   */
  static final String LOOK =
      """
      select set_config('datestyle', 'ISO, YMD', true), set_config('timezone', 'UTC', true),
        set_config('statement_timeout', '12s', true), set_config('lock_timeout', '100ms', true);
      select c.relkind = 'p', pg_catalog.obj_description(c.oid, 'pg_class'), n.nspname,
        clock_timestamp()
      from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where c.oid = cast({letters_literal} as regclass);
      select n.nspname, c.relname, b.bound = 'DEFAULT',
        cast((regexp_match(b.bound, 'FROM \\(''([^'']*)''\\)'))[1] as timestamptz),
        cast((regexp_match(b.bound, 'TO \\(''([^'']*)''\\)'))[1] as timestamptz),
        (regexp_match(pg_catalog.obj_description(c.oid, 'pg_class'), '{mark}'))[1],
        case when b.bound = 'DEFAULT' then pg_catalog.pg_relation_size(c.oid) else 0 end,
        exists (
          select from pg_catalog.pg_constraint k
          where k.conrelid = c.oid and k.conname = {until_literal})
      from pg_catalog.pg_inherits i
      join pg_catalog.pg_class c on c.oid = i.inhrelid
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      cross join lateral (select pg_catalog.pg_get_expr(c.relpartbound, 0) as bound) b
      where i.inhparent = cast({letters_literal} as regclass)
      order by 5, 2
      """
          .replace("{mark}", CLOSED + SINCE);

  /** Only the indexes on unresolved letters are walked. */
  static final String UNRESOLVED =
      LIGHT + "select exists (select from {partition} d where d.resolved_at is null)";

  static final String CAUGHT =
      LIGHT + "select count(*) from (select from {partition} limit 10000) caught";

  private static final String ATTACHED =
      """
      (select c.relispartition from pg_catalog.pg_class c
          where c.oid = to_regclass({partition_literal}))\
      """;

  /**
   * Beside the table: nobody waits for it. An empty one is what a process left that died. Whether
   * another process attaches it at this moment is known once it is locked. What cannot be had of a
   * partitioned table, its storage parameters and its tablespace, is had of the default partition.
   */
  private static final String CREATE =
      """
      if to_regclass({partition_literal}) is not null then
        if {attached} then
          return;
        end if;
        lock table {partition} in access exclusive mode;
        if {attached} then
          return;
        elsif exists (select from {partition}) then
          raise exception 'outbox4j: table % has rows, and is no partition', {partition_literal}
            using errcode = '42P07';
        end if;
        drop table {partition};
      end if;
      execute format(
        'create table %s (like %s including all excluding identity excluding statistics)%s',
        {partition_literal}, {letters_literal}, (
          select coalesce(' with (' || array_to_string(d.reloptions, ', ') || ')', '')
            || coalesce((
              select format(' tablespace %I', s.spcname) from pg_catalog.pg_tablespace s
              where s.oid = d.reltablespace and has_tablespace_privilege(s.oid, 'create')), '')
          from pg_catalog.pg_partitioned_table p
          join pg_catalog.pg_class d on d.oid = p.partdefid
          where p.partrelid = cast({letters_literal} as regclass)));
      if (select c.relowner <> p.relowner from pg_catalog.pg_class c cross join pg_catalog.pg_class p
          where c.oid = cast({letters_literal} as regclass)
            and p.oid = cast({partition_literal} as regclass)) then
        execute format('alter table %s owner to %I', {partition_literal}, (
          select pg_catalog.pg_get_userbyid(c.relowner) from pg_catalog.pg_class c
          where c.oid = cast({letters_literal} as regclass)));
      end if;
      """;

  /** With indexes like those of the table, so that these need only be linked. */
  private static final String ATTACH =
      """
      perform set_config('lock_timeout', '50ms', true);
      if not (select c.relispartition from pg_catalog.pg_class c
          where c.oid = cast({partition_literal} as regclass)) then
        alter table {letters} attach partition {partition} for values from ({from}) to ({to});
      end if;
      """;

  private static final String DISCARD =
      """
      if to_regclass({partition_literal}) is not null and not {attached} then
        lock table {partition} in access exclusive mode;
        if not {attached} and not exists (select from {partition}) then
          drop table {partition};
        end if;
      end if;
      """;

  private static final String VALIDATE = "alter table {partition} validate constraint {until}";

  /** The lock first, which who writes a comment has, too: what others have written is seen then. */
  private static final String CLOSE =
      """
      lock table {partition} in share update exclusive mode;
      if not exists (select from {partition} d where d.resolved_at is null) then
        execute format('comment on table %s is %L', {partition_literal}, concat_ws(', ', {own},
          '{closed}'
            || to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')));
      end if;
      """
          .replace("{own}", OWN_COMMENT)
          .replace("{closed}", CLOSED);

  private static final String REOPEN =
      """
      lock table {partition} in share update exclusive mode;
      execute format('comment on table %s is %L', {partition_literal}, {own});
      """
          .replace("{own}", OWN_COMMENT);

  /**
   * The table first, as writers have it, and then the partition: whoever has that and not the table
   * is not waited for. One that was detached since it was looked at is somebody's to keep. Files
   * are deleted after the locks are given up, and histories by others than this statement: the
   * entry in the audit runs until they are.
   */
  private static final String DROP =
      """
      perform set_config('lock_timeout', '50ms', true);
      lock table only {letters} in access exclusive mode;
      perform set_config('lock_timeout', '10ms', true);
      lock table {partition} in access exclusive mode;
      perform set_config('datestyle', 'ISO, YMD', true);
      if not exists (
          select from pg_catalog.pg_inherits i
          join pg_catalog.pg_class c on c.oid = i.inhrelid
          where i.inhrelid = cast({partition_literal} as regclass)
            and i.inhparent = cast({letters_literal} as regclass)
            and cast((regexp_match(pg_catalog.pg_get_expr(c.relpartbound, c.oid),
              'TO \\(''([^'']*)''\\)'))[1] as timestamptz) = {to}) then
        raise exception 'outbox4j: it is not the partition that it was' using errcode = '42P01';
      end if;
      if {kept} then
        raise exception 'outbox4j: the partition has unresolved letters' using errcode = '55000';
      end if;
      insert into {audit} (outbox, action, acted_by, filter, done_count)
      select n.nspname || '.' || o.relname, '{drop}', current_setting('outbox4j.by'),
        {words}, greatest(p.reltuples, 0)::bigint
      from pg_catalog.pg_class o
      join pg_catalog.pg_namespace n on n.oid = o.relnamespace
      cross join pg_catalog.pg_class p
      where o.oid = cast({outbox_literal} as regclass)
        and p.oid = cast({partition_literal} as regclass);
      drop table {partition};
      """;

  /** Partitions that were dropped, and the histories of whose letters may be there still. */
  static final String DROPS =
      LIGHT
          + """
          select id from {audit} where action = '{drop}' and status = 'running'
          """;

  /**
   * The next histories, of which those go whose letter is in no partition: so it is known what is
   * left to be done, whoever dropped a partition and died. The last row that it looked at is where
   * the next one begins.
   */
  static final String HISTORIES =
      LIGHT
          + """
          with looked as materialized (
            select t.dead_letter, t.redriven_at, t.created_at
            from {trips} t
            where (t.dead_letter, t.redriven_at) > (?::bigint, ?::text::timestamptz)
            order by t.dead_letter, t.redriven_at
            limit 1000),
          gone as materialized (
            select l.dead_letter, l.redriven_at
            from looked l
            where not exists (
              select from {letters} d
              where d.id = any (array[l.dead_letter]) and (d.created_at = l.created_at) is true)),
          deleted as (
            delete from {trips} t using gone g
              where t.dead_letter = any (array[g.dead_letter]) and t.redriven_at = g.redriven_at),
          audited as (
            update {audit} a set seen_at = clock_timestamp() where a.id = any (?::bigint[]))
          select l.dead_letter, l.redriven_at
          from looked l
          order by l.dead_letter desc, l.redriven_at desc
          limit 1
          """;

  static final String END_DROPS =
      LIGHT
          + """
          update {audit} a set status = 'completed', ended_at = clock_timestamp()
          where a.id = any (?::bigint[]) and a.status = 'running'
          """;

  private static final String TAG = "$outbox4j$";

  private final String letters;
  private final String outbox;
  private final String trips;
  private final String audit;
  private final String until;

  /** Takes the names of the tables as they are written in a statement, and that of a constraint. */
  PartitionSql(String letters, String outbox, String trips, String audit, String until) {
    this.letters = letters;
    this.outbox = outbox;
    this.trips = trips;
    this.audit = audit;
    this.until = until;
  }

  String look() {
    return LOOK.replace("{letters_literal}", Names.literal(letters))
        .replace("{until_literal}", Names.literal(until));
  }

  String unresolved(String partition) {
    return of(UNRESOLVED, partition);
  }

  String caught(String partition) {
    return of(CAUGHT, partition);
  }

  String drops() {
    return ofAll(DROPS);
  }

  /** Its parameters are where it begins, and the entries in the audit that it is for. */
  String histories() {
    return ofAll(HISTORIES);
  }

  /** Its one parameter is the entries. */
  String endDrops() {
    return ofAll(END_DROPS);
  }

  private String ofAll(String template) {
    return template
        .replace("{letters}", letters)
        .replace("{trips}", trips)
        .replace("{audit}", audit)
        .replace("{drop}", DROPPED);
  }

  String create(String partition) {
    return LIGHT + block(of(CREATE, partition));
  }

  String attach(String partition, Range range) {
    return SHORT + block(range.in(of(ATTACH, partition)));
  }

  String discard(String partition) {
    return LIGHT + block(of(DISCARD, partition));
  }

  /** So that the server need not read the default partition while it keeps out writers. */
  String exclude(String partition, String schema, Range range) {
    return SHORT
        + block(
            PassingCheck.add(
                partition,
                Names.qualified(schema, until),
                Names.quoted(until),
                range.in("failed_at < {from} or failed_at >= {to}"),
                range.from()));
  }

  String validate(String partition) {
    return LONG + of(VALIDATE, partition);
  }

  String include(String partition, String schema) {
    return SHORT
        + block(PassingCheck.drop(partition, Names.qualified(schema, until), Names.quoted(until)));
  }

  String close(String partition) {
    return LIGHT + block(of(CLOSE, partition));
  }

  String reopen(String partition) {
    return LIGHT + block(of(REOPEN, partition));
  }

  /** Its one parameter is who does it. */
  String drop(String partition, Instant to, boolean withUnresolved, String words) {
    return SHORT
        + "select set_config('outbox4j.by', ?, true);\n"
        + block(
            of(
                    DROP.replace(
                        "{kept}",
                        withUnresolved
                            ? "false"
                            : "exists (select from {partition} d where d.resolved_at is null)"),
                    partition)
                .replace("{to}", Period.literal(to))
                .replace("{audit}", audit)
                .replace("{drop}", DROPPED)
                .replace("{outbox_literal}", Names.literal(outbox))
                .replace("{words}", Names.literal(words)));
  }

  private String of(String template, String partition) {
    return template
        .replace("{attached}", ATTACHED)
        .replace("{partition_literal}", Names.literal(partition))
        .replace("{partition}", partition)
        .replace("{letters_literal}", Names.literal(letters))
        .replace("{letters}", letters)
        .replace("{until}", Names.quoted(until));
  }

  private static String block(String body) {
    if (body.contains(TAG)) {
      throw new IllegalStateException("A name has " + TAG + " in it; rename the partition");
    }
    return "do " + TAG + "\nbegin\n" + body + "end\n" + TAG;
  }

  /**
   * The time that a partition is for.
   *
   * @param from the earliest
   * @param to the first that is too late
   */
  record Range(Instant from, Instant to) {
    private String in(String template) {
      return template.replace("{from}", literal(from)).replace("{to}", literal(to));
    }

    private static String literal(Instant instant) {
      return Period.literal(instant);
    }
  }
}
