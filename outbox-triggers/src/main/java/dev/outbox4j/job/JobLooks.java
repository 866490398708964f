package dev.outbox4j.job;

import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.Loop;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread that looks at a queue now and then: what its alert rules say, and what ended so long
 * ago that it is deleted. Thread-safe.
 */
final class JobLooks {
  private static final Logger log = LoggerFactory.getLogger(JobLooks.class);
  private static final Duration EVERY = Duration.ofMinutes(5);

  /** Between two parts of a purge, so that nobody notices it. */
  private static final Duration BETWEEN_PARTS = Duration.ofMillis(100);

  private static final Duration STOP_TIMEOUT = Duration.ofSeconds(20);
  private static final int PART = 1_000;

  private final JobStore store;
  private final String queue;
  private final Duration keep;
  private final JobAlerts rules;
  private final Loop loop;
  private boolean purges; // confined to the loop's thread

  // guarded by this
  private final List<JobSample> samples = new ArrayList<>();
  private List<JobAlert> alerts = List.of();
  private boolean failing;
  private @Nullable String lastFailure;

  JobLooks(JobStore store, String queue, Duration keep, JobAlerts rules) {
    this.store = store;
    this.queue = queue;
    this.keep = keep;
    this.rules = rules;
    this.loop =
        new Loop(
            new EngineThreads(queue, JobLooks.class.getClassLoader()),
            "looks",
            told -> loop().stopping() ? Loop.END : step().toNanos(),
            this::failed);
  }

  private Loop loop() {
    return loop;
  }

  void start() {
    loop.start();
  }

  /** Begins no further look. */
  void requestStop() {
    loop.stop();
  }

  /** Ends after the look under way; idempotent. */
  void stop() {
    loop.stop();
    if (!loop.join(System.nanoTime() + STOP_TIMEOUT.toNanos())) {
      loop.abandon();
    }
  }

  /** Looks, or goes on with a purge, and returns when to go on. */
  Duration step() {
    if (!purges) {
      looked(store.sample());
    }
    purges = store.purge(keep, PART) >= PART;
    if (purges) {
      return BETWEEN_PARTS;
    }
    // the nodes take turns
    return EVERY.multipliedBy(ThreadLocalRandom.current().nextLong(80, 101)).dividedBy(100);
  }

  private synchronized void looked(JobSample sample) {
    failing = false;
    samples.add(sample);
    if (samples.size() > rules.risingSamples()) {
      samples.remove(0);
    }
    Set<JobAlert.Rule> known = alerts.stream().map(JobAlert::rule).collect(Collectors.toSet());
    alerts = rules.of(samples, List.of());
    for (JobAlert alert : alerts) {
      if (!known.contains(alert.rule())) {
        log.warn("jobs of queue '{}': {}: {}", queue, alert.rule(), alert.detail());
      }
    }
  }

  private synchronized void failed(Throwable failure) {
    failing = true;
    lastFailure = String.valueOf(failure.getMessage());
    log.warn("jobs of queue '{}': a look failed, trying again", queue, failure);
  }

  synchronized JobsHealth health(Optional<SubscriberHealth> subscriber) {
    return new JobsHealth(
        queue,
        subscriber,
        failing,
        Optional.ofNullable(lastFailure),
        samples.isEmpty() ? Optional.empty() : Optional.of(samples.get(samples.size() - 1)),
        alerts);
  }
}
