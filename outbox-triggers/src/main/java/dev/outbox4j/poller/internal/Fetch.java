package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.Poller;
import dev.outbox4j.poller.Position;
import dev.outbox4j.poller.Position.Side;
import dev.outbox4j.poller.RowChange;
import dev.outbox4j.poller.RowOperation;
import dev.outbox4j.postgres.internal.SqlFaults;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Reads the rows behind a position, in the order of cursor and key. The position is a row
 * comparison, which is a condition of an index that begins with both. Immutable.
 *
 * <p>Of a source with tombstones both tables are read so, each up to the limit, and the results put
 * in order; of the same cursor and key the tombstone is first, since what was deleted and inserted
 * again in one transaction is there.
 */
final class Fetch {
  /** The place of the cursor behind the columns that all rows begin with. */
  private static final int FIRST_COLUMN = 2;

  private final SourceDescription source;
  private final Poller poller;

  /** The cursor, and what of the key is not the cursor. */
  private final List<OrderedColumn> order;

  private Fetch(SourceDescription source, Poller poller) {
    this.source = source;
    this.poller = poller;
    this.order =
        Stream.concat(
                Stream.of(source.cursor()),
                source.key().stream().filter(part -> !part.name().equals(source.cursor().name())))
            .toList();
  }

  static Fetch of(SourceDescription source, Poller poller) {
    return new Fetch(source, poller);
  }

  /** Reads at most so many rows. */
  List<SourceRow> rows(
      SourceDatabase database, Position from, Bound bound, @Nullable Position end, int limit) {
    List<Object> values = new ArrayList<>();
    String sql = sql(from, bound, end, limit, values);
    return database.run(
        "fetch rows of " + source.label(),
        "select " + SourceServer.COLUMNS + ";\n" + sql,
        statement -> bind(statement, values),
        results -> {
          requireServer(bound, results.rows());
          List<SourceRow> rows = new ArrayList<>();
          ResultSet found = results.next().rows();
          while (found.next()) {
            rows.add(read(found));
          }
          return rows;
        });
  }

  /** Whether a row is there. */
  boolean isAny(SourceDatabase database, Position from, Bound bound, @Nullable Position end) {
    List<Object> values = new ArrayList<>();
    String sql = sql(from, bound, end, 1, values);
    return database.run(
        "look for rows of " + source.label() + " that wait",
        "select exists (select from (\n" + sql + ") w)",
        statement -> bind(statement, values),
        results -> {
          ResultSet row = results.rows();
          return row.next() && row.getBoolean(1);
        });
  }

  private static void requireServer(Bound bound, ResultSet answered) throws SQLException {
    SourceServer expected = bound.server();
    answered.next();
    if (expected != null) {
      expected.requireSame(SourceServer.read(answered, 1));
    }
  }

  /** The plan of a fetch from the beginning. */
  String explain(SourceDatabase database) {
    List<Object> values = new ArrayList<>();
    Bound none = new Bound(null, true, Instant.EPOCH, null, null);
    String sql = sql(Position.beginning(), none, null, poller.batchSize(), values);
    return database.run(
        "explain the fetch of " + source.label(),
        "explain (costs off) " + sql,
        statement -> bind(statement, values),
        results -> {
          List<String> lines = new ArrayList<>();
          ResultSet found = results.rows();
          while (found.next()) {
            lines.add(found.getString(1).strip());
          }
          return String.join("; ", lines);
        });
  }

  /** The text of the fetch, and its values in their order. */
  String sql(Position from, Bound bound, @Nullable Position end, int limit, List<Object> values) {
    String rows = branch(source.from(), false, from, bound, end, limit, values);
    String tombstones = source.tombstones();
    if (tombstones == null) {
      return rows;
    }
    return "select * from (\n("
        + rows
        + ")\nunion all\n("
        + branch(tombstones, true, from, bound, end, limit, values)
        + ")) u\norder by "
        + order.stream()
            .map(column -> (FIRST_COLUMN + place(column)) + "")
            .collect(Collectors.joining(", "))
        + ", 1\nlimit "
        + limit;
  }

  private int place(OrderedColumn column) {
    return column.equals(source.cursor()) ? 0 : 1 + source.key().indexOf(column);
  }

  private String branch(
      String table,
      boolean ofTombstones,
      Position from,
      Bound bound,
      @Nullable Position end,
      int limit,
      List<Object> values) {
    StringBuilder sql = new StringBuilder("select ");
    sql.append(ofTombstones ? 0 : 1).append(", ").append(Quoting.column(source.cursor().name()));
    source.key().forEach(part -> sql.append(", ").append(Quoting.column(part.name())));
    columns(sql, source.columns(), !ofTombstones);
    columns(sql, source.tombstoneColumns(), ofTombstones);
    sql.append("\nfrom ").append(table).append(" s\nwhere ");
    sql.append(behind(from, ofTombstones, values));
    upTo(sql, bound.cursor(), bound.inclusive(), values);
    if (end != null) {
      upTo(sql, end.cursor().orElse(null), true, values);
    }
    if (!ofTombstones && poller.condition().isPresent()) {
      sql.append("\n  and (\n").append(poller.condition().get()).append("\n)");
      values.addAll(poller.values());
    }
    sql.append("\norder by ")
        .append(Quoting.columns(order.stream().map(OrderedColumn::name).toList()));
    return sql.append("\nlimit ").append(limit).toString();
  }

  private static void columns(StringBuilder sql, List<SourceColumn> columns, boolean own) {
    for (SourceColumn column : columns) {
      sql.append(", ")
          .append(own ? Quoting.column(column.name()) : "cast(null as " + column.type() + ")");
    }
  }

  private String behind(Position from, boolean ofTombstones, List<Object> values) {
    String cursor = Quoting.column(source.cursor().name());
    return switch (from.side()) {
      case BEGINNING -> cursor + " is not null";
      case BEFORE -> cursor + " >= " + parameter(source.cursor(), cursorOf(from), values);
      case AFTER -> cursor + " > " + parameter(source.cursor(), cursorOf(from), values);
      case ROW -> comparison(">", from, values);
      case TOMBSTONE -> comparison(ofTombstones ? ">" : ">=", from, values);
    };
  }

  private String comparison(String operator, Position from, List<Object> values) {
    List<String> names = new ArrayList<>();
    List<String> parameters = new ArrayList<>();
    for (OrderedColumn column : order) {
      names.add(Quoting.column(column.name()));
      int place = place(column);
      String text = place == 0 ? cursorOf(from) : from.key().get(place - 1);
      parameters.add(parameter(column, text, values));
    }
    return names.size() == 1
        ? names.get(0) + " " + operator + " " + parameters.get(0)
        : "("
            + String.join(", ", names)
            + ") "
            + operator
            + " ("
            + String.join(", ", parameters)
            + ")";
  }

  private static String cursorOf(Position position) {
    return position.cursor().orElseThrow();
  }

  private void upTo(
      StringBuilder sql, @Nullable String cursor, boolean inclusive, List<Object> values) {
    if (cursor != null) {
      sql.append("\n  and ")
          .append(Quoting.column(source.cursor().name()))
          .append(inclusive ? " <= " : " < ")
          .append(parameter(source.cursor(), cursor, values));
    }
  }

  private static String parameter(OrderedColumn column, String text, List<Object> values) {
    values.add(new Typed(column.type(), text));
    return column.parameter();
  }

  private record Typed(CursorType type, String text) {}

  static void bind(PreparedStatement statement, List<Object> values) throws SQLException {
    for (int i = 0; i < values.size(); i++) {
      Object value = values.get(i);
      if (value instanceof Typed typed) {
        typed.type().bind(statement, i + 1, typed.text());
      } else if (value instanceof Instant instant) {
        statement.setObject(i + 1, instant.atOffset(ZoneOffset.UTC));
      } else {
        statement.setObject(i + 1, value);
      }
    }
  }

  private SourceRow read(ResultSet row) throws SQLException {
    boolean tombstone = row.getInt(1) == 0;
    int column = FIRST_COLUMN;
    try {
      Object cursor = source.cursor().type().read(row, column++);
      Map<String, Object> key = new LinkedHashMap<>();
      List<String> texts = new ArrayList<>();
      for (OrderedColumn part : source.key()) {
        texts.add(part.type().text(part.type().read(row, column))); // refuses null
        key.put(part.name(), keyValue(part, row, column++));
      }
      Map<String, @Nullable Object> after = new LinkedHashMap<>();
      int from = tombstone ? column + source.columns().size() : column;
      for (SourceColumn each : tombstone ? source.tombstoneColumns() : source.columns()) {
        after.put(each.name(), each.valueType().read(row, from++));
      }
      RowOperation operation =
          tombstone || isSoftDeleted(after) ? RowOperation.DELETE : RowOperation.UPSERT;
      String text = source.cursor().type().text(cursor);
      return new SourceRow(
          new RowChange(
              eventId(operation, text, texts), operation, cursor, key, after, source.label()),
          Position.of(
              tombstone ? Side.TOMBSTONE : Side.ROW, source.cursor().type().tag(), text, texts));
    } catch (SQLException e) {
      if (SqlFaults.isLost(e)) {
        throw e;
      }
      throw normalize(column, e);
    } catch (RuntimeException e) {
      throw normalize(column, e);
    }
  }

  private static Object keyValue(OrderedColumn part, ResultSet row, int column)
      throws SQLException {
    return Objects.requireNonNull(ValueType.ofColumn(part.sqlType()).read(row, column));
  }

  private NormalizeException normalize(int column, Exception e) {
    return new NormalizeException(
        "a row of %s cannot be read, in column %d of the fetch: %s; correct the row, or move behind it by PollerControl.set"
            .formatted(source.label(), column, e.getMessage()),
        e);
  }

  private boolean isSoftDeleted(Map<String, @Nullable Object> after) {
    if (source.softDelete() < 0) {
      return false;
    }
    Object mark = after.get(source.columns().get(source.softDelete()).name());
    return mark instanceof Boolean deleted ? deleted : mark != null;
  }

  private String eventId(RowOperation operation, String cursor, List<String> key) {
    List<String> parts = new ArrayList<>();
    parts.add(poller.name());
    parts.add(source.label());
    parts.add(operation.name());
    parts.add(cursor);
    parts.addAll(key);
    return Hashes.of(parts);
  }
}
