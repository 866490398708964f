package dev.outbox4j.poller.internal;

/**
 * A column of a source.
 *
 * @param name its name
 * @param type its type, as the catalog writes it
 */
record SourceColumn(String name, String type) {
  ValueType valueType() {
    return ValueType.ofColumn(type);
  }
}
