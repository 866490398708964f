package dev.outbox4j.spring;

import dev.outbox4j.migrations.DeadLetterMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.QueueDepth;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.jdbc.core.JdbcTemplate;

/**
 * The actuator endpoint {@code outbox}: what the subscribers of this process do, what the queues
 * hold, and what waits among the dead letters. It reads, and changes nothing; it shows no payload.
 */
@Endpoint(id = "outbox")
public final class OutboxEndpoint {
  private static final int COUNT_LIMIT = 10_000;
  private static final int TIMEOUT_SECONDS = 5;

  private final OutboxProperties properties;
  private final String table;
  private final PostgresOutbox outbox;
  private final JdbcTemplate jdbc;
  private final OutboxLifecycle lifecycle;

  OutboxEndpoint(
      OutboxProperties properties,
      PostgresOutbox outbox,
      PostgresStore store,
      OutboxLifecycle lifecycle) {
    this.properties = properties;
    this.table = store.table().toString();
    this.outbox = outbox;
    this.jdbc = new JdbcTemplate(store.dataSource());
    this.jdbc.setQueryTimeout(TIMEOUT_SECONDS);
    this.lifecycle = lifecycle;
  }

  /**
   * Looks at all. Asks the database twice; each count stops at 10,000.
   *
   * @return what there is
   */
  @ReadOperation
  public Overview overview() {
    return new Overview(
        table,
        OutboxStatusCheck.bySubscriber(lifecycle.health()),
        outbox.depths().stream().map(Queue::of).toList(),
        properties.deleteTerminalFailures() ? List.of() : deadLetters());
  }

  private List<DeadLetters> deadLetters() {
    DeadLetterMigrations place = Tables.migrations(properties).deadLetters();
    return jdbc.query(
        """
        select queue, count(*), min(failed_at), max(failed_at)
        from (select queue, failed_at from "%s"."%s" where resolved_at is null limit %d) d
        group by queue order by queue
        """
            .formatted(place.schema(), place.table(), COUNT_LIMIT),
        (row, number) ->
            new DeadLetters(
                row.getString(1),
                row.getLong(2),
                row.getTimestamp(3).toInstant(),
                row.getTimestamp(4).toInstant()));
  }

  /**
   * What there is.
   *
   * @param outbox the table
   * @param subscribers the subscribers of this process, by their names
   * @param queues the queues that hold rows, also those that nobody subscribes to
   * @param deadLetters the unresolved dead letters of each queue, of all processes
   */
  public record Overview(
      String outbox,
      Map<String, Map<String, Object>> subscribers,
      List<Queue> queues,
      List<DeadLetters> deadLetters) {}

  /**
   * What a queue holds.
   *
   * @param queue its name
   * @param ready rows that are due and not leased
   * @param leased rows that a subscriber holds
   * @param dueLater rows that are not due yet
   * @param capped whether counting stopped, so there may be more of each
   * @param oldestReadySeconds how long the oldest ready row has been due
   */
  public record Queue(
      String queue,
      long ready,
      long leased,
      long dueLater,
      boolean capped,
      @Nullable Double oldestReadySeconds) {

    static Queue of(QueueDepth depth) {
      Optional<Double> seconds = depth.oldestReady().map(age -> age.toMillis() / 1000.0);
      return new Queue(
          depth.queue(),
          depth.ready(),
          depth.leased(),
          depth.dueLater(),
          depth.capped(),
          seconds.orElse(null));
    }
  }

  /**
   * The unresolved dead letters of a queue.
   *
   * @param queue the queue they came from
   * @param count how many; all queues together are counted up to 10,000
   * @param oldest when the first of them failed for good
   * @param newest when the last of them did
   */
  public record DeadLetters(String queue, long count, Instant oldest, Instant newest) {}
}
