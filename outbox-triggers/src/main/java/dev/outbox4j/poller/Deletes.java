package dev.outbox4j.poller;

import dev.outbox4j.poller.internal.Checks;
import java.util.Objects;
import java.util.Optional;

/** How a poller learns of rows that are deleted: it cannot see what is gone. Immutable. */
public final class Deletes {
  private static final Deletes IGNORED = new Deletes(null, null);

  private final Optional<String> column;
  private final Optional<Source> tombstones;

  private Deletes(
      @org.jspecify.annotations.Nullable String column,
      @org.jspecify.annotations.Nullable Source tombstones) {
    this.column = Optional.ofNullable(column);
    this.tombstones = Optional.ofNullable(tombstones);
  }

  /** {@return that nothing tells of deletes, and the handler does not need to know} */
  public static Deletes ignored() {
    return IGNORED;
  }

  /**
   * Rows are deleted by a mark in a column, and their cursor moves with it. A row with the mark has
   * {@link RowOperation#DELETE}.
   *
   * @param column a {@code boolean}, which is true of deleted rows, or of any other type, which is
   *     not null of deleted rows
   * @return this policy
   * @throws IllegalArgumentException if the name is blank, has a NUL, or is longer than 63 bytes
   */
  public static Deletes softDelete(String column) {
    return new Deletes(Checks.identifier("soft-delete column", column), null);
  }

  /**
   * A trigger writes the key of each deleted row to a table, with a cursor that is kept as that of
   * the source, by the same sequence if by one. Its rows are read together with those of the
   * source, in the order of both, and have {@link RowOperation#DELETE}.
   *
   * @param table a table that has the columns of the cursor and the key, by the same names and
   *     types; its {@linkplain Source#key key} is not asked for
   * @return this policy
   * @throws IllegalArgumentException if it is a query
   */
  public static Deletes tombstones(Source table) {
    Objects.requireNonNull(table, "table");
    if (table.sql().isPresent()) {
      throw new IllegalArgumentException(
          "tombstones '%s' are a query; name a table".formatted(table.name()));
    }
    return new Deletes(null, table);
  }

  /** {@return the column of soft deletes, if they are} */
  public Optional<String> softDeleteColumn() {
    return column;
  }

  /** {@return the table of tombstones, if there is one} */
  public Optional<Source> tombstoneTable() {
    return tombstones;
  }

  @Override
  public String toString() {
    return column
        .map(name -> "soft delete " + name)
        .orElseGet(() -> tombstones.map(table -> "tombstones " + table).orElse("ignored"));
  }
}
