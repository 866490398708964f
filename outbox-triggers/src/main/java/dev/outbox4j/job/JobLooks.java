package dev.outbox4j.job;

import dev.outbox4j.RetryPolicy;
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
 * ago that it is deleted. Neither waits for the other, and what fails is tried again after longer
 * and longer. Thread-safe.
 */
final class JobLooks {
  private static final Logger log = LoggerFactory.getLogger(JobLooks.class);
  private static final Duration EVERY = Duration.ofMinutes(5);
  private static final RetryPolicy AFTER_FAILURES =
      RetryPolicy.exponential(Duration.ofSeconds(1)).max(EVERY).jitter(0.2);

  /** Between two parts of a purge, so that nobody notices it. */
  private static final Duration BETWEEN_PARTS = Duration.ofMillis(100);

  private static final Duration STOP_TIMEOUT = Duration.ofSeconds(20);
  private static final int PART = 1_000;

  private final JobStore store;
  private final String queue;
  private final Duration keep;
  private final JobAlerts rules;
  private final Loop loop;

  private final Task look = new Task("look", this::look);
  private final Task purge = new Task("purge", this::purge);

  // guarded by this
  private final List<JobSample> samples = new ArrayList<>();
  private List<JobAlert> alerts = List.of();
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
            told -> loop().stopping() ? Loop.END : step(),
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

  /** What is done again and again, and says when next. */
  private interface Work {
    Duration run();
  }

  /** Work with a time of its own. Confined to the loop's thread, but for whether it fails. */
  private final class Task {
    private final String name;
    private final Work work;
    private long due = System.nanoTime();
    private volatile int failures;

    Task(String name, Work work) {
      this.name = name;
      this.work = work;
    }

    /** Does what is due, and returns for how many nanoseconds it is not. */
    long runIfDue() {
      if (due - System.nanoTime() <= 0) {
        Duration next;
        try {
          next = work.run();
          failures = 0;
        } catch (RuntimeException | Error e) { // neither ends the other, nor the thread
          failures = Math.min(failures + 1, 30);
          next = AFTER_FAILURES.delayAfter(failures, e);
          told(e);
          log.warn("jobs of queue '{}': a {} failed, the next is in {}", queue, name, next, e);
        }
        due = System.nanoTime() + next.toNanos();
      }
      return Math.max(0, due - System.nanoTime());
    }
  }

  /** Does what is due, and returns when to go on. */
  long step() {
    return Math.min(look.runIfDue(), purge.runIfDue());
  }

  private Duration look() {
    looked(store.sample());
    return turn();
  }

  private Duration purge() {
    return store.purge(keep, PART) >= PART ? BETWEEN_PARTS : turn();
  }

  /** The nodes take turns. */
  private static Duration turn() {
    return EVERY.multipliedBy(ThreadLocalRandom.current().nextLong(80, 101)).dividedBy(100);
  }

  private synchronized void looked(JobSample sample) {
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

  private synchronized void told(Throwable failure) {
    String words = failure.getMessage();
    lastFailure = words == null ? failure.getClass().getName() : words;
  }

  /** Even to note a failure has failed, such as for want of memory. */
  private void failed(Throwable failure) {
    told(failure);
    log.warn("jobs of queue '{}': a look failed, trying again", queue, failure);
  }

  synchronized JobsHealth health(Optional<SubscriberHealth> subscriber, List<String> leftTypes) {
    return new JobsHealth(
        queue,
        subscriber,
        look.failures > 0 || purge.failures > 0,
        Optional.ofNullable(lastFailure),
        samples.isEmpty() ? Optional.empty() : Optional.of(samples.get(samples.size() - 1)),
        alerts,
        leftTypes);
  }
}
