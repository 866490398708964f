package dev.outbox4j.spring;

import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.spring.OutboxProperties.Retry;
import dev.outbox4j.spring.OutboxProperties.Subscriber;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.regex.Matcher;
import org.jspecify.annotations.Nullable;

/** The properties of one queue's subscriber: its own where they are set, else those of all. */
final class SubscriberSettings {
  private static final List<Function<Retry, ? extends @Nullable Object>> RETRY =
      List.of(
          Retry::attempts,
          Retry::initial,
          Retry::multiplier,
          Retry::max,
          Retry::jitter,
          Retry::maxTotalTime);

  /** As in {@link RetryPolicy#standard()}. */
  private static final Duration DEFAULT_LONGEST_DELAY = Duration.ofMinutes(5);

  private final String queue;
  private final @Nullable Subscriber own;
  private final Subscriber all;
  private final boolean ordered;
  private final boolean virtualByDefault;

  private SubscriberSettings(
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

  /**
   * Returns those of one queue.
   *
   * @param virtualByDefault whether handlers run on virtual threads if no property says
   */
  static SubscriberSettings of(
      OutboxProperties properties, String queue, boolean virtualByDefault) {
    return new SubscriberSettings(
        queue,
        properties.queues().get(queue),
        properties.subscriber(),
        properties.orderedQueues().contains(queue),
        virtualByDefault);
  }

  /** Returns those of a queue that has none of its own. */
  static SubscriberSettings ofAll(OutboxProperties properties) {
    return new SubscriberSettings("", null, properties.subscriber(), false, false);
  }

  /** Adds what the builder takes, although one setting keeps another from having its effect. */
  void addContradictions(Set<String> faults) {
    Duration initial = retry(Retry::initial);
    Duration longest = Objects.requireNonNullElse(retry(Retry::max), DEFAULT_LONGEST_DELAY);
    if (initial != null && initial.compareTo(longest) > 0) {
      String max = retryName("max", Retry::max);
      faults.add(
          "%s=%s is above %s, which is %s: each delay would be cut to that; lower the one, or raise the other"
              .formatted(retryName("initial", Retry::initial), initial, max, longest));
    }
    Duration min = value(Subscriber::pollMin);
    Duration unheard = value(Subscriber::pollWithoutListener);
    if (min != null && unheard != null && min.compareTo(unheard) > 0) {
      faults.add(
          "%s=%s is above %s=%s: the first wait would be longer than the longest; lower the one, or raise the other"
              .formatted(
                  name("poll-min", Subscriber::pollMin),
                  min,
                  name("poll-without-listener", Subscriber::pollWithoutListener),
                  unheard));
    }
  }

  void applyTo(OutboxSubscriber.Builder builder) {
    applyWithoutThreads(builder);
    if (is(Subscriber::virtualThreads, virtualByDefault)) {
      String property = name("virtual-threads", Subscriber::virtualThreads);
      Setting.of(property, builder::virtualThreads);
    }
  }

  /** For who runs the handlers on threads of its own. */
  void applyWithoutThreads(OutboxSubscriber.Builder builder) {
    set("workers", Subscriber::workers, builder::workers);
    set("batch-size", Subscriber::batchSize, builder::batchSize);
    set("lease", Subscriber::lease, builder::lease);
    set("poll-without-listener", Subscriber::pollWithoutListener, builder::pollWithoutListener);
    set("graceful-timeout", Subscriber::gracefulTimeout, builder::gracefulTimeout);
    set("ack-mode", Subscriber::ackMode, builder::ackMode);
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
      set(
          "concurrency-limit",
          Subscriber::concurrencyLimit,
          most -> builder.concurrencyLimit(queue, most));
    }
  }

  private void setPolls(OutboxSubscriber.Builder builder) {
    Duration min = value(Subscriber::pollMin);
    Duration max = value(Subscriber::pollMax);
    if (min != null || max != null) {
      List<String> properties = new ArrayList<>();
      if (min != null) {
        properties.add(name("poll-min", Subscriber::pollMin));
      }
      if (max != null) {
        properties.add(name("poll-max", Subscriber::pollMax));
      }
      Setting.of(
          String.join(", ", properties),
          () ->
              builder.poll(
                  Objects.requireNonNullElse(min, OutboxSubscriber.Builder.DEFAULT_MIN_POLL),
                  Objects.requireNonNullElse(max, OutboxSubscriber.Builder.DEFAULT_MAX_POLL)));
    }
  }

  /** A bound and its absence are one setting, so a queue's own replaces either of all. */
  private void setBounds(OutboxSubscriber.Builder builder) {
    Subscriber time = holder(Subscriber::handlerTimeout, Subscriber::unlimitedHandlerTime);
    String timeout = name("handler-timeout", Subscriber::handlerTimeout);
    setIfGiven(timeout, time.handlerTimeout(), builder::handlerTimeout);
    if (Boolean.TRUE.equals(time.unlimitedHandlerTime())) {
      builder.unlimitedHandlerTime();
    }
    Subscriber deliveries = holder(Subscriber::maxDeliveries, Subscriber::unlimitedDeliveries);
    String most = name("max-deliveries", Subscriber::maxDeliveries);
    setIfGiven(most, deliveries.maxDeliveries(), builder::maxDeliveries);
    if (Boolean.TRUE.equals(deliveries.unlimitedDeliveries())) {
      builder.unlimitedDeliveries();
    }
  }

  private Subscriber holder(
      Function<Subscriber, @Nullable Object> one, Function<Subscriber, @Nullable Object> other) {
    return own != null && (one.apply(own) != null || other.apply(own) != null) ? own : all;
  }

  private void setRetry(OutboxSubscriber.Builder builder) {
    if (RETRY.stream().allMatch(property -> retry(property) == null)) {
      return;
    }
    // what is not set is as in RetryPolicy.standard()
    Duration initial = Objects.requireNonNullElse(retry(Retry::initial), Duration.ofSeconds(1));
    double multiplier = Objects.requireNonNullElse(retry(Retry::multiplier), 2.0);
    Setting.of(retryName("initial", Retry::initial), () -> RetryPolicy.exponential(initial, 1));
    RetryPolicy policy =
        Setting.of(
            retryName("multiplier", Retry::multiplier),
            () -> RetryPolicy.exponential(initial, multiplier));
    policy = with("max", Retry::max, policy.max(DEFAULT_LONGEST_DELAY), RetryPolicy::max);
    policy = with("jitter", Retry::jitter, policy.jitter(0.2), RetryPolicy::jitter);
    policy =
        with(
            "attempts",
            Retry::attempts,
            policy.attempts(RetryPolicy.standard().maxAttempts()),
            RetryPolicy::attempts);
    builder.retry(with("max-total-time", Retry::maxTotalTime, policy, RetryPolicy::maxTotalTime));
  }

  /** Returns the policy with the property's value, or as it is if none is set. */
  private <T> RetryPolicy with(
      String name,
      Function<Retry, @Nullable T> property,
      RetryPolicy policy,
      BiFunction<RetryPolicy, T, RetryPolicy> change) {
    T value = retry(property);
    return value == null
        ? policy
        : Setting.of(retryName(name, property), () -> change.apply(policy, value));
  }

  private <T> @Nullable T retry(Function<Retry, @Nullable T> property) {
    T mine = own == null ? null : property.apply(own.retry());
    return mine != null ? mine : property.apply(all.retry());
  }

  private String retryName(String name, Function<Retry, ?> property) {
    return name("retry." + name, settings -> property.apply(settings.retry()));
  }

  private <T> @Nullable T value(Function<Subscriber, @Nullable T> property) {
    T mine = own == null ? null : property.apply(own);
    return mine != null ? mine : property.apply(all);
  }

  private boolean is(Function<Subscriber, @Nullable Boolean> property, boolean otherwise) {
    return Objects.requireNonNullElse(value(property), otherwise);
  }

  private <T> void set(
      String name, Function<Subscriber, @Nullable T> property, Function<T, ?> setter) {
    setIfGiven(name(name, property), value(property), setter);
  }

  private static <T> void setIfGiven(String name, @Nullable T value, Function<T, ?> setter) {
    if (value != null) {
      Setting.of(name, () -> setter.apply(value));
    }
  }

  /** The property in full: that of the queue if it is set, else that of all queues. */
  private String name(String name, Function<Subscriber, ? extends @Nullable Object> property) {
    return own != null && property.apply(own) != null
        ? ofQueue(name)
        : "outbox4j.subscriber." + name;
  }

  private String ofQueue(String name) {
    boolean plain = queue.matches("[a-z0-9-]+");
    return "outbox4j.queues" + (plain ? "." + queue : "[" + queue + "]") + "." + name;
  }

  /**
   * Says what a refused builder says, of properties where they were set and not by the builder's
   * methods.
   *
   * @param fault names methods, such as {@code handlerTimeout(...)}
   */
  String inProperties(String fault) {
    String words = fault;
    words = named(words, "handlerTimeout", "handler-timeout", Subscriber::handlerTimeout);
    words =
        named(
            words,
            "unlimitedHandlerTime",
            "unlimited-handler-time",
            Subscriber::unlimitedHandlerTime);
    words = named(words, "maxDeliveries", "max-deliveries", Subscriber::maxDeliveries);
    words =
        named(
            words, "unlimitedDeliveries", "unlimited-deliveries", Subscriber::unlimitedDeliveries);
    words = named(words, "gracefulTimeout", "graceful-timeout", Subscriber::gracefulTimeout);
    words = named(words, "concurrencyLimit", "concurrency-limit", Subscriber::concurrencyLimit);
    words =
        named(
            words,
            "holdKeyOnDeadLetter",
            "hold-key-on-dead-letter",
            Subscriber::holdKeyOnDeadLetter);
    words = named(words, "virtualThreads", "virtual-threads", Subscriber::virtualThreads);
    if (virtualByDefault) {
      words =
          words.replace(
              "virtualThreads()",
              "spring.threads.virtual.enabled ("
                  + ofQueue("virtual-threads")
                  + "=false leaves this queue out)");
    }
    return words
        .replace("ordered()", "'" + queue + "' in outbox4j.ordered-queues")
        .replace("on(...) or otherwise(...)", "an @OutboxHandler method");
  }

  /** Methods stand with their brackets or without. */
  private String named(
      String words,
      String method,
      String name,
      Function<Subscriber, ? extends @Nullable Object> property) {
    if (value(property::apply) == null) {
      return words;
    }
    String full = Matcher.quoteReplacement(name(name, property));
    return words
        .replaceAll("\\b" + method + "\\((\\d+)\\)", full + "=$1")
        .replaceAll("\\b" + method + "\\b(\\((\\.\\.\\.)?\\))?", full);
  }
}
