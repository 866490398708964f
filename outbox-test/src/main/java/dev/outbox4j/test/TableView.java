package dev.outbox4j.test;

import dev.outbox4j.FailureReason;
import dev.outbox4j.Payload;
import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.test.internal.StoredRow;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** An outbox on PostgreSQL: each question is a query on a connection of its own. */
final class TableView implements OutboxView {
  /** The headers come as two arrays, so that no JSON has to be read here. */
  private static final String ROW =
      """
      select id, queue, type, ordering_key, timer_id, payload,
        array(select h.key from jsonb_each_text(%1$s) h order by h.key),
        array(select coalesce(h.value, 'null') from jsonb_each_text(%1$s) h order by h.key),
        created_at, available_at, %2$s, deliveries_count, attempts_count, first_attempt_at,
        last_attempt_at, %3$s, %5$s
      from %4$s
      """;

  private static final String HEADERS =
      "case jsonb_typeof(headers) when 'object' then headers else '{}' end";

  /** Dead letters name their outbox as the server resolves it. */
  private static final String OF_OUTBOX =
      """
      where queue = ? and outbox = (
        select n.nspname || '.' || c.relname
        from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
        where c.oid = cast(%s as regclass))
      order by failed_at, id
      """;

  private static final String LEASE = "lease_until, leased_at, lease_token, leased_by";

  private final DataSource dataSource;
  private final OutboxTable table;
  private final @Nullable String deadLetterSchema;
  private final String deadLetters;

  private TableView(
      DataSource dataSource,
      OutboxTable table,
      @Nullable String deadLetterSchema,
      String deadLetters) {
    this.dataSource = Objects.requireNonNull(dataSource, "dataSource");
    this.table = table;
    this.deadLetterSchema = deadLetterSchema;
    this.deadLetters = deadLetters;
  }

  static TableView of(DataSource dataSource, OutboxTable table) {
    Objects.requireNonNull(table, "table");
    return new TableView(
        dataSource, table, table.schema().orElse(null), Names.deadLetters(table.name()));
  }

  TableView deadLettersIn(String other) {
    return in(table.schema().orElse(null), other);
  }

  TableView deadLettersIn(String schema, String other) {
    return in(Names.requireIdentifier("dead-letter schema name", schema), other);
  }

  private TableView in(@Nullable String schema, String other) {
    return new TableView(
        dataSource, table, schema, Names.requireDeadLetters("dead-letter table name", other));
  }

  @Override
  public String name() {
    return "Table " + table.qualifiedName();
  }

  @Override
  public List<OutboxRow> published(@Nullable PayloadCodec codec) {
    return query(rows("order by id"), result -> new OutboxRow(row(result), codec));
  }

  @Override
  public List<OutboxRow> waiting(String queue, @Nullable PayloadCodec codec) {
    return query(
        rows("where queue = ? order by id"), result -> new OutboxRow(row(result), codec), queue);
  }

  @Override
  public List<OutboxRow> due(String queue, @Nullable PayloadCodec codec) {
    return query(
        rows("where queue = ? and available_at <= clock_timestamp() order by id"),
        result -> new OutboxRow(row(result), codec),
        queue);
  }

  private String rows(String which) {
    return ROW.formatted(HEADERS, LEASE, "last_error", table.qualifiedName(), "expires_at") + which;
  }

  @Override
  public List<DeadLetter> deadLettered(String queue, @Nullable PayloadCodec codec) {
    String lease =
        "null::timestamptz as lease_until, null::timestamptz as leased_at, lease_token, null as leased_by";
    String from = Names.qualified(deadLetterSchema, deadLetters);
    return query(
        ROW.formatted(
                HEADERS,
                lease,
                "null as last_error, failure_reason, last_exception, failed_at",
                from,
                "null::timestamptz as expires_at")
            + OF_OUTBOX.formatted(Names.literal(table.qualifiedName())),
        result ->
            new DeadLetter(
                new OutboxRow(row(result), codec),
                FailureReason.ofCode(result.getString("failure_reason")),
                result.getInt("attempts_count"),
                Optional.ofNullable(result.getString("last_exception")),
                instant(result, "failed_at")),
        queue);
  }

  private interface Reader<T> {
    T read(ResultSet row) throws SQLException;
  }

  private <T> List<T> query(String sql, Reader<T> reader, String... parameters) {
    try (Connection connection = dataSource.getConnection();
        PreparedStatement statement = connection.prepareStatement(sql)) {
      for (int i = 0; i < parameters.length; i++) {
        statement.setString(i + 1, parameters[i]);
      }
      List<T> found = new ArrayList<>();
      try (ResultSet rows = statement.executeQuery()) {
        while (rows.next()) {
          found.add(reader.read(rows));
        }
      }
      if (!connection.getAutoCommit()) {
        connection.rollback(); // or a pool may complain of what was only read
      }
      return found;
    } catch (SQLException e) {
      throw new IllegalStateException(
          name() + " could not be read; are the migrations applied? " + e.getMessage(), e);
    }
  }

  private static StoredRow row(ResultSet row) throws SQLException {
    return new StoredRow(
        row.getLong("id"),
        row.getString("queue"),
        row.getString("type"),
        row.getString("ordering_key"),
        row.getString("timer_id"),
        Payload.wrap(row.getBytes("payload")),
        headers(row),
        instant(row, "created_at"),
        instant(row, "available_at"),
        nullable(row, "lease_until"),
        nullable(row, "leased_at"),
        row.getLong("lease_token"),
        row.getString("leased_by"),
        row.getInt("deliveries_count"),
        row.getInt("attempts_count"),
        nullable(row, "first_attempt_at"),
        nullable(row, "last_attempt_at"),
        row.getString("last_error"),
        nullable(row, "expires_at"));
  }

  private static Map<String, String> headers(ResultSet row) throws SQLException {
    String[] names = (String[]) row.getArray(7).getArray();
    String[] values = (String[]) row.getArray(8).getArray();
    Map<String, String> headers = new HashMap<>();
    for (int i = 0; i < names.length; i++) {
      headers.put(names[i], values[i]);
    }
    return Map.copyOf(headers);
  }

  private static Instant instant(ResultSet row, String column) throws SQLException {
    return Objects.requireNonNull(nullable(row, column), column);
  }

  private static @Nullable Instant nullable(ResultSet row, String column) throws SQLException {
    OffsetDateTime time = row.getObject(column, OffsetDateTime.class);
    return time == null ? null : time.toInstant();
  }
}
