package dev.outbox4j.timer.internal;

import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.Loop;
import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.NotificationSource.Subscription;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.TimerStatus;
import dev.outbox4j.timer.internal.TimerStore.Tick;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
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
  private static final Duration FORGETTING = Duration.ofMinutes(1);

  /**
   * From a tick that decided on something to the next: instants that lie close together are decided
   * together, at a cost that hardly grows with their number.
   */
  private static final Duration SPACING = Duration.ofMillis(100);

  /** After one that had many: the next one has many as well. */
  private static final Duration SPACING_AFTER_MANY = Duration.ofMillis(50);

  private static final int MANY_TIMERS = 25;

  /** For runs that are asked to stop while nothing is heard. */
  private static final Duration CANCELLED = Duration.ofSeconds(1);

  private static final int MOST_TIMERS = 500;
  private static final int MOST_FORGOTTEN = 5_000;
  private static final int MOST_LOGGED = 50;
  private static final int NEXT_LOGGED = 5;

  private final TimerStore store;
  private final ControlStore control;
  private final NodeState state;
  private final Observer observer;
  private final InstantSource clock;
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
  private List<Timer> unregistered;
  private final HeldTimers held = new HeldTimers(System::nanoTime);
  private Set<String> others = Set.of();
  private long othersUntil = System.nanoTime();
  private long forgetAt = System.nanoTime();
  private long readAt = System.nanoTime();
  private long begunAt;
  private long nextAt = System.nanoTime();
  private long lookForCancelledAt = System.nanoTime();

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
   * @param state where to note what this node knows
   * @param observer told of each tick
   * @param clock this process's clock
   */
  public TickLoop(
      PostgresOutbox outbox,
      String application,
      String queue,
      Map<String, Timer> timers,
      @Nullable String deployment,
      @Nullable NotificationSource source,
      RunHandlers runs,
      NodeState state,
      Observer observer,
      InstantSource clock) {
    this.store = new TimerStore(outbox, application, queue, clock);
    this.control = new ControlStore(outbox, application);
    this.state = state;
    this.observer = observer;
    this.clock = clock;
    this.application = application;
    this.timers = Map.copyOf(timers);
    this.unregistered = List.copyOf(timers.values());
    this.deployment = deployment;
    this.source = source;
    this.channel = Names.timersChannel(outbox.table().name());
    this.runs = runs;
    this.loop =
        new Loop(
            new EngineThreads(queue, TickLoop.class.getClassLoader()),
            "ticks",
            this::timedStep,
            this::failed);
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

  private void failed(Throwable failure) {
    log.warn("timers of {}: a tick failed, trying again", application, failure);
    state.failed(failure);
    observer.tell(events -> events.ticked(application, sinceBegun(), failure));
  }

  private Duration sinceBegun() {
    return Duration.ofNanos(System.nanoTime() - begunAt);
  }

  private long timedStep(boolean told) {
    loop.pause(nextAt - System.nanoTime());
    if (loop.stopping()) {
      return Loop.END;
    }
    if (told) {
      lookForCancelledAt = System.nanoTime();
    }
    begunAt = System.nanoTime();
    long wait = step();
    state.ticked(store.clockOffset());
    observer.tell(events -> events.ticked(application, sinceBegun(), null));
    return wait;
  }

  private long step() {
    if (!unregistered.isEmpty()) {
      register();
    }
    if (System.nanoTime() - othersUntil >= 0) { // they may be this node's again
      others = Set.of();
      store.awaitAnew(timers.values());
      othersUntil = System.nanoTime() + LONGEST_WAIT.toNanos();
    }
    if (System.nanoTime() - forgetAt >= 0) {
      forget();
    }
    Tick tick = store.tick(timers, others(), MOST_TIMERS);
    others = tick.others();
    tellEnded(tick.ended());
    tellHeld(tick.held());
    if (!tick.abandoned().isEmpty()) {
      log.warn(
          "timers {}: another schedule is on record, and no node takes care of it; this node does"
              + " now, by its own",
          tick.abandoned());
      store.register(
          timers.values().stream()
              .filter(timer -> tick.abandoned().contains(timer.name()))
              .toList(),
          deployment);
      others = Set.of();
      return 0;
    }
    nextAt = begunAt + spacing(tick.timers()).toNanos();
    if (System.nanoTime() - lookForCancelledAt >= 0) {
      store.cancelled(runs.running()).forEach(runs::cancel);
      lookForCancelledAt = System.nanoTime() + CANCELLED.toNanos();
    }
    long wait = untilNextLook(tick);
    if (!unregistered.isEmpty()) {
      wait = Math.min(wait, SPACING.toNanos());
    }
    if (System.nanoTime() - readAt >= 0) {
      readAt = System.nanoTime() + LONGEST_WAIT.toNanos();
      readStatus();
    }
    return Math.min(wait, Math.max(0, readAt - System.nanoTime()));
  }

  /** A timer that somebody else holds is tried again; the others are registered. */
  private void register() {
    Set<String> held = store.register(unregistered, deployment);
    unregistered = unregistered.stream().filter(timer -> held.contains(timer.name())).toList();
    others = Set.of();
    if (!registered) {
      registered = true;
      logNext();
    }
  }

  /** Those that are not registered yet are decided by nodes that have them. */
  private Set<String> others() {
    if (unregistered.isEmpty()) {
      return others;
    }
    return Stream.concat(others.stream(), unregistered.stream().map(Timer::name))
        .collect(Collectors.toSet());
  }

  private static Duration spacing(int timers) {
    if (timers == 0 || timers >= MOST_TIMERS) {
      return Duration.ZERO;
    }
    return timers < MANY_TIMERS ? SPACING : SPACING_AFTER_MANY;
  }

  private void tellHeld(Set<String> ofTick) {
    Set<String> all = new HashSet<>(ofTick);
    unregistered.forEach(timer -> all.add(timer.name()));
    Set<String> told = held.note(all);
    if (!told.isEmpty()) {
      log.warn(
          "timers {}: another session holds rows of theirs, such as an open transaction at a"
              + " console; trying again, and the others go on",
          told);
    }
  }

  private void tellEnded(List<EndedRun> ended) {
    ended.stream()
        .collect(Collectors.groupingBy(Function.identity(), Collectors.counting()))
        .forEach(
            (run, runs) ->
                observer.tell(
                    events -> events.ended(application, run.timer(), run.status(), runs)));
  }

  /** Timers do not wait for it. */
  private void forget() {
    forgetAt = System.nanoTime() + FORGETTING.toNanos();
    try {
      if (store.forgetEnded(timers.values(), MOST_FORGOTTEN) == MOST_FORGOTTEN) {
        forgetAt = System.nanoTime() + SPACING.toNanos();
      }
    } catch (RuntimeException e) {
      log.warn(
          "timers of {}: runs that have ended could not be forgotten, trying again",
          application,
          e);
    }
  }

  /** What it throws is no failure of the tick, which is committed. */
  private void readStatus() {
    try {
      List<TimerStatus> onRecord = control.timers();
      state.read(onRecord, control.alerts(timers.values(), onRecord));
    } catch (RuntimeException e) {
      log.warn("timers of {}: their status could not be read, trying again", application, e);
    }
  }

  private void logNext() {
    Instant now = clock.instant().minus(store.clockOffset());
    timers.values().stream()
        .sorted(Comparator.comparing(Timer::name))
        .limit(MOST_LOGGED)
        .forEach(timer -> logNext(timer, now));
    if (timers.size() > MOST_LOGGED) {
      log.info("timers of {}: {} more", application, timers.size() - MOST_LOGGED);
    }
  }

  private static void logNext(Timer timer, Instant now) {
    try {
      log.info("timer {}: next at {}", timer.name(), Instants.next(timer, now, NEXT_LOGGED));
    } catch (RuntimeException e) { // its schedule fails; the tick says so
      log.debug("timer {}: its next instants are not known", timer.name(), e);
    }
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
