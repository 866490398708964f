package dev.outbox4j.poller.internal;

import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.poller.Cursor;
import dev.outbox4j.poller.NullCursors;
import dev.outbox4j.poller.Poller;
import dev.outbox4j.poller.Source;
import java.sql.Array;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Asks the catalog of a source whether it can be followed, and what it is. Confined to one thread.
 */
final class SourceInspection {
  private final SourceDatabase database;
  private final Poller poller;
  private final Cursor cursor;
  private final List<String> warnings = new ArrayList<>();

  private SourceInspection(SourceDatabase database, Poller poller) {
    this.database = database;
    this.poller = poller;
    this.cursor = poller.cursor();
  }

  /**
   * Describes a source.
   *
   * @throws SourceException if it cannot be asked, or must not be followed as the definition says
   */
  static SourceDescription describe(SourceDatabase database, Poller poller) {
    return new SourceInspection(database, poller).describe();
  }

  /** A table, by the catalog. */
  private record Table(long oid, String schema, String name, String kind) {
    String label() {
      return schema + "." + name;
    }

    String from() {
      return Quoting.table(schema, name);
    }
  }

  /** A column, by the catalog. */
  private record Known(String type, boolean notNull, int number, boolean deterministic) {}

  /** An index, by the catalog. */
  private record KnownIndex(
      boolean primary, boolean unique, boolean walkable, List<String> columns) {
    /** Whether it can be walked in this order. */
    boolean begins(List<String> ordered) {
      int common = Math.min(columns.size(), ordered.size());
      return walkable
          && columns.subList(0, common).equals(ordered.subList(0, common))
          && (common == ordered.size() || unique);
    }
  }

  private SourceDescription describe() {
    Source source = poller.source();
    return source.sql().isPresent() ? ofQuery(source, source.sql().get()) : ofTable(source);
  }

  private SourceDescription ofTable(Source source) {
    Table table = table("source", source);
    Map<String, Known> columns = columns(table);
    List<KnownIndex> indexes = indexes(table);
    List<String> key = key(source, table, columns, indexes);
    Known known = column("cursor", cursor.column(), table.label(), columns);
    CursorType type = type("cursor", cursor.column(), table.label(), known);
    requireKind(type, known.type());
    if (!known.notNull() && cursor.nulls() == NullCursors.REFUSED) {
      throw new SourceException(
          "cursor '%s' of %s may be null, and such rows would never be handled; make it not null, or"
                  .formatted(cursor.column(), table.label())
              + " choose Cursor.nulls(IGNORED)");
    }
    requireOffset(type);
    ColumnNumber counted = counted(table, known);
    warnOfReplication(table);
    OrderedColumn first = new OrderedColumn(cursor.column(), known.type(), type);
    List<OrderedColumn> ordered =
        key.stream()
            .map(
                name -> {
                  Known part = column("key", name, table.label(), columns);
                  return new OrderedColumn(
                      name, part.type(), type("key", name, table.label(), part));
                })
            .toList();
    return finish(
        table.label(),
        table.from(),
        first,
        ordered,
        read(columns.keySet(), key),
        columns.entrySet().stream()
            .collect(
                Collectors.toMap(
                    Map.Entry::getKey,
                    each -> each.getValue().type(),
                    (one, other) -> one,
                    LinkedHashMap::new)),
        counted,
        indexes);
  }

  /** What is read: all columns in their order, or those that were named and those that must be. */
  private List<String> read(Set<String> all, List<String> key) {
    if (poller.columns().isEmpty()) {
      return List.copyOf(all);
    }
    Set<String> read = new LinkedHashSet<>(poller.columns());
    read.add(cursor.column());
    read.addAll(key);
    poller.deletes().softDeleteColumn().ifPresent(read::add);
    return all.stream().filter(read::contains).collect(Collectors.toList());
  }

  private SourceDescription finish(
      String label,
      String from,
      OrderedColumn first,
      List<OrderedColumn> key,
      List<String> read,
      Map<String, String> types,
      @Nullable ColumnNumber counted,
      @Nullable List<KnownIndex> indexes) {
    for (String named : poller.columns()) {
      requireColumn("column", named, label, types.keySet());
    }
    poller
        .deletes()
        .softDeleteColumn()
        .ifPresent(name -> requireColumn("soft-delete column", name, label, types.keySet()));
    List<SourceColumn> columns =
        read.stream().map(name -> new SourceColumn(name, String.valueOf(types.get(name)))).toList();
    int softDelete = poller.deletes().softDeleteColumn().map(name -> read.indexOf(name)).orElse(-1);
    Table tombstones =
        poller.deletes().tombstoneTable().map(table -> table("tombstones", table)).orElse(null);
    List<SourceColumn> tombstoneColumns =
        tombstones == null ? List.of() : tombstoneColumns(tombstones, first, key);
    Map<String, String> facts = new LinkedHashMap<>();
    facts.put("database", databaseName());
    facts.put("source", label);
    facts.put("key", names(key));
    facts.put("cursor type", first.type().tag());
    facts.put(
        "key types", key.stream().map(part -> part.type().tag()).collect(Collectors.joining(", ")));
    if (tombstones != null) {
      facts.put("deletes", "tombstones " + tombstones.label());
    }
    SourceDescription description =
        new SourceDescription(
            label,
            from,
            first,
            key,
            columns,
            softDelete,
            tombstones == null ? null : tombstones.from(),
            tombstoneColumns,
            counted,
            facts,
            warnings);
    String plan = Fetch.of(description, poller).explain(database); // also checks the condition
    if (indexes != null) {
      warnOfNoIndex(label, from, description, indexes, plan);
    }
    return description;
  }

  private static String names(List<OrderedColumn> key) {
    return key.stream().map(OrderedColumn::name).collect(Collectors.joining(", "));
  }

  private SourceDescription ofQuery(Source source, String sql) {
    String from = Quoting.query(sql);
    String label = source.name();
    List<String> names =
        database.run(
            "read the columns of query '" + label + "'",
            "select * from " + from + " s limit 0",
            statement -> {},
            results -> {
              var about = results.rows().getMetaData();
              return IntStream.rangeClosed(1, about.getColumnCount())
                  .mapToObj(i -> unchecked(() -> about.getColumnLabel(i)))
                  .toList();
            });
    if (Set.copyOf(names).size() < names.size()) {
      throw new SourceException(
          "query '%s' has two columns of one name, of %s; name each otherwise"
              .formatted(label, names));
    }
    requireColumn("cursor", cursor.column(), label, names);
    source.key().forEach(part -> requireColumn("key", part, label, names));
    Map<String, Known> columns = columnsOfQuery(from, names);
    Known known = column("cursor", cursor.column(), label, columns);
    CursorType type = type("cursor", cursor.column(), label, known);
    requireKind(type, known.type());
    requireOffset(type);
    List<OrderedColumn> key =
        source.key().stream()
            .map(
                name -> {
                  Known part = column("key", name, label, columns);
                  return new OrderedColumn(name, part.type(), type("key", name, label, part));
                })
            .toList();
    requireNoNulls(label, from, key);
    warnings.add(
        "that the key of query '%s' is unique cannot be checked; two rows of one cursor and key would be one"
            .formatted(label));
    if (cursor.kind() == Cursor.Kind.SEQUENCE && !cursor.writersNeverOverlap()) {
      warnings.add(
          "no sequence is known behind cursor '%s' of query '%s'; see that its cache and its step are 1"
              .formatted(cursor.column(), label));
    }
    return finish(
        label,
        from,
        new OrderedColumn(cursor.column(), known.type(), type),
        key,
        read(columns.keySet(), source.key()),
        columns.entrySet().stream()
            .collect(
                Collectors.toMap(
                    Map.Entry::getKey,
                    each -> each.getValue().type(),
                    (one, other) -> one,
                    LinkedHashMap::new)),
        null,
        null);
  }

  private Map<String, Known> columnsOfQuery(String from, List<String> names) {
    List<String> types = ofNoRow(from, "pg_typeof(%s)::text", names);
    Map<String, Known> columns = new LinkedHashMap<>();
    for (int i = 0; i < names.size(); i++) {
      String name = names.get(i);
      String type = types.get(i);
      boolean ordered = name.equals(cursor.column()) || poller.source().key().contains(name);
      boolean deterministic =
          !ordered || CursorType.ofColumn(type) != CursorType.TEXT || isDeterministic(from, name);
      columns.put(name, new Known(type, true, 0, deterministic));
    }
    return columns;
  }

  /** What functions say of columns, without reading a row. */
  private List<String> ofNoRow(String from, String function, List<String> names) {
    String asked =
        names.stream()
            .map(name -> function.formatted(Quoting.column(name)))
            .collect(Collectors.joining(", "));
    return database.run(
        "read the types of query '" + poller.source().name() + "'",
        "select %s from (values (1)) one (x) left join (select * from %s q limit 0) s on true"
            .formatted(asked, from),
        statement -> {},
        results -> {
          List<String> found = new ArrayList<>();
          ResultSet row = first(results.rows());
          for (int i = 1; i <= names.size(); i++) {
            found.add(row.getString(i));
          }
          return found;
        });
  }

  private boolean isDeterministic(String from, String name) {
    String collation = ofNoRow(from, "pg_collation_for(%s)", List.of(name)).get(0);
    return database.run(
        "read a collation",
        "select collisdeterministic from pg_collation where oid = cast(? as regcollation)",
        statement -> statement.setString(1, collation),
        results -> first(results.rows()).getBoolean(1));
  }

  private void requireNoNulls(String label, String from, List<OrderedColumn> key) {
    List<String> required = new ArrayList<>(key.stream().map(OrderedColumn::name).toList());
    if (cursor.nulls() == NullCursors.REFUSED) {
      required.add(cursor.column());
    }
    String anyNull =
        required.stream()
            .map(name -> Quoting.column(name) + " is null")
            .collect(Collectors.joining(" or "));
    boolean found =
        database.run(
            "look for nulls in query '" + label + "'",
            "select exists (select 1 from " + from + " s where " + anyNull + ")",
            statement -> {},
            results -> first(results.rows()).getBoolean(1));
    if (found) {
      throw new SourceException(
          "query '%s' has rows whose cursor or key is null; leave them out there, or choose"
                  .formatted(label)
              + " Cursor.nulls(IGNORED) if it is the cursor");
    }
  }

  private Table table(String what, Source source) {
    String schema = source.schema().orElse(null);
    List<Table> found =
        database.run(
            "look for " + what + " " + source,
            """
            select c.oid::bigint, n.nspname::text, c.relname::text, c.relkind::text
            from pg_class c join pg_namespace n on n.oid = c.relnamespace
            where c.relname = ? and c.relkind in ('r', 'p', 'v', 'm', 'f')
              and case when ? = '' then pg_table_is_visible(c.oid) else n.nspname = ? end
            """,
            statement -> {
              statement.setString(1, source.name());
              statement.setString(2, schema == null ? "" : schema);
              statement.setString(3, schema == null ? "" : schema);
            },
            results -> {
              List<Table> tables = new ArrayList<>();
              ResultSet rows = results.rows();
              while (rows.next()) {
                tables.add(
                    new Table(
                        rows.getLong(1), rows.getString(2), rows.getString(3), rows.getString(4)));
              }
              return tables;
            });
    if (found.isEmpty()) {
      throw new SourceException(
          "%s %s is no table that there is%s; correct its name, or grant usage on its schema"
              .formatted(what, source, schema == null ? " on the search path" : ""));
    }
    Table table = found.get(0);
    if (!table.kind().equals("r") && !table.kind().equals("p")) {
      throw new SourceException(
          "%s %s is %s, which has no key; follow the table below it, or give it as Source.query(...)"
              .formatted(what, table.label(), kind(table.kind())));
    }
    return table;
  }

  private static String kind(String relkind) {
    return switch (relkind) {
      case "v" -> "a view";
      case "m" -> "a materialized view";
      default -> "a foreign table";
    };
  }

  private String databaseName() {
    return database.run(
        "read the name of the database",
        "select current_database()::text",
        statement -> {},
        results -> first(results.rows()).getString(1));
  }

  private Map<String, Known> columns(Table table) {
    return database.run(
        "read the columns of " + table.label(),
        """
        select a.attname::text, format_type(a.atttypid, null), a.attnotnull, a.attnum::int,
          coalesce(c.collisdeterministic, true)
        from pg_attribute a left join pg_collation c on c.oid = a.attcollation
        where a.attrelid = cast(? as bigint)::oid and a.attnum > 0 and not a.attisdropped
        order by a.attnum
        """,
        statement -> statement.setLong(1, table.oid()),
        results -> {
          Map<String, Known> columns = new LinkedHashMap<>();
          ResultSet rows = results.rows();
          while (rows.next()) {
            columns.put(
                rows.getString(1),
                new Known(
                    rows.getString(2), rows.getBoolean(3), rows.getInt(4), rows.getBoolean(5)));
          }
          return columns;
        });
  }

  private List<KnownIndex> indexes(Table table) {
    return database.run(
        "read the indexes of " + table.label(),
        """
        select i.indisprimary,
          i.indisunique and i.indisvalid and i.indpred is null and i.indexprs is null,
          i.indisvalid and m.amname = 'btree' and (
            0 = all (i.indoption::int2[]) or 3 = all (i.indoption::int2[])),
          array(
            select coalesce(a.attname::text, '')
            from unnest(i.indkey::int2[]) with ordinality k (number, place)
              left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number
            where k.place <= i.indnkeyatts
            order by k.place)
        from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am m on m.oid = c.relam
        where i.indrelid = cast(? as bigint)::oid
        """,
        statement -> statement.setLong(1, table.oid()),
        results -> {
          List<KnownIndex> indexes = new ArrayList<>();
          ResultSet rows = results.rows();
          while (rows.next()) {
            indexes.add(
                new KnownIndex(
                    rows.getBoolean(1),
                    rows.getBoolean(2),
                    rows.getBoolean(3),
                    texts(rows.getArray(4))));
          }
          return indexes;
        });
  }

  private static List<String> texts(Array array) throws SQLException {
    return List.of((String[]) array.getArray());
  }

  private static List<String> key(
      Source source, Table table, Map<String, Known> columns, List<KnownIndex> indexes) {
    if (source.key().isEmpty()) {
      return indexes.stream()
          .filter(KnownIndex::primary)
          .map(KnownIndex::columns)
          .findFirst()
          .orElseThrow(
              () ->
                  new SourceException(
                      "%s has no primary key; name columns that are not null and together unique by"
                              .formatted(table.label())
                          + " Source.key(...)"));
    }
    for (String part : source.key()) {
      if (!column("key", part, table.label(), columns).notNull()) {
        throw new SourceException(
            "column '%s' of the key of %s may be null; make it not null, or choose another key"
                .formatted(part, table.label()));
      }
    }
    if (indexes.stream()
        .noneMatch(each -> each.unique() && source.key().containsAll(each.columns()))) {
      throw new SourceException(
          "key %s of %s is not unique by any index; create a unique one without a condition, or choose"
                  .formatted(source.key(), table.label())
              + " another key");
    }
    return source.key();
  }

  private static Known column(String what, String name, String label, Map<String, Known> columns) {
    requireColumn(what, name, label, columns.keySet());
    Known known = columns.get(name);
    if (known == null) {
      throw new IllegalStateException(name);
    }
    return known;
  }

  private static void requireColumn(
      String what, String name, String label, java.util.Collection<String> columns) {
    if (!columns.contains(name)) {
      throw new SourceException(
          "%s '%s' is no column of %s, which has %s; correct the name, as the catalog writes it"
              .formatted(what, name, label, columns));
    }
  }

  private static CursorType type(String what, String name, String label, Known known) {
    CursorType type = CursorType.ofColumn(known.type());
    if (type == null) {
      throw new SourceException(
          "%s '%s' of %s is of type %s; it may be smallint, integer, bigint, numeric, timestamptz,"
                  .formatted(what, name, label, known.type())
              + " timestamp, date, uuid, text, varchar or xid8");
    }
    if (!known.deterministic()) {
      throw new SourceException(
          "%s '%s' of %s has a nondeterministic collation, by which different texts are equal; give it"
                  .formatted(what, name, label)
              + " another, such as collate \"C\"");
    }
    return type;
  }

  private void requireKind(CursorType type, String sqlType) {
    boolean fits =
        switch (cursor.kind()) {
          case TRANSACTION_ID -> type == CursorType.XID8;
          case SEQUENCE -> type == CursorType.BIGINT || type == CursorType.NUMERIC;
          case SERVER_TIME -> type == CursorType.TIMESTAMPTZ || type == CursorType.TIMESTAMP;
          case ASCENDING -> type != CursorType.XID8;
        };
    if (!fits) {
      throw new SourceException(
          "cursor '%s' is of type %s, which %s is not kept in; use a Cursor of another kind, see its"
                  .formatted(cursor.column(), sqlType, cursor.kind())
              + " javadoc");
    }
  }

  /** Asks for the sequence of the cursor, if its numbers are waited for. */
  private @Nullable ColumnNumber counted(Table table, Known known) {
    if (cursor.kind() != Cursor.Kind.SEQUENCE || cursor.writersNeverOverlap()) {
      return null;
    }
    ColumnNumber column = new ColumnNumber(table.oid(), known.number());
    List<Sequences.Numbers> found =
        database.run(
            "read the sequence of cursor '" + cursor.column() + "'",
            Sequences.sql(column),
            statement -> {},
            results -> Sequences.read(results.rows()));
    if (found.isEmpty()) {
      warnings.add(
          "no sequence is known behind cursor '%s' of %s; see that its cache and its step are 1"
              .formatted(cursor.column(), table.label()));
    }
    for (Sequences.Numbers numbers : found) {
      if (!numbers.readable()) {
        warnings.add(
            "numbers beyond sequence %s, as an import may write them, cannot be told from its own; grant"
                    .formatted(numbers.name())
                + " select on it");
      }
    }
    return column;
  }

  /** A local time is one of the server's clock in a zone without summer. */
  private void requireOffset(CursorType type) {
    if (cursor.kind() != Cursor.Kind.SERVER_TIME) {
      return;
    }
    boolean local = type == CursorType.TIMESTAMP;
    if (local && cursor.offset().isEmpty()) {
      throw new SourceException(
          "cursor '%s' is of type timestamp without time zone: say by Cursor.in(ZoneOffset) in which fixed"
                  .formatted(cursor.column())
              + " offset all sessions write it. Where they have a zone with summer time, an hour comes"
              + " twice; make the column timestamptz then");
    }
    if (!local && cursor.offset().isPresent()) {
      throw new SourceException(
          "cursor '%s' is of type timestamptz, which is the same in all time zones; leave Cursor.in out"
              .formatted(cursor.column()));
    }
  }

  /** What a subscription brings was written by another server. */
  private void warnOfReplication(Table table) {
    if (cursor.writersNeverOverlap()) {
      return;
    }
    boolean[] found =
        database.run(
            "look for a subscription to " + table.label(),
            """
            select exists (
                select 1 from pg_subscription_rel r
                where r.srrelid = cast(? as bigint)::oid
                  or r.srrelid in (
                    select t.relid from pg_partition_tree(cast(? as bigint)::oid::regclass) t)),
              exists (
                select 1 from pg_trigger g
                where g.tgrelid = cast(? as bigint)::oid and not g.tgisinternal
                  and g.tgenabled in ('A', 'R'))
            """,
            statement -> {
              statement.setLong(1, table.oid());
              statement.setLong(2, table.oid());
              statement.setLong(3, table.oid());
            },
            results -> {
              ResultSet row = first(results.rows());
              return new boolean[] {row.getBoolean(1), row.getBoolean(2)};
            });
    if (!found[0]) {
      return;
    }
    if (cursor.kind() != Cursor.Kind.TRANSACTION_ID) {
      warnings.add(
          "a subscription writes to %s, and what it brings has values of another server, in any order; use"
                  .formatted(table.label())
              + " Cursor.transactionId(...) with a trigger that is enabled always");
    } else if (!found[1]) {
      warnings.add(
          "a subscription writes to %s, for which ordinary triggers do not fire; alter table %s enable"
                  .formatted(table.label(), table.from())
              + " always trigger the one that sets "
              + cursor.column());
    }
  }

  private List<SourceColumn> tombstoneColumns(
      Table table, OrderedColumn first, List<OrderedColumn> key) {
    Map<String, Known> columns = columns(table);
    List<OrderedColumn> needed = new ArrayList<>(List.of(first));
    needed.addAll(key);
    for (OrderedColumn each : needed) {
      Known known = column("tombstone's column", each.name(), table.label(), columns);
      if (!known.type().equals(each.sqlType()) || !known.notNull()) {
        throw new SourceException(
            "column '%s' of tombstones %s is of type %s%s; it must be %s and not null, as in the source"
                .formatted(
                    each.name(),
                    table.label(),
                    known.type(),
                    known.notNull() ? "" : " and may be null",
                    each.sqlType()));
      }
    }
    List<String> ordered = needed.stream().map(OrderedColumn::name).distinct().toList();
    if (indexes(table).stream().noneMatch(each -> each.begins(ordered))) {
      warnings.add(noIndex(table.label(), table.from(), ordered));
    }
    return columns.entrySet().stream()
        .map(each -> new SourceColumn(each.getKey(), each.getValue().type()))
        .toList();
  }

  private void warnOfNoIndex(
      String label,
      String from,
      SourceDescription description,
      List<KnownIndex> indexes,
      String plan) {
    List<String> ordered = new ArrayList<>(List.of(description.cursor().name()));
    description.key().stream()
        .map(OrderedColumn::name)
        .filter(name -> !ordered.contains(name))
        .forEach(ordered::add);
    if (indexes.stream().noneMatch(each -> each.begins(ordered))) {
      warnings.add(noIndex(label, from, ordered) + "; the plan is " + plan);
    }
  }

  private static String noIndex(String label, String from, List<String> columns) {
    return "no index of %s begins with %s, so each look may read all of it; create index on %s (%s)"
        .formatted(
            label,
            columns,
            from,
            columns.stream().map(Names::quoted).collect(Collectors.joining(", ")));
  }

  private static ResultSet first(ResultSet rows) throws SQLException {
    if (!rows.next()) {
      throw new SQLException("the catalog gave no row", "02000");
    }
    return rows;
  }

  private interface Asked<T> {
    T get() throws SQLException;
  }

  private static <T> T unchecked(Asked<T> asked) {
    try {
      return asked.get();
    } catch (SQLException e) {
      throw new SourceException("the driver could not say what a query returns", e);
    }
  }
}
