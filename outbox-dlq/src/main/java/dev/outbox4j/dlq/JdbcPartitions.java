package dev.outbox4j.dlq;

import dev.outbox4j.dlq.PartitionSql.Range;
import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.internal.schema.Period;
import dev.outbox4j.internal.schema.Place;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.postgres.internal.Results;
import dev.outbox4j.postgres.internal.ServerTime;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The statements on the partitions of a dead-letter table. Thread-safe. */
final class JdbcPartitions {
  /** Of the statement that reads a default partition which has caught very many letters. */
  private static final Duration LONGEST = Duration.ofMinutes(30);

  /** As much as clocks of two servers differ, or more. */
  private static final Duration AHEAD = Duration.ofDays(1);

  private final Jdbc jdbc;
  private final Jdbc slow;
  private final String name;
  private final String table;
  private final PartitionSql sql;

  JdbcPartitions(PostgresOutbox outbox, DeadLetterQueue deadLetters) {
    this.jdbc =
        new Jdbc(outbox.dataSource(), outbox.table(), PostgresOutbox.DEFAULT_NETWORK_TIMEOUT);
    this.slow = new Jdbc(outbox.dataSource(), outbox.table(), LONGEST);
    String schema = deadLetters.schema().orElse(outbox.table().schema().orElse(null));
    this.table = deadLetters.table();
    this.name = schema == null ? table : schema + "." + table;
    this.sql =
        new PartitionSql(
            Names.qualified(schema, table),
            outbox.table().qualifiedName(),
            Names.qualified(schema, Names.ofDeadLetters(Place.DEAD_LETTER_TRIPS, table)),
            Names.qualified(schema, Names.ofDeadLetters(Place.DEAD_LETTER_AUDIT, table)),
            Names.deadLetterUntil(table));
  }

  /**
   * What the catalog says.
   *
   * @param partitioned whether the table is partitioned
   * @param period by the comment on it, if that says so
   * @param schema in which it is
   * @param now the server's time
   * @param partitions the partitions, those of the oldest letters first
   */
  record Look(
      boolean partitioned,
      Optional<Period> period,
      String schema,
      Instant now,
      List<Partition> partitions) {
    Look {
      partitions = List.copyOf(partitions);
    }
  }

  Look look() {
    return jdbc.run(
        "look at the partitions of " + name,
        connection -> {
          try (PreparedStatement statement = connection.prepareStatement(sql.look())) {
            Results results = Results.of(statement).next();
            try (ResultSet row = results.rows()) {
              row.next();
              Instant now = ServerTime.read(row, 4);
              return new Look(
                  row.getBoolean(1),
                  Period.in(row.getString(2)),
                  row.getString(3),
                  now,
                  partitions(results.next(), now));
            }
          }
        });
  }

  private static List<Partition> partitions(Results results, Instant now) throws SQLException {
    List<Partition> partitions = new ArrayList<>();
    try (ResultSet rows = results.rows()) {
      while (rows.next()) {
        partitions.add(
            new Partition(
                rows.getString(2),
                Names.qualified(rows.getString(1), rows.getString(2)),
                ServerTime.readNullable(rows, 4),
                ServerTime.readNullable(rows, 5),
                rows.getBoolean(3),
                closedAt(rows.getString(6), now),
                rows.getLong(7),
                rows.getBoolean(8)));
      }
    }
    return partitions;
  }

  /**
   * What is no time says nothing, and neither does one far ahead: nobody knows since when. One that
   * is a little ahead stays, since it may be this server's clock that is behind: a mark of that one
   * would be older than it may be.
   */
  private static @Nullable Instant closedAt(@Nullable String text, Instant now) {
    try {
      Instant at = text == null ? null : Instant.parse(text);
      return at == null || at.isAfter(now.plus(AHEAD)) ? null : at;
    } catch (DateTimeParseException e) {
      return null;
    }
  }

  /** What a new partition is called, by the day on which its time begins. */
  String newName(Instant from) {
    return Names.deadLetterPartition(table, Period.DAY.firstDay(from));
  }

  boolean hasUnresolved(Partition partition) {
    return value(sql.unresolved(partition.quoted()), row -> row.getBoolean(1));
  }

  /** How many letters a partition has, up to 10,000. */
  long count(Partition partition) {
    return value(sql.caught(partition.quoted()), row -> row.getLong(1));
  }

  /** Creates a table beside the others, unless it is there. */
  void create(Look look, String newName) {
    execute(jdbc, "create a partition of", sql.create(quoted(look, newName)), null);
  }

  void attach(Look look, String newName, Range range) {
    execute(jdbc, "attach a partition of", sql.attach(quoted(look, newName), range), null);
  }

  /** Drops a table that was created and is no partition. */
  void discard(Look look, String newName) {
    execute(jdbc, "create a partition of", sql.discard(quoted(look, newName)), null);
  }

  private static String quoted(Look look, String name) {
    return Names.qualified(look.schema(), name);
  }

  void exclude(Look look, Partition partition, Range range) {
    String text = sql.exclude(partition.quoted(), look.schema(), range);
    execute(jdbc, "create a partition of", text, null);
  }

  void validate(Partition partition) {
    execute(slow, "create a partition of", sql.validate(partition.quoted()), null);
  }

  void include(Look look, Partition partition) {
    String text = sql.include(partition.quoted(), look.schema());
    execute(jdbc, "create a partition of", text, null);
  }

  void close(Partition partition) {
    execute(jdbc, "note a partition of", sql.close(partition.quoted()), null);
  }

  void reopen(Partition partition) {
    execute(jdbc, "note a partition of", sql.reopen(partition.quoted()), null);
  }

  void drop(Partition partition, boolean withUnresolved, String by, String words) {
    Instant to = Objects.requireNonNull(partition.to(), "the default partition");
    String text = sql.drop(partition.quoted(), to, withUnresolved, words);
    execute(jdbc, "drop a partition of", text, by);
  }

  /**
   * Where the look at histories is.
   *
   * @param letter the letter of the last one
   * @param redrivenAt when that was put back
   */
  record HistoryKey(long letter, String redrivenAt) {
    static final HistoryKey START = new HistoryKey(Long.MIN_VALUE, "-infinity");
  }

  /**
   * Entries in the audit of partitions that were dropped, and histories of whose letters were not.
   */
  List<Long> drops() {
    return jdbc.run(
        "look at the audit of " + name,
        connection -> {
          try (PreparedStatement statement = connection.prepareStatement(sql.drops());
              ResultSet rows = Results.of(statement).next().next().rows()) {
            List<Long> drops = new ArrayList<>();
            while (rows.next()) {
              drops.add(rows.getLong(1));
            }
            return drops;
          }
        });
  }

  /**
   * Looks at the next histories, and deletes those of letters that are not there any more.
   *
   * @param after the last one that was looked at
   * @param drops the entries in the audit that it is done for
   * @return the last one that was looked at now; empty if there is none left
   */
  Optional<HistoryKey> deleteHistories(HistoryKey after, List<Long> drops) {
    return jdbc.run(
        "delete histories of " + name,
        connection -> {
          try (PreparedStatement statement = connection.prepareStatement(sql.histories())) {
            statement.setLong(1, after.letter());
            statement.setString(2, after.redrivenAt());
            statement.setArray(3, connection.createArrayOf("bigint", drops.toArray()));
            try (ResultSet row = Results.of(statement).next().next().rows()) {
              return row.next()
                  ? Optional.of(new HistoryKey(row.getLong(1), ServerTime.read(row, 2).toString()))
                  : Optional.empty();
            }
          }
        });
  }

  /** Notes that the histories of partitions that were dropped are deleted, too. */
  void endDrops(List<Long> drops) {
    jdbc.run(
        "write to the audit of " + name,
        connection -> {
          try (PreparedStatement statement = connection.prepareStatement(sql.endDrops())) {
            statement.setArray(1, connection.createArrayOf("bigint", drops.toArray()));
            return statement.execute();
          }
        });
  }

  private interface RowReader<T> {
    T read(ResultSet row) throws SQLException;
  }

  private <T> T value(String text, RowReader<T> reader) {
    return jdbc.run(
        "look at the partitions of " + name,
        connection -> {
          try (PreparedStatement statement = connection.prepareStatement(text);
              ResultSet row = Results.of(statement).next().next().rows()) {
            row.next();
            return reader.read(row);
          }
        });
  }

  private void execute(Jdbc on, String what, String text, @Nullable String by) {
    on.run(
        what + " " + name,
        connection -> {
          try (PreparedStatement statement = connection.prepareStatement(text)) {
            if (by != null) {
              statement.setString(1, by);
            }
            return statement.execute();
          }
        });
  }
}
