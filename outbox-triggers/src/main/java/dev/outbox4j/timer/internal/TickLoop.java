package dev.outbox4j.timer.internal;

import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.Loop;
import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.NotificationSource.Subscription;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.internal.TimerStore.Tick;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread that looks at timers: when one is due, when it is told of something, and at the latest
 * every 30 s. It owns its connection for the length of a tick.
 */
public final class TickLoop {
  private static final Logger log = LoggerFactory.getLogger(TickLoop.class);
  private static final Duration LONGEST_WAIT = Duration.ofSeconds(30);

  /** Of a node that hears nothing: for runs that wait, and for what others do. */
  private static final Duration LONGEST_WAIT_UNHEARD = Duration.ofSeconds(1);

  private static final Duration STOP_TIMEOUT = Duration.ofSeconds(20);
  private static final Duration FORGETTING = Duration.ofMinutes(10);
  private static final int MOST_TIMERS = 500;

  private final TimerStore store;
  private final String application;
  private final Map<String, Timer> timers;
  private final @Nullable String deployment;
  private final @Nullable NotificationSource source;
  private final String channel;
  private final RunHandlers runs;
  private final Loop loop;
  private @Nullable Subscription subscription;
  private volatile boolean heard;
  private boolean registered;
  private Set<String> others = Set.of();
  private long othersUntil = System.nanoTime();
  private long forgetAt = System.nanoTime();

  /**
   * Creates a loop that is not started.
   *
   * @param outbox where the timers are
   * @param application whose timers
   * @param queue where their messages are published
   * @param timers the definitions, by name
   * @param deployment what this node belongs to
   * @param source what wakes it, if anything does
   * @param runs the runs in progress
   */
  public TickLoop(
      PostgresOutbox outbox,
      String application,
      String queue,
      Map<String, Timer> timers,
      @Nullable String deployment,
      @Nullable NotificationSource source,
      RunHandlers runs) {
    this.store = new TimerStore(outbox, application, queue);
    this.application = application;
    this.timers = Map.copyOf(timers);
    this.deployment = deployment;
    this.source = source;
    this.channel = Names.timersChannel(outbox.table().name());
    this.runs = runs;
    this.loop =
        new Loop(
            new EngineThreads(queue, TickLoop.class.getClassLoader()),
            "ticks",
            woken -> step(),
            failure -> log.warn("timers of {}: a tick failed, trying again", application, failure));
  }

  /** Starts. */
  public void start() {
    if (source != null) {
      subscription = source.listen(channel, new Wake());
    }
    loop.start();
  }

  /** Ends after the tick under way; idempotent. */
  public void stop() {
    if (subscription != null) {
      subscription.close();
    }
    loop.stop();
    if (!loop.join(System.nanoTime() + STOP_TIMEOUT.toNanos())) {
      loop.abandon();
    }
  }

  private final class Wake implements NotificationSource.Listener {
    @Override
    public void connected() {
      heard = true;
      loop.signal();
    }

    @Override
    public void notified(String payload) {
      if (payload.equals(application)) {
        loop.signal();
      }
    }

    @Override
    public void disconnected(Throwable cause) {
      heard = false;
      log.debug("timers: not listening", cause);
    }
  }

  private long step() {
    if (loop.stopping()) {
      return Loop.END;
    }
    if (!registered) {
      store.register(timers.values(), deployment);
      registered = true;
      others = Set.of();
    }
    if (System.nanoTime() - othersUntil >= 0) { // they may be this node's again
      others = Set.of();
      othersUntil = System.nanoTime() + LONGEST_WAIT.toNanos();
    }
    if (System.nanoTime() - forgetAt >= 0) {
      store.forgetEnded(timers.values());
      forgetAt = System.nanoTime() + FORGETTING.toNanos();
    }
    Tick tick = store.tick(timers, others, MOST_TIMERS);
    others = tick.others();
    if (!tick.abandoned().isEmpty()) {
      log.warn(
          "timers {}: another schedule is on record, and no node takes care of it; this node does"
              + " now, by its own",
          tick.abandoned());
      registered = false;
      return 0;
    }
    store.cancelled(runs.running()).forEach(runs::cancel);
    return untilNextLook(tick);
  }

  private long untilNextLook(Tick tick) {
    if (tick.again()) {
      return 0;
    }
    Duration untilNext = tick.untilNext();
    Duration longest = heard ? LONGEST_WAIT : LONGEST_WAIT_UNHEARD;
    if (untilNext == null || untilNext.compareTo(longest) > 0) {
      return longest.toNanos();
    }
    if (!untilNext.isNegative() && !untilNext.isZero()) {
      return untilNext.toNanos();
    }
    // another node has it, if this one could decide on none
    return tick.timers() > 0 ? 0 : ThreadLocalRandom.current().nextLong(10_000_000, 50_000_000);
  }
}
