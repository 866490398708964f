package dev.outbox4j.postgres.internal;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.StoreException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;

/**
 * A write on rows under their leases. Rows are locked in the order of their ids, so that an ack and
 * a renewal of the same rows cannot deadlock. Immutable.
 *
 * @param <T> what is to be written, one for each row
 */
final class FencedStatement<T> {
  private static final String DIVISION_BY_ZERO = "22012";

  private final Jdbc jdbc;
  private final OutboxTable table;
  private final String operation;
  private final String text;
  private final Function<T, LeaseRef> lease;

  FencedStatement(
      Jdbc jdbc, OutboxTable table, String operation, String text, Function<T, LeaseRef> lease) {
    this.jdbc = jdbc;
    this.table = table;
    this.operation = operation;
    this.text = text;
    this.lease = lease;
  }

  /** Writes, and returns the ids of the rows that were still held. */
  Set<Long> execute(Collection<T> updates, Binder<T> binder) {
    if (updates.isEmpty()) {
      return Set.of();
    }
    List<T> sorted =
        updates.stream()
            .sorted(Comparator.comparingLong(update -> lease.apply(update).id()))
            .toList();
    try {
      return jdbc.run(operation, connection -> write(connection, sorted, binder));
    } catch (StoreException e) {
      throw e.getCause() instanceof SQLException cause
              && DIVISION_BY_ZERO.equals(SqlFaults.state(cause))
          ? moreThanAsked(sorted.size(), e)
          : e;
    }
  }

  private Set<Long> write(Connection connection, List<T> sorted, Binder<T> binder)
      throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(text)) {
      binder.bind(new Parameters(statement), new Asked<>(sorted, lease));
      Results results = Results.of(statement);
      try (ResultSet rows = results.next().rows()) {
        Set<Long> ids = new HashSet<>(sorted.size() * 2);
        while (rows.next()) {
          ids.add(rows.getLong(1));
        }
        return ids;
      }
    }
  }

  private StoreException moreThanAsked(int asked, StoreException cause) {
    return new StoreException(
        operation
            + " on "
            + table
            + " found more rows than the "
            + asked
            + " it was asked for, so it changed nothing; ids must be unique: check the primary key",
        StoreException.Fault.SETUP,
        false,
        cause);
  }

  /** Binds what a statement needs, in its order. */
  interface Binder<T> {
    void bind(Parameters parameters, Asked<T> asked) throws SQLException;
  }

  /** What is asked for, by columns. */
  static final class Asked<T> {
    private final List<T> updates;
    private final Function<T, LeaseRef> lease;

    private Asked(List<T> updates, Function<T, LeaseRef> lease) {
      this.updates = updates;
      this.lease = lease;
    }

    List<T> updates() {
      return updates;
    }

    long[] ids() {
      return updates.stream().mapToLong(update -> lease.apply(update).id()).toArray();
    }

    int[] tokens() {
      return updates.stream().mapToInt(update -> lease.apply(update).token()).toArray();
    }

    String[] queues() {
      return updates.stream().map(update -> lease.apply(update).queue()).toArray(String[]::new);
    }

    int count() {
      return updates.size();
    }
  }
}
