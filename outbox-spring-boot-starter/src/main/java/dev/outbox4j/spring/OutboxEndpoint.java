package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
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

/**
 * The actuator endpoint {@code outbox}: what the subscribers of this process do, what the queues
 * hold, and what waits among the dead letters. It reads, and changes nothing; it shows no payload.
 */
@Endpoint(id = "outbox")
public final class OutboxEndpoint {
  private static final int COUNT_LIMIT = 10_000;

  private final String table;
  private final PostgresOutbox outbox;
  private final @Nullable DeadLetterCounts deadLetters;
  private final OutboxLifecycle lifecycle;

  OutboxEndpoint(
      OutboxProperties properties,
      PostgresOutbox outbox,
      PostgresStore store,
      OutboxLifecycle lifecycle) {
    this.table = store.table().toString();
    this.outbox = outbox;
    this.deadLetters =
        properties.deleteTerminalFailures()
            ? null
            : new DeadLetterCounts(store, Tables.migrations(properties).deadLetters(), COUNT_LIMIT);
    this.lifecycle = lifecycle;
  }

  /**
   * Looks at all. Asks the database twice; each count stops at 10,000.
   *
   * @return what there is; without a database what is known of the subscribers, and why that is all
   */
  @ReadOperation
  public Overview overview() {
    Map<String, Map<String, Object>> subscribers =
        OutboxStatusCheck.bySubscriber(lifecycle.health());
    List<Queue> queues = null;
    try {
      queues = outbox.depths().stream().map(Queue::of).toList();
      return new Overview(
          table, subscribers, queues, deadLetters == null ? List.of() : deadLetters.read(), null);
    } catch (OutboxException e) {
      return new Overview(table, subscribers, queues, null, String.valueOf(e.getMessage()));
    }
  }

  /**
   * What there is.
   *
   * @param outbox the table
   * @param subscribers the subscribers of this process, by their names
   * @param queues the queues that hold rows, also those that nobody subscribes to; null if they
   *     cannot be read
   * @param deadLetters the unresolved dead letters of each queue of this outbox, of all processes;
   *     null if they cannot be read
   * @param error why something is null, else null
   */
  public record Overview(
      String outbox,
      Map<String, Map<String, Object>> subscribers,
      @Nullable List<Queue> queues,
      @Nullable List<DeadLetters> deadLetters,
      @Nullable String error) {}

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
   * @param count how many
   * @param capped whether counting stopped, so there may be more: at 10,000, or where other
   *     outboxes have so many letters of this queue in the table that no more was looked at
   * @param oldest when the first of those counted failed for good; null if none was counted
   * @param newest when the last of all did; null if it was not found
   */
  public record DeadLetters(
      String queue,
      long count,
      boolean capped,
      @Nullable Instant oldest,
      @Nullable Instant newest) {}
}
