package dev.outbox4j.monitor.internal;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.Loop;
import dev.outbox4j.internal.OneLine;
import dev.outbox4j.monitor.MonitorOutcome;
import dev.outbox4j.monitor.MonitorStatus;
import dev.outbox4j.monitor.internal.Expiries.Expiring;
import dev.outbox4j.postgres.PostgresOutbox;
import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread that ends instances whose time is over and that their message does not end: its node
 * was killed or is frozen, or there are too many messages before it. A check that runs on this node
 * is noted, and goes on.
 */
public final class ExpiryLoop {
  private static final Logger log = LoggerFactory.getLogger(ExpiryLoop.class);

  /** For its own message to end it, and for the node of a check that runs to say so. */
  private static final Duration GRACE = Duration.ofMillis(500);

  private static final Duration EVERY = Duration.ofSeconds(5);
  private static final Duration LEAST = Duration.ofMillis(100);
  private static final Duration STOP_TIMEOUT = Duration.ofSeconds(20);

  private final Expiries expiries;
  private final RunningChecks running;
  private final Observer observer;
  private final String application;
  private final Duration grace;
  private final Loop loop;

  /**
   * Creates a loop that is not started.
   *
   * @param outbox where the instances are
   * @param application whose monitors
   * @param queue where their messages are published
   * @param running which checks run on this node
   * @param observer told of instances that it ends
   */
  public ExpiryLoop(
      PostgresOutbox outbox,
      String application,
      String queue,
      RunningChecks running,
      Observer observer) {
    this(outbox, application, queue, running, observer, GRACE);
  }

  ExpiryLoop(
      PostgresOutbox outbox,
      String application,
      String queue,
      RunningChecks running,
      Observer observer,
      Duration grace) {
    this.grace = grace;
    this.expiries = new Expiries(outbox, application, queue);
    this.running = running;
    this.observer = observer;
    this.application = application;
    this.loop =
        new Loop(
            new EngineThreads(queue, ExpiryLoop.class.getClassLoader()),
            "expiries",
            told -> timedStep(),
            failure ->
                log.warn(
                    "monitors of {}: a look at those that expire failed, trying again",
                    application,
                    failure));
  }

  /** Starts. */
  public void start() {
    loop.start();
  }

  /** Ends after the look under way; idempotent. */
  public void stop() {
    loop.stop();
    if (!loop.join(System.nanoTime() + STOP_TIMEOUT.toNanos())) {
      loop.abandon();
    }
  }

  private long timedStep() {
    return loop.stopping() ? Loop.END : step().toNanos();
  }

  /** Looks once, and returns when to look again. */
  Duration step() {
    double next = seconds(EVERY);
    for (Expiring each : expiries.next(EVERY)) {
      if (each.in() > 0 || loop.stopping()) {
        next = Math.min(next, each.in());
        break; // the others are later
      }
      if (running.has(each.id(), each.execution())) {
        unlessItsRowIsAtFault(each, () -> expiries.goOn(each));
      } else if (each.in() > -seconds(grace)) {
        next = Math.min(next, each.in() + seconds(grace));
      } else {
        unlessItsRowIsAtFault(each, () -> end(each));
        next = 0;
      }
    }
    Duration wait = Duration.ofNanos((long) (next * 1e9));
    return wait.compareTo(LEAST) < 0 ? LEAST : wait;
  }

  private static double seconds(Duration time) {
    return time.toMillis() / 1e3;
  }

  private void end(Expiring expired) {
    if (expiries.end(expired, grace)) {
      log.info(
          "monitor {}/{}: it expired {} s ago and its message did not come; it is ended",
          expired.type(),
          OneLine.of(expired.id()),
          -expired.in());
      observer.tell(
          events ->
              events.ended(
                  application,
                  expired.type(),
                  expired.id(),
                  MonitorStatus.COMPLETED,
                  MonitorOutcome.EXPIRED));
    }
  }

  /** One is not to keep the others from it. */
  private static void unlessItsRowIsAtFault(Expiring expired, Runnable work) {
    try {
      work.run();
    } catch (OutboxStoreException e) {
      if (e.fault() != Fault.ROW && e.fault() != Fault.TIMEOUT) {
        throw e;
      }
      log.debug("monitor {}/{}: trying again", expired.type(), expired.id(), e);
    }
  }
}
