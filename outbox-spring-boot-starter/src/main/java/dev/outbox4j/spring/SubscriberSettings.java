package dev.outbox4j.spring;

import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.spring.OutboxProperties.Retry;
import dev.outbox4j.spring.OutboxProperties.Subscriber;
import java.time.Duration;
import java.util.Objects;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The properties of one queue's subscriber: its own where they are set, else those of all. */
final class SubscriberSettings {
  private final String queue;
  private final @Nullable Subscriber own;
  private final Subscriber all;
  private final boolean ordered;
  private final boolean virtualByDefault;

  /**
   * Takes the properties.
   *
   * @param queue the queue
   * @param own those of the queue, if there are any
   * @param all those of all queues
   * @param ordered whether the queue is
   * @param virtualByDefault whether handlers run on virtual threads if no property says
   */
  SubscriberSettings(
      String queue,
      @Nullable Subscriber own,
      Subscriber all,
      boolean ordered,
      boolean virtualByDefault) {
    this.queue = queue;
    this.own = own;
    this.all = all;
    this.ordered = ordered;
    this.virtualByDefault = virtualByDefault;
  }

  void applyTo(OutboxSubscriber.Builder builder) {
    applyWithoutThreads(builder);
    if (is(Subscriber::virtualThreads, virtualByDefault)) {
      builder.virtualThreads();
    }
  }

  /** For who runs the handlers on threads of its own. */
  void applyWithoutThreads(OutboxSubscriber.Builder builder) {
    set(Subscriber::workers, builder, OutboxSubscriber.Builder::workers);
    set(Subscriber::batchSize, builder, OutboxSubscriber.Builder::batchSize);
    set(Subscriber::lease, builder, OutboxSubscriber.Builder::lease);
    set(Subscriber::pollWithoutListener, builder, OutboxSubscriber.Builder::pollWithoutListener);
    set(Subscriber::gracefulTimeout, builder, OutboxSubscriber.Builder::gracefulTimeout);
    set(Subscriber::ackMode, builder, OutboxSubscriber.Builder::ackMode);
    setPolls(builder);
    setBounds(builder);
    setRetry(builder);
    setOrder(builder);
    setLimit(builder);
    if (is(Subscriber::logExceptionMessages, false)) {
      builder.logExceptionMessages();
    }
  }

  /** What is set for all queues is meant for the ordered ones among them. */
  private void setOrder(OutboxSubscriber.Builder builder) {
    if (ordered) {
      builder.ordered();
    }
    boolean ofThisQueue = own != null && own.holdKeyOnDeadLetter() != null;
    if ((ordered || ofThisQueue) && is(Subscriber::holdKeyOnDeadLetter, false)) {
      builder.holdKeyOnDeadLetter();
    }
  }

  /** What is set for all queues is meant for those that are not ordered. */
  private void setLimit(OutboxSubscriber.Builder builder) {
    boolean ofThisQueue = own != null && own.concurrencyLimit() != null;
    if (!ordered || ofThisQueue) {
      set(Subscriber::concurrencyLimit, builder, (of, most) -> of.concurrencyLimit(queue, most));
    }
  }

  private void setPolls(OutboxSubscriber.Builder builder) {
    Duration min = value(Subscriber::pollMin);
    Duration max = value(Subscriber::pollMax);
    if (min != null || max != null) {
      builder.poll(
          Objects.requireNonNullElse(min, OutboxSubscriber.Builder.DEFAULT_MIN_POLL),
          Objects.requireNonNullElse(max, OutboxSubscriber.Builder.DEFAULT_MAX_POLL));
    }
  }

  /** A bound and its absence are one setting, so a queue's own replaces either of all. */
  private void setBounds(OutboxSubscriber.Builder builder) {
    Subscriber time = holder(Subscriber::handlerTimeout, Subscriber::unlimitedHandlerTime);
    setIfGiven(time.handlerTimeout(), builder, OutboxSubscriber.Builder::handlerTimeout);
    if (Boolean.TRUE.equals(time.unlimitedHandlerTime())) {
      builder.unlimitedHandlerTime();
    }
    Subscriber deliveries = holder(Subscriber::maxDeliveries, Subscriber::unlimitedDeliveries);
    setIfGiven(deliveries.maxDeliveries(), builder, OutboxSubscriber.Builder::maxDeliveries);
    if (Boolean.TRUE.equals(deliveries.unlimitedDeliveries())) {
      builder.unlimitedDeliveries();
    }
  }

  private Subscriber holder(
      Function<Subscriber, @Nullable Object> one, Function<Subscriber, @Nullable Object> other) {
    return own != null && (one.apply(own) != null || other.apply(own) != null) ? own : all;
  }

  private void setRetry(OutboxSubscriber.Builder builder) {
    Integer attempts = retry(Retry::attempts);
    Duration initial = retry(Retry::initial);
    Double multiplier = retry(Retry::multiplier);
    Duration max = retry(Retry::max);
    Double jitter = retry(Retry::jitter);
    Duration maxTotalTime = retry(Retry::maxTotalTime);
    if (Stream.of(attempts, initial, multiplier, max, jitter, maxTotalTime)
        .allMatch(Objects::isNull)) {
      return;
    }
    // what is not set is as in RetryPolicy.standard()
    RetryPolicy policy =
        RetryPolicy.exponential(
                Objects.requireNonNullElse(initial, Duration.ofSeconds(1)),
                Objects.requireNonNullElse(multiplier, 2.0))
            .max(Objects.requireNonNullElse(max, Duration.ofSeconds(300)))
            .jitter(Objects.requireNonNullElse(jitter, 0.2))
            .attempts(Objects.requireNonNullElse(attempts, RetryPolicy.standard().maxAttempts()));
    builder.retry(maxTotalTime == null ? policy : policy.maxTotalTime(maxTotalTime));
  }

  private <T> @Nullable T retry(Function<Retry, @Nullable T> property) {
    T mine = own == null ? null : property.apply(own.retry());
    return mine != null ? mine : property.apply(all.retry());
  }

  private <T> @Nullable T value(Function<Subscriber, @Nullable T> property) {
    T mine = own == null ? null : property.apply(own);
    return mine != null ? mine : property.apply(all);
  }

  private boolean is(Function<Subscriber, @Nullable Boolean> property, boolean otherwise) {
    return Objects.requireNonNullElse(value(property), otherwise);
  }

  private <T> void set(
      Function<Subscriber, @Nullable T> property,
      OutboxSubscriber.Builder builder,
      BiConsumer<OutboxSubscriber.Builder, T> setter) {
    setIfGiven(value(property), builder, setter);
  }

  private static <T> void setIfGiven(
      @Nullable T value,
      OutboxSubscriber.Builder builder,
      BiConsumer<OutboxSubscriber.Builder, T> setter) {
    if (value != null) {
      setter.accept(builder, value);
    }
  }
}
