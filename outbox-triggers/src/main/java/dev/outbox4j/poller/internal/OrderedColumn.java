package dev.outbox4j.poller.internal;

/**
 * A column by which rows are ordered: the cursor, or a part of the key.
 *
 * @param name its name
 * @param sqlType its type, as the catalog writes it
 * @param type as what it is compared
 */
record OrderedColumn(String name, String sqlType, CursorType type) {
  String parameter() {
    return type.parameter(sqlType);
  }
}
