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
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The statements on the partitions of a dead-letter table. Thread-safe. */
final class JdbcPartitions {
  /** Of the statement that reads a default partition which has caught very many letters. */
  private static final Duration LONGEST = Duration.ofMinutes(30);

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
              return new Look(
                  row.getBoolean(1),
                  Period.in(row.getString(2)),
                  row.getString(3),
                  ServerTime.read(row, 4),
                  partitions(results.next()));
            }
          }
        });
  }

  private static List<Partition> partitions(Results results) throws SQLException {
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
                ServerTime.readNullable(rows, 6),
                rows.getLong(7),
                rows.getBoolean(8)));
      }
    }
    return partitions;
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

  void exclude(Partition partition, Range range) {
    execute(jdbc, "create a partition of", sql.exclude(partition.quoted(), range), null);
  }

  void validate(Partition partition) {
    execute(slow, "create a partition of", sql.validate(partition.quoted()), null);
  }

  void include(Partition partition) {
    execute(jdbc, "create a partition of", sql.include(partition.quoted()), null);
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

  /** Deletes some histories of letters of a partition, and says how many. */
  int deleteTrips(Partition partition) {
    return jdbc.run(
        "delete histories of " + name,
        connection -> {
          try (PreparedStatement statement =
              connection.prepareStatement(sql.trips(partition.quoted()))) {
            return Results.of(statement).next().next().updated();
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
