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
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread that ends instances whose time is over and that their message does not end: its node
 * was killed or is frozen, or there are too many messages before it. While a check goes on past the
 * expiry, its node says so again and again; once it does not, another node ends the instance.
 */
public final class ExpiryLoop {
  private static final Logger log = LoggerFactory.getLogger(ExpiryLoop.class);

  /** For its own message to end it, and for the node of a check that runs to say so. */
  private static final Duration GRACE = Duration.ofMillis(500);

  /** How often a node says so meanwhile: one that is late once is not taken for a killed one. */
  private static final int TOLD_IN_A_GRACE = 3;

  private static final Duration EVERY = Duration.ofSeconds(5);
  private static final Duration LEAST = Duration.ofMillis(100);
  private static final Duration STOP_TIMEOUT = Duration.ofSeconds(20);

  private final Expiries expiries;
  private final RunningChecks running;
  private final Observer observer;
  private final String application;
  private final Duration grace;
  private final Duration every;
  private final Loop loop;

  /** When it looks next, by the monotonic clock. */
  private volatile long nextLook;

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
    this(outbox, application, queue, running, observer, GRACE, EVERY);
  }

  ExpiryLoop(
      PostgresOutbox outbox,
      String application,
      String queue,
      RunningChecks running,
      Observer observer,
      Duration grace,
      Duration every) {
    this.grace = grace;
    this.every = every;
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
    nextLook = System.nanoTime();
    running.onExpiring(this::lookAlsoIn);
    loop.start();
  }

  /** An instance may be younger than the look before, and its check has to be told of in time. */
  private void lookAlsoIn(Duration time) {
    if (nextLook - System.nanoTime() > time.toNanos()) {
      loop.signal();
    }
  }

  /** Ends after the look under way; idempotent. */
  public void stop() {
    loop.stop();
    if (!loop.join(System.nanoTime() + STOP_TIMEOUT.toNanos())) {
      loop.abandon();
    }
  }

  private long timedStep() {
    if (loop.stopping()) {
      return Loop.END;
    }
    nextLook = System.nanoTime() + every.toNanos(); // what begins meanwhile may not be seen
    long wait = step().toNanos();
    nextLook = System.nanoTime() + wait;
    return wait;
  }

  /** Looks once, and returns when to look again. */
  Duration step() {
    List<Expiring> expiring = expiries.next(every);
    List<Expiring> overtime =
        expiring.stream().filter(each -> each.in() <= 0 && runsHere(each)).toList();
    long told = System.nanoTime();
    goOn(overtime);
    double next = overtime.isEmpty() ? seconds(every) : seconds(grace) / TOLD_IN_A_GRACE;
    for (Expiring each : expiring) {
      if (each.in() > 0 || loop.stopping()) {
        next = Math.min(next, each.in());
        break; // the others are later
      }
      if (overtime.contains(each)) {
        continue;
      }
      if (each.in() > -seconds(grace)) {
        next = Math.min(next, each.in() + seconds(grace));
        continue;
      }
      unlessItsRowIsAtFault(each, () -> end(each));
      next = 0;
      if (System.nanoTime() - told > grace.toNanos() / TOLD_IN_A_GRACE) {
        told = System.nanoTime();
        goOn(overtime.stream().filter(this::runsHere).toList());
      }
    }
    Duration wait = Duration.ofNanos((long) (next * 1e9));
    return wait.compareTo(LEAST) < 0 ? LEAST : wait;
  }

  private boolean runsHere(Expiring instance) {
    return running.has(instance.id(), instance.execution());
  }

  /** Of many at once, unless the row of one is at fault. */
  private void goOn(List<Expiring> overtime) {
    if (overtime.isEmpty()) {
      return;
    }
    try {
      expiries.goOn(overtime);
    } catch (OutboxStoreException e) {
      if (!isOfRow(e)) {
        throw e;
      }
      overtime.forEach(each -> unlessItsRowIsAtFault(each, () -> expiries.goOn(List.of(each))));
    }
  }

  private static double seconds(Duration time) {
    return time.toMillis() / 1e3;
  }

  private void end(Expiring expired) {
    if (expiries.end(expired, grace)) {
      log.info(
          "monitor {}/{}: it has expired, and for {} s neither its message nor a check of it was heard of;"
              + " it is ended",
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
      if (!isOfRow(e)) {
        throw e;
      }
      log.debug("monitor {}/{}: trying again", expired.type(), expired.id(), e);
    }
  }

  private static boolean isOfRow(OutboxStoreException failure) {
    return failure.fault() == Fault.ROW || failure.fault() == Fault.TIMEOUT;
  }
}
