package dev.outbox4j.postgres.internal;

import dev.outbox4j.postgres.testing.SingleConnection;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jooq.tools.json.JSONParser;
import org.jooq.tools.json.ParseException;

/**
 * Lends one connection again and again and keeps the plans that were really executed on it, as the
 * server's auto_explain tells them.
 */
final class Plans extends SingleConnection implements AutoCloseable {
  private final Connection connection;
  private final List<Plan> plans = new ArrayList<>();

  Plans(TestDatabase database) throws SQLException {
    this(database.plain().getConnection());
  }

  private Plans(Connection connection) throws SQLException {
    super(connection);
    this.connection = connection;
    try (Statement statement = connection.createStatement()) {
      statement.execute(
          """
          load 'auto_explain';
          set auto_explain.log_min_duration = 0;
          set auto_explain.log_analyze = on;
          set auto_explain.log_buffers = on;
          set auto_explain.log_wal = on;
          set auto_explain.log_timing = off;
          set auto_explain.log_format = 'json';
          set auto_explain.log_level = 'notice'
          """);
    }
  }

  /** All plans, in the order of their execution, since the last call. */
  List<Plan> all() {
    List<Plan> all = List.copyOf(plans);
    plans.clear();
    return all;
  }

  /** The plans that change rows, in the order of their execution, since the last call. */
  List<Plan> writes() {
    List<Plan> writes = plans.stream().filter(plan -> plan.has("ModifyTable")).toList();
    plans.clear();
    return writes;
  }

  /** The one plan that changed rows since the last call. */
  Plan write() {
    List<Plan> writes = writes();
    if (writes.size() != 1) {
      throw new AssertionError(writes.size() + " plans instead of 1: " + writes);
    }
    return writes.get(0);
  }

  @Override
  protected void executed(PreparedStatement statement) throws SQLException {
    for (SQLWarning w = statement.getWarnings(); w != null; w = w.getNextWarning()) {
      int json = w.getMessage().indexOf('{');
      if (json >= 0) {
        plans.add(Plan.parse(w.getMessage().substring(json)));
      }
    }
  }

  @Override
  public void close() throws SQLException {
    connection.close();
  }

  /** An executed plan. */
  record Plan(String text, Map<?, ?> root) {
    static Plan parse(String json) {
      try {
        Map<?, ?> document = (Map<?, ?>) new JSONParser().parse(json);
        return new Plan(json, (Map<?, ?>) document.get("Plan"));
      } catch (ParseException e) {
        throw new IllegalArgumentException(json, e);
      }
    }

    /** All nodes, parents first. */
    Stream<Map<?, ?>> nodes() {
      return nodes(root);
    }

    private static Stream<Map<?, ?>> nodes(Map<?, ?> node) {
      List<?> children = (List<?>) node.get("Plans");
      return Stream.concat(
          Stream.of(node),
          children == null
              ? Stream.empty()
              : children.stream().flatMap(child -> nodes((Map<?, ?>) child)));
    }

    List<String> types() {
      return nodes().map(node -> (String) node.get("Node Type")).toList();
    }

    boolean has(String type) {
      return types().contains(type);
    }

    /** The nodes that scan an index. */
    List<Map<?, ?>> scansOf(String index) {
      List<Map<?, ?>> scans = new ArrayList<>();
      nodes().filter(node -> index.equals(node.get("Index Name"))).forEach(scans::add);
      return scans;
    }

    /** The shared buffers that the whole statement touched. */
    long buffers() {
      return number(root, "Shared Hit Blocks") + number(root, "Shared Read Blocks");
    }

    /**
     * What the statement wrote to the log, images of pages first touched since a checkpoint
     * included.
     */
    long walBytes() {
      return number(root, "WAL Bytes");
    }

    /** The rows that a node gave, over all its loops. */
    static long rows(Map<?, ?> node) {
      return Math.round(
          ((Number) node.get("Actual Rows")).doubleValue() * number(node, "Actual Loops"));
    }

    static long number(Map<?, ?> node, String name) {
      Number value = (Number) node.get(name);
      return value == null ? 0 : value.longValue();
    }

    @Override
    public String toString() {
      return text;
    }
  }
}
