package dev.outbox4j.postgres.internal.schema;

import dev.outbox4j.postgres.internal.schema.Live.Column;
import dev.outbox4j.postgres.internal.schema.Live.Gaps;
import dev.outbox4j.postgres.internal.schema.Live.Index;
import dev.outbox4j.postgres.internal.schema.Live.Obstacle;
import dev.outbox4j.postgres.internal.schema.Live.Relation;
import dev.outbox4j.postgres.internal.schema.Live.Relations;
import dev.outbox4j.postgres.internal.schema.Live.Session;
import dev.outbox4j.postgres.internal.schema.Live.Storage;
import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Reads pg_catalog: one statement a method. Changes nothing. Not thread-safe. */
final class Catalog {
  private static final String RELATIONS =
      """
      select current_user::text,
             pg_catalog.array_to_string(pg_catalog.current_schemas(false), ', '),
             pg_catalog.current_setting('server_version_num')::int,
             pg_catalog.current_setting('transaction_read_only') = 'on',
             pg_catalog.pg_is_in_recovery(),
             c.oid, n.nspname, c.relname, c.relkind::text, c.relpersistence::text,
             pg_catalog.pg_table_is_visible(c.oid), pg_catalog.has_schema_privilege(n.oid, 'USAGE'),
             pg_catalog.obj_description(c.oid, 'pg_class')
      from (select 1) me
      left join pg_catalog.pg_class c on c.relname = any(?) and c.relkind in ('r', 'p', 'v', 'm', 'f')
      left join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      order by n.nspname, c.relname
      """;

  private static final String COLUMNS =
      """
      select a.attrelid, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
             case when a.attcollation <> t.typcollation then l.collname end, a.attnotnull,
             a.attgenerated <> '',
             case when a.attidentity <> '' then 'generated '
                         || case a.attidentity when 'a' then 'always' else 'by default' end || ' as identity'
                  when a.attgenerated <> '' then 'generated always as ('
                         || pg_catalog.pg_get_expr(d.adbin, d.adrelid) || ')'
                  else pg_catalog.pg_get_expr(d.adbin, d.adrelid) end
      from pg_catalog.pg_attribute a
      join pg_catalog.pg_type t on t.oid = a.atttypid
      left join pg_catalog.pg_collation l on l.oid = a.attcollation
      left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      where a.attrelid = any(?::bigint[]::oid[]) and a.attnum > 0 and not a.attisdropped
      order by a.attrelid, a.attnum
      """;

  /** A table and, if it is partitioned, its partitions. */
  private static final String MEMBERS =
      """
      from pg_catalog.unnest(?::bigint[]::oid[]) as root(oid)
      cross join lateral (
        select root.oid as relid
        union select t.relid::oid from pg_catalog.pg_partition_tree(root.oid::regclass) t) member
      """;

  private static final String INDEXES =
      """
      select root.oid, n.nspname, c.relname, member.relid <> root.oid, c.relispartition,
             i.indisunique, i.indisprimary, i.indimmediate, i.indisvalid, m.amname,
             array(
               select coalesce(a.attname, pg_catalog.pg_get_indexdef(i.indexrelid, k.n, true))
                   || case when l.oid is not null and a.attcollation <> l.oid then ' collate ' || l.collname else '' end
                   || case when o.opcdefault then '' else ' ' || o.opcname end
                   || case i.indoption[k.n - 1] & 3
                        when 0 then '' when 1 then ' desc nulls last' when 2 then ' nulls first' else ' desc' end
               from pg_catalog.generate_series(1, i.indnkeyatts::int) as k(n)
               left join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[k.n - 1]
               left join pg_catalog.pg_opclass o on o.oid = i.indclass[k.n - 1]
               left join pg_catalog.pg_collation l on l.oid = i.indcollation[k.n - 1]
               order by k.n),
             pg_catalog.pg_get_expr(i.indpred, i.indrelid),
             mention.columns, mention.places
      """
          + MEMBERS
          + """
      join pg_catalog.pg_index i on i.indrelid = member.relid
      join pg_catalog.pg_class c on c.oid = i.indexrelid
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      join pg_catalog.pg_am m on m.oid = c.relam
      cross join lateral (
        select pg_catalog.array_agg(a.attname::text order by a.attnum) as columns,
               pg_catalog.array_agg(
                 case when p.at < i.indnkeyatts then 'as a key column'
                      when p.at is not null then 'as an included column'
                      else 'in an expression or its predicate' end order by a.attnum) as places
        from pg_catalog.pg_attribute a
        cross join lateral (
          select pg_catalog.array_position(i.indkey::int2[], a.attnum) as at) p
        where a.attrelid = i.indrelid and a.attnum > 0 and not a.attisdropped
          and (p.at is not null or exists (
            select from pg_catalog.pg_depend d
            where d.classid = 'pg_catalog.pg_class'::regclass and d.objid = i.indexrelid
              and d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjid = i.indrelid
              and d.refobjsubid = a.attnum))) mention
      order by n.nspname, c.relname
      """;

  private static final String STORAGE =
      """
      select root.oid, n.nspname, c.relname, c.relpersistence::text, c.reloptions
      """
          + MEMBERS
          + """
      join pg_catalog.pg_class c on c.oid = member.relid and c.relkind = 'r'
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      order by n.nspname, c.relname
      """;

  /** What is not ours and may swallow, change or refuse what the library writes. */
  private static final String OBSTACLES =
      """
      select member.oid, thing.kind, thing.name, n.nspname, c.relname, thing.definition
      from (
        select root.oid, member.relid
      """
          + MEMBERS
          + """
        ) member
      join pg_catalog.pg_class c on c.oid = member.relid
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      cross join lateral (
        select 'trigger' as kind, t.tgname as name, pg_catalog.pg_get_triggerdef(t.oid) as definition
        from pg_catalog.pg_trigger t
        where t.tgrelid = member.relid and not t.tgisinternal and t.tgenabled <> 'D'
          and t.tgparentid = 0 and t.tgtype & 28 <> 0
        union all
        select 'rule', r.rulename,
               pg_catalog.rtrim(pg_catalog.regexp_replace(pg_catalog.pg_get_ruledef(r.oid), '[[:space:]]+', ' ', 'g'), ';')
        from pg_catalog.pg_rewrite r
        where r.ev_class = member.relid and r.rulename <> '_RETURN' and r.ev_enabled <> 'D'
        union all
        select 'constraint', k.conname, pg_catalog.pg_get_constraintdef(k.oid)
        from pg_catalog.pg_constraint k
        where k.conrelid = member.relid and k.contype in ('c', 'f', 'x') and k.coninhcount = 0
        union all
        select 'constraint', k.conname,
               pg_catalog.pg_get_constraintdef(k.oid) || ' on table ' || k.conrelid::regclass
        from pg_catalog.pg_constraint k
        where k.confrelid = member.relid and k.contype = 'f' and k.conparentid = 0) thing
      order by thing.kind desc, n.nspname, c.relname, thing.name
      """;

  private static final String GAPS =
      """
      select root.oid, pg_catalog.row_security_active(root.oid),
             array(
               select n.nspname::text
               from pg_catalog.pg_partition_tree(root.oid::regclass) t
               join pg_catalog.pg_partitioned_table p on p.partrelid = t.relid
               join pg_catalog.pg_class c on c.oid = p.partrelid
               join pg_catalog.pg_namespace n on n.oid = c.relnamespace
               where p.partdefid = 0 and p.partstrat <> 'h' order by p.partrelid),
             array(
               select c.relname::text
               from pg_catalog.pg_partition_tree(root.oid::regclass) t
               join pg_catalog.pg_partitioned_table p on p.partrelid = t.relid
               join pg_catalog.pg_class c on c.oid = p.partrelid
               where p.partdefid = 0 and p.partstrat <> 'h' order by p.partrelid)
      from pg_catalog.unnest(?::bigint[]::oid[]) as root(oid)
      """;

  private final Connection connection;
  private final int timeoutSeconds;

  Catalog(Connection connection, int timeoutSeconds) {
    this.connection = connection;
    this.timeoutSeconds = timeoutSeconds;
  }

  Relations relations(Collection<String> names) throws SQLException {
    try (PreparedStatement statement = prepare(RELATIONS)) {
      statement.setArray(1, texts(names));
      List<Relation> found = new ArrayList<>();
      Session session = null;
      try (ResultSet rows = statement.executeQuery()) {
        while (rows.next()) {
          session =
              new Session(
                  rows.getString(1),
                  rows.getString(2),
                  rows.getInt(3),
                  rows.getBoolean(4),
                  rows.getBoolean(5));
          long oid = rows.getLong(6);
          if (!rows.wasNull()) {
            found.add(
                new Relation(
                    oid,
                    new TableName(rows.getString(7), rows.getString(8)),
                    rows.getString(9),
                    rows.getString(10),
                    rows.getBoolean(11),
                    rows.getBoolean(12),
                    rows.getString(13)));
          }
        }
      }
      if (session == null) {
        throw new SQLException("The catalog gave no row for the session");
      }
      return new Relations(session, found);
    }
  }

  Map<Long, Map<String, Column>> columns(Collection<Long> tables) throws SQLException {
    try (PreparedStatement statement = prepare(COLUMNS)) {
      statement.setArray(1, oids(tables));
      Map<Long, Map<String, Column>> found = new HashMap<>();
      try (ResultSet rows = statement.executeQuery()) {
        while (rows.next()) {
          Column column =
              new Column(
                  rows.getString(2),
                  rows.getString(3),
                  rows.getString(4),
                  rows.getBoolean(5),
                  rows.getBoolean(6),
                  rows.getString(7));
          found
              .computeIfAbsent(rows.getLong(1), oid -> new LinkedHashMap<>())
              .put(column.name(), column);
        }
      }
      return found;
    }
  }

  List<Index> indexes(Collection<Long> tables) throws SQLException {
    try (PreparedStatement statement = prepare(INDEXES)) {
      statement.setArray(1, oids(tables));
      List<Index> found = new ArrayList<>();
      try (ResultSet rows = statement.executeQuery()) {
        while (rows.next()) {
          found.add(
              new Index(
                  rows.getLong(1),
                  new TableName(rows.getString(2), rows.getString(3)),
                  rows.getBoolean(4),
                  rows.getBoolean(5),
                  rows.getBoolean(6),
                  rows.getBoolean(7),
                  rows.getBoolean(8),
                  rows.getBoolean(9),
                  rows.getString(10),
                  list(rows.getArray(11)),
                  rows.getString(12),
                  list(rows.getArray(13)),
                  list(rows.getArray(14))));
        }
      }
      return found;
    }
  }

  Map<Long, List<Storage>> storage(Collection<Long> tables) throws SQLException {
    try (PreparedStatement statement = prepare(STORAGE)) {
      statement.setArray(1, oids(tables));
      Map<Long, List<Storage>> found = new HashMap<>();
      try (ResultSet rows = statement.executeQuery()) {
        while (rows.next()) {
          Map<String, String> options = new HashMap<>();
          for (String option : list(rows.getArray(5))) {
            int equals = option.indexOf('=');
            options.put(option.substring(0, equals), option.substring(equals + 1));
          }
          found
              .computeIfAbsent(rows.getLong(1), oid -> new ArrayList<>())
              .add(
                  new Storage(
                      new TableName(rows.getString(2), rows.getString(3)),
                      rows.getString(4),
                      options));
        }
      }
      return found;
    }
  }

  List<Obstacle> obstacles(Collection<Long> tables) throws SQLException {
    try (PreparedStatement statement = prepare(OBSTACLES)) {
      statement.setArray(1, oids(tables));
      List<Obstacle> found = new ArrayList<>();
      try (ResultSet rows = statement.executeQuery()) {
        while (rows.next()) {
          found.add(
              new Obstacle(
                  rows.getLong(1),
                  rows.getString(2),
                  rows.getString(3),
                  new TableName(rows.getString(4), rows.getString(5)),
                  rows.getString(6)));
        }
      }
      return found;
    }
  }

  List<Gaps> gaps(Collection<Long> tables) throws SQLException {
    try (PreparedStatement statement = prepare(GAPS)) {
      statement.setArray(1, oids(tables));
      List<Gaps> found = new ArrayList<>();
      try (ResultSet rows = statement.executeQuery()) {
        while (rows.next()) {
          List<String> schemas = list(rows.getArray(3));
          List<String> names = list(rows.getArray(4));
          List<TableName> without = new ArrayList<>();
          for (int i = 0; i < names.size(); i++) {
            without.add(new TableName(schemas.get(i), names.get(i)));
          }
          found.add(new Gaps(rows.getLong(1), rows.getBoolean(2), without));
        }
      }
      return found;
    }
  }

  /** How many buckets each queue has; null if the role may not look. */
  @Nullable Map<String, Long> buckets(Relation buckets, Collection<String> queues)
      throws SQLException {
    try (PreparedStatement statement =
        prepare("select pg_catalog.has_table_privilege(?::bigint::oid, 'select')")) {
      statement.setLong(1, buckets.oid());
      try (ResultSet row = statement.executeQuery()) {
        if (!row.next() || !row.getBoolean(1)) {
          return null;
        }
      }
    }
    try (PreparedStatement statement =
        prepare(
            "select queue, count(*) from %s where queue = any(?) group by queue"
                .formatted(buckets.name().sql()))) {
      statement.setArray(1, texts(queues));
      Map<String, Long> counts = new HashMap<>();
      try (ResultSet rows = statement.executeQuery()) {
        while (rows.next()) {
          counts.put(rows.getString(1), rows.getLong(2));
        }
      }
      return counts;
    }
  }

  PreparedStatement prepare(String sql) throws SQLException {
    PreparedStatement statement = connection.prepareStatement(sql);
    statement.setQueryTimeout(timeoutSeconds);
    return statement;
  }

  Array texts(Collection<String> values) throws SQLException {
    return connection.createArrayOf("text", values.toArray());
  }

  Array oids(Collection<Long> values) throws SQLException {
    return connection.createArrayOf("int8", values.toArray());
  }

  private static List<String> list(@Nullable Array array) throws SQLException {
    return array == null ? List.of() : List.of((String[]) array.getArray());
  }
}
