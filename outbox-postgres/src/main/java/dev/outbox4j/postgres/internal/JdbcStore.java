package dev.outbox4j.postgres.internal;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.internal.FencedStatement.Asked;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.RescheduleUpdate;
import dev.outbox4j.spi.RetryUpdate;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.OptionalInt;
import java.util.Set;
import java.util.function.Function;
import javax.sql.DataSource;

/**
 * The store over JDBC. Thread-safe; renders its statements when it is made, and does no I/O then.
 */
public final class JdbcStore implements PostgresStore {
  private final Jdbc jdbc;
  private final OutboxTable table;
  private final Duration networkTimeout;
  private final ClaimStatement claim;
  private final FencedStatement<LeaseRef> ack;
  private final FencedStatement<RetryUpdate> retry;
  private final FencedStatement<RescheduleUpdate> reschedule;
  private final FencedStatement<LeaseRef> renew;
  private final FencedStatement<LeaseRef> release;
  private final String forget;

  /**
   * Creates a store.
   *
   * @param dataSource where to borrow connections
   * @param table the outbox
   * @param networkTimeout how long to wait for an answer before the connection is given up
   */
  public JdbcStore(DataSource dataSource, OutboxTable table, Duration networkTimeout) {
    this.jdbc = new Jdbc(dataSource, table, networkTimeout);
    this.table = table;
    this.networkTimeout = networkTimeout;
    StoreSql sql = new StoreSql(table);
    this.claim = new ClaimStatement(sql);
    this.ack = fenced(sql, "ack", StoreSql.ACK, Function.identity());
    this.retry = fenced(sql, "retry", StoreSql.RETRY, RetryUpdate::lease);
    this.reschedule = fenced(sql, "reschedule", StoreSql.RESCHEDULE, RescheduleUpdate::lease);
    this.renew = fenced(sql, "renew", StoreSql.RENEW, Function.identity());
    this.release = fenced(sql, "release", StoreSql.RELEASE, Function.identity());
    this.forget = sql.render(StoreSql.FORGET);
  }

  private <T> FencedStatement<T> fenced(
      StoreSql sql, String operation, String template, Function<T, LeaseRef> lease) {
    String text = sql.render(StoreSql.PREAMBLE + template);
    return new FencedStatement<>(jdbc, table, operation, text, lease);
  }

  @Override
  public ClaimResult claim(ClaimRequest request) {
    return jdbc.run("claim", connection -> claim.execute(connection, request));
  }

  @Override
  public Set<Long> ack(List<LeaseRef> leases) {
    return ack.execute(leases, (parameters, asked) -> fence(parameters, asked));
  }

  @Override
  public Set<Long> retry(List<RetryUpdate> updates) {
    return retry.execute(
        updates,
        (parameters, asked) ->
            fence(
                    parameters,
                    asked,
                    seconds(asked, RetryUpdate::delay),
                    asked.updates().stream().map(RetryUpdate::error).toArray(String[]::new),
                    asked.updates().stream().mapToInt(update -> update.counted() ? 1 : 0).toArray())
                .text(table.channel()));
  }

  @Override
  public Set<Long> reschedule(List<RescheduleUpdate> updates) {
    return reschedule.execute(
        updates,
        (parameters, asked) ->
            fence(parameters, asked, seconds(asked, RescheduleUpdate::delay))
                .text(table.channel()));
  }

  @Override
  public Set<Long> renew(List<LeaseRef> leases, Duration lease) {
    return renew.execute(leases, (parameters, asked) -> fence(parameters.seconds(lease), asked));
  }

  @Override
  public Set<Long> release(List<LeaseRef> leases) {
    return release.execute(
        leases, (parameters, asked) -> fence(parameters, asked).text(table.channel()));
  }

  @Override
  public void forget(String owner) {
    jdbc.run(
        "forget",
        connection -> {
          try (PreparedStatement statement = connection.prepareStatement(forget)) {
            statement.setString(1, owner);
            return statement.executeUpdate();
          }
        });
  }

  private static Parameters fence(Parameters parameters, Asked<?> asked, Object... columns)
      throws SQLException {
    parameters.object(asked.queues()).object(asked.ids()).object(asked.tokens());
    for (Object column : columns) {
      parameters.object(column);
    }
    return parameters.number(asked.count());
  }

  private static <T> double[] seconds(Asked<T> asked, Function<T, Duration> delay) {
    return asked.updates().stream()
        .mapToDouble(update -> ServerTime.seconds(delay.apply(update)))
        .toArray();
  }

  @Override
  public String channel() {
    return table.channel();
  }

  @Override
  public OptionalInt connectionLimit() {
    return PoolSize.of(jdbc.dataSource());
  }

  @Override
  public Object connectionSource() {
    return jdbc.dataSource();
  }

  @Override
  public DataSource dataSource() {
    return jdbc.dataSource();
  }

  @Override
  public OutboxTable table() {
    return table;
  }

  @Override
  public Duration networkTimeout() {
    return networkTimeout;
  }

  @Override
  public String toString() {
    return "PostgresStore[" + table + "]";
  }
}
