package dev.outbox4j.migrations;

import dev.outbox4j.internal.schema.Buckets;
import dev.outbox4j.internal.schema.Names;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.configuration.FluentConfiguration;

/**
 * The migrations of the ordered queues of an outbox: two small tables, and for each ordered queue
 * three indexes on the outbox that have this queue's rows alone. An outbox without ordered queues
 * needs none of it, and its other queues pay nothing for it. Immutable.
 */
public final class OrderedMigrations {
  /** The version to which these migrations bring the tables: {@value}. */
  public static final int LATEST_VERSION = 1;

  private static final int MAX_QUEUE_BYTES = 255;

  private final String schema;
  private final String outbox;
  private final List<String> queues;

  private OrderedMigrations(String schema, String outbox, List<String> queues) {
    this.schema = schema;
    this.outbox = outbox;
    this.queues = queues;
  }

  /**
   * Returns the migrations of the ordered queues of an outbox.
   *
   * @param schema the outbox's schema
   * @param outbox the outbox table, which must be there before
   * @param queues the queues that are to be ordered, at least one; those that a former call named
   *     stay as they are
   * @return the migrations
   * @throws IllegalArgumentException if a name is not allowed, or there is no queue
   */
  public static OrderedMigrations of(String schema, String outbox, String... queues) {
    Names.requireIdentifier("schema name", schema);
    Names.requireOutbox("table name", outbox);
    if (queues.length == 0) {
      throw new IllegalArgumentException("There is no queue; name those that are to be ordered");
    }
    for (String queue : queues) {
      Objects.requireNonNull(queue, "queue");
      if (queue.isBlank() || queue.indexOf(0) >= 0 || Names.bytes(queue) > MAX_QUEUE_BYTES) {
        throw new IllegalArgumentException(
            "A queue's name is blank, has a NUL or more than %d bytes; no message can have it"
                .formatted(MAX_QUEUE_BYTES));
      }
    }
    return new OrderedMigrations(schema, outbox, List.of(queues));
  }

  /**
   * Applies what is missing: the tables, and then the indexes, each built concurrently, so that
   * nobody waits for it who publishes or subscribes meanwhile. See {@link OutboxMigrations#migrate}
   * for the connections it needs.
   *
   * @param dataSource connections of the outbox's owner
   * @return how many migrations of the tables were applied; 0 if all were already
   * @throws org.flywaydb.core.api.FlywayException if a migration fails
   * @throws IllegalStateException if an index cannot be built; what is there of it is removed when
   *     this is called again
   */
  public int migrate(DataSource dataSource) {
    Objects.requireNonNull(dataSource, "dataSource");
    int applied = Scripts.migrate(configure(Flyway.configure().dataSource(dataSource)));
    try (Connection connection = dataSource.getConnection();
        Statement statement = connection.createStatement()) {
      boolean autoCommit = connection.getAutoCommit();
      connection.setAutoCommit(true); // an index cannot be built concurrently otherwise
      try {
        for (String queue : queues) {
          for (Index index : indexes(queue)) {
            if (index.isInvalid(statement)) {
              statement.execute(index.drop());
            }
            statement.execute(index.create("concurrently "));
          }
          statement.execute(fill(queue));
        }
      } finally {
        connection.setAutoCommit(autoCommit);
      }
    } catch (SQLException e) {
      throw new IllegalStateException(
          "the indexes of ordered queues on %s could not be built: %s"
              .formatted(Names.qualified(schema, outbox), e.getMessage()),
          e);
    }
    return applied;
  }

  /**
   * Sets location, schema, history table and placeholders on a Flyway configuration that is used
   * for the two tables alone. The indexes are {@link #queuesSql()}.
   *
   * @param flyway the configuration, with its data source
   * @return the same
   */
  public FluentConfiguration configure(FluentConfiguration flyway) {
    return Scripts.ORDERED.configure(flyway, schema, Names.orderedHistory(outbox), placeholders());
  }

  /**
   * Returns everything as SQL, to be run once and in one transaction. The outbox cannot be written
   * while its indexes are built: on a large one use {@link #migrate}.
   *
   * @return the SQL
   */
  public String sql() {
    return Scripts.ORDERED.sql(0, LATEST_VERSION, placeholders()) + queuesSql();
  }

  /**
   * Returns what the queues need, as SQL that may be run again.
   *
   * @return the SQL
   */
  public String queuesSql() {
    StringBuilder sql = new StringBuilder();
    for (String queue : queues) {
      indexes(queue).forEach(index -> sql.append(index.create("")).append(";\n"));
      sql.append(fill(queue)).append(";\n");
    }
    return sql.toString();
  }

  /**
   * Returns what undoes {@link #queuesSql()}, for queues that no ordered subscriber has any more.
   *
   * @return the SQL
   */
  public String dropQueuesSql() {
    StringBuilder sql = new StringBuilder();
    for (String queue : queues) {
      indexes(queue).forEach(index -> sql.append(index.drop()).append(";\n"));
      for (String table : List.of(Names.buckets(outbox), Names.bucketOwners(outbox))) {
        sql.append(
            "delete from %s where queue = %s;\n".formatted(qualified(table), Names.literal(queue)));
      }
    }
    return sql.toString();
  }

  /**
   * Returns what an ordered subscriber needs beyond {@link OutboxMigrations#grantsSql}, as SQL, for
   * the tables' owner to run.
   *
   * @param subscriberRole the role
   * @return the SQL
   * @throws IllegalArgumentException if the name is blank, has control characters or is too long
   */
  public String grantsSql(String subscriberRole) {
    return new Grants(schema, outbox, DeadLetterMigrations.of(schema, Names.deadLetters(outbox)))
        .orderedSubscriber(subscriberRole)
        .toString();
  }

  private List<Index> indexes(String queue) {
    String where = "queue = " + Names.literal(queue);
    return List.of(
        new Index(
            Names.bucketIndex(outbox, queue),
            Buckets.of("") + ", id",
            where + " and " + Buckets.ofAny("")),
        new Index(
            Names.keyIndex(outbox, queue),
            "ordering_key, id",
            where + " and ordering_key is not null"),
        new Index(
            Names.dueIndex(outbox, queue),
            Buckets.of("") + ", available_at, id",
            where + " and " + Buckets.dueLater("")));
  }

  private String fill(String queue) {
    return "insert into %s (queue, bucket) select %s, bucket from generate_series(0, %d) bucket on conflict do nothing"
        .formatted(qualified(Names.buckets(outbox)), Names.literal(queue), Buckets.COUNT - 1);
  }

  private String qualified(String table) {
    return Names.qualified(schema, table);
  }

  private final class Index {
    private final String name;
    private final String columns;
    private final String where;

    Index(String name, String columns, String where) {
      this.name = name;
      this.columns = columns;
      this.where = where;
    }

    String create(String how) {
      return "create index %sif not exists %s on %s (%s) where %s"
          .formatted(how, Names.quoted(name), qualified(outbox), columns, where);
    }

    String drop() {
      return "drop index if exists " + qualified(name);
    }

    /** What was broken off while it was built is there, and serves nobody. */
    boolean isInvalid(Statement statement) throws SQLException {
      try (var found =
          statement.executeQuery(
              "select from pg_catalog.pg_index where not indisvalid and indexrelid = to_regclass(%s)"
                  .formatted(Names.literal(qualified(name))))) {
        return found.next();
      }
    }
  }

  private Map<String, String> placeholders() {
    return Map.of("outbox_schema", schema, "outbox_table", outbox);
  }
}
