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
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
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

  /**
   * What began since the look before is not known to a node on which it does not run. By this it is
   * ended in time if its own node is killed, however soon it expires.
   */
  private static final Duration EVERY = Duration.ofMillis(750);

  private static final Duration LEAST = Duration.ofMillis(100);

  /** So that a statement takes the server some milliseconds. */
  static final int MOST_TOGETHER = 100;

  /** A row that the server refuses, or takes long for, is not to be asked for at each look. */
  private static final Duration AFTER_A_FAULT = Duration.ofSeconds(5);

  private static final Duration STOP_TIMEOUT = Duration.ofSeconds(20);

  private final Expiries expiries;
  private final RunningChecks running;
  private final Observer observer;
  private final String application;
  private final Duration grace;
  private final Duration every;
  private final Loop loop;

  /** By id, when the row of an instance was last at fault. Confined to the thread that looks. */
  private final Map<String, Long> faults = new HashMap<>();

  /** When it was last said which checks go on. Confined to the same thread. */
  private long toldAt;

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
    nextLook = System.nanoTime() + 2 * every.toNanos(); // what begins meanwhile may not be seen
    long wait = step().toNanos();
    nextLook = System.nanoTime() + wait;
    return wait;
  }

  /** Looks once, and returns when to look again. */
  Duration step() {
    long begun = System.nanoTime();
    List<Expiring> expiring = expiries.next(every);
    List<Expiring> overtime = new ArrayList<>();
    List<Expiring> over = new ArrayList<>();
    double next = Double.POSITIVE_INFINITY;
    for (Expiring each : expiring) {
      boolean here = runsHere(each);
      if (here && each.in() <= 0) {
        overtime.add(each);
        next = Math.min(next, seconds(grace) / TOLD_IN_A_GRACE);
      } else if (each.in() > -seconds(grace)) { // a check of it that begins here says so
        next = Math.min(next, here ? each.in() : each.in() + seconds(grace));
      } else {
        over.add(each);
      }
    }
    goOn(overtime);
    boolean all = end(over, overtime);
    if (all && !over.isEmpty() && expiring.size() >= Expiries.MOST) {
      return Duration.ZERO; // there may be others, which have waited meanwhile
    }
    return all ? until(next, begun) : LEAST;
  }

  /** Some time after a look, which itself has taken some. */
  private Duration until(double seconds, long begun) {
    double left = seconds - (System.nanoTime() - begun) / 1e9;
    Duration wait = left > seconds(every) ? every : Duration.ofNanos((long) (left * 1e9));
    return wait.compareTo(LEAST) < 0 ? LEAST : wait;
  }

  private boolean runsHere(Expiring instance) {
    return running.has(instance.id(), instance.execution());
  }

  /** Of many at once, unless the row of one is at fault. */
  private void goOn(List<Expiring> overtime) {
    toldAt = System.nanoTime();
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

  /** Returns whether all were ended, but for those whose row is at fault. */
  private boolean end(List<Expiring> over, List<Expiring> overtime) {
    faults.values().removeIf(failed -> System.nanoTime() - failed > AFTER_A_FAULT.toNanos());
    List<Expiring> sound = over.stream().filter(each -> !faults.containsKey(each.id())).toList();
    boolean all = true;
    for (int from = 0; from < sound.size(); from += MOST_TOGETHER) {
      int to = Math.min(from + MOST_TOGETHER, sound.size());
      all &= endTogether(sound.subList(from, to), overtime);
    }
    return all;
  }

  /** Unless the row of one is at fault. */
  private boolean endTogether(List<Expiring> over, List<Expiring> overtime) {
    if (loop.stopping()) {
      return false;
    }
    try {
      return tell(over, expiries.end(over, grace));
    } catch (OutboxStoreException e) {
      if (!isOfRow(e)) {
        throw e;
      }
      if (over.size() == 1) {
        faults.put(over.get(0).id(), System.nanoTime());
        log.debug("monitor {}/{}: trying again", over.get(0).type(), over.get(0).id(), e);
        return true;
      }
    } finally {
      goOnAgain(overtime);
    }
    boolean all = true;
    for (Expiring each : over) {
      all &= endTogether(List.of(each), overtime);
    }
    return all;
  }

  /** Ends may take long. */
  private void goOnAgain(List<Expiring> overtime) {
    if (System.nanoTime() - toldAt > grace.toNanos() / TOLD_IN_A_GRACE) {
      goOn(overtime.stream().filter(this::runsHere).toList());
    }
  }

  /** Returns whether these are all. */
  private boolean tell(List<Expiring> over, Set<String> ended) {
    for (Expiring each : over) {
      if (ended.contains(each.id())) {
        log.info(
            "monitor {}/{}: it has expired, and for {} s neither its message nor a check of it was heard of;"
                + " it is ended",
            each.type(),
            OneLine.of(each.id()),
            -each.in());
        observer.tell(
            events ->
                events.ended(
                    application,
                    each.type(),
                    each.id(),
                    MonitorStatus.COMPLETED,
                    MonitorOutcome.EXPIRED));
      }
    }
    return ended.size() == over.size();
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
