package dev.outbox4j.internal;

import dev.outbox4j.AckMode;
import dev.outbox4j.ExceptionRenderer;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.spi.DeadLetterWriter;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.SubscriberEvents;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/** All settings of a subscriber, checked. */
public record SubscriberSettings(
    String name,
    List<String> queues,
    OutboxStore store,
    @Nullable NotificationSource source,
    @Nullable DeadLetterWriter deadLetters,
    HandlerTable handlers,
    List<SubscriberEvents> observers,
    Work work,
    Claiming claiming,
    Failing failing,
    Stopping stopping) {

  /** {@return the pooled connections a subscriber holds at the peak: to claim, and to settle} */
  public int connections() {
    return 2;
  }

  /** How handlers run. */
  public record Work(
      int workers,
      @Nullable Executor executor,
      boolean virtualThreads,
      @Nullable Duration handlerTimeout) {}

  /** How rows are claimed and held. */
  public record Claiming(
      int batchSize, Duration lease, Duration minPoll, Duration maxPoll, Duration maxPollUnheard) {}

  /** What happens on failure; {@code maxDeliveries} 0 is unbounded. */
  public record Failing(
      RetryPolicy retry,
      boolean retryChosen,
      AckMode ackMode,
      int maxDeliveries,
      ExceptionRenderer renderer,
      int maxExceptionBytes) {}

  /** How the subscriber stops. */
  public record Stopping(Duration gracefulTimeout, boolean onShutdown) {}
}
