package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.Position;
import dev.outbox4j.poller.Position.Side;
import dev.outbox4j.poller.RowChange;
import dev.outbox4j.poller.RowOperation;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A row in quarantine that is to be handled again.
 *
 * @param id its number
 * @param change the row, as it was
 * @param position the position behind it
 * @param attempts how often its handler has failed
 */
record QuarantineEntry(long id, RowChange change, Position position, int attempts) {
  /** The types of a row's values, by which they are read back. */
  static Map<String, String> types(RowChange change) {
    Map<String, String> types = new LinkedHashMap<>();
    change.key().forEach((name, value) -> types.put("key." + name, ValueType.of(value).name()));
    change
        .after()
        .forEach(
            (name, value) -> {
              if (value != null) {
                types.put("after." + name, ValueType.of(value).name());
              }
            });
    return types;
  }

  static QuarantineEntry read(ResultSet row) throws SQLException {
    Map<String, String> types = new HashMap<>();
    pairs(row, 11).forEach((name, type) -> types.put(name, String.valueOf(type)));
    CursorType cursorType = CursorType.named(row.getString(5));
    String cursor = row.getString(6);
    Map<String, Object> key = new LinkedHashMap<>();
    pairs(row, 7)
        .forEach((name, text) -> key.put(name, value(types, "key." + name, String.valueOf(text))));
    Map<String, @Nullable Object> after = new LinkedHashMap<>();
    pairs(row, 9)
        .forEach(
            (name, text) ->
                after.put(name, text == null ? null : value(types, "after." + name, text)));
    RowChange change =
        new RowChange(
            row.getString(2),
            RowOperation.valueOf(row.getString(3)),
            cursorType.value(cursor),
            key,
            after,
            row.getString(4));
    List<String> texts = new ArrayList<>();
    key.values().forEach(value -> texts.add(CursorType.of(value).text(value)));
    return new QuarantineEntry(
        row.getLong(1),
        change,
        Position.of(Side.ROW, cursorType.tag(), cursor, texts),
        row.getInt(13));
  }

  private static Object value(Map<String, String> types, String name, String text) {
    return ValueType.valueOf(types.getOrDefault(name, ValueType.TEXT.name())).fromText(text);
  }

  private static Map<String, @Nullable String> pairs(ResultSet row, int column)
      throws SQLException {
    List<String> names = StateRow.texts(row.getArray(column));
    @Nullable Object[] values = (@Nullable Object[]) row.getArray(column + 1).getArray();
    Map<String, @Nullable String> pairs = new LinkedHashMap<>();
    for (int i = 0; i < values.length; i++) {
      Object value = values[i];
      pairs.put(names.get(i), value == null ? null : value.toString());
    }
    return pairs;
  }
}
