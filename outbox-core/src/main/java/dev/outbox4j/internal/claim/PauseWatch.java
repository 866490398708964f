package dev.outbox4j.internal.claim;

import dev.outbox4j.internal.Loop;
import dev.outbox4j.internal.OneLine;
import dev.outbox4j.internal.Utf8;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.state.EngineHealth.Operation;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.PauseStore;
import dev.outbox4j.spi.PauseStore.OpenPause;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Looks which queues are paused, on a loop of its own: twice a second, and at once when a
 * notification comes while one is. A claim that is slow, or fails, holds up no look. What cannot be
 * found out stays as it was.
 */
public final class PauseWatch {
  private static final Logger log = LoggerFactory.getLogger(PauseWatch.class);

  private static final long EVERY = TimeUnit.MILLISECONDS.toNanos(500);

  /** However many notifications come. */
  private static final long AT_MOST_EVERY = TimeUnit.MILLISECONDS.toNanos(50);

  private static final int MAX_BYTES = 200;

  private final PauseStore store;
  private final List<String> queues;
  private final Shared shared;
  private final LongSupplier clock;
  private final Loop loop;

  // confined to the loop
  private boolean known;
  private boolean called;
  private long lookedAt;

  private PauseWatch(
      PauseStore store,
      List<String> queues,
      Shared shared,
      ListenState listen,
      LongSupplier clock) {
    this.store = store;
    this.queues = queues;
    this.shared = shared;
    this.clock = clock;
    this.lookedAt = clock.getAsLong() - EVERY;
    this.loop =
        new Loop(
            shared.threads(),
            "pauses",
            this::take,
            failure -> shared.health().failed(Operation.PAUSES, failure));
    listen.signal(
        () -> {
          if (!shared.pauses().queues().isEmpty()) { // else there is no end to be noticed
            loop.signal();
          }
        });
  }

  /** Returns a watch of a subscriber's queues; null if they cannot be paused. */
  public static @Nullable PauseWatch of(
      SubscriberSettings settings, Shared shared, ListenState listen, LongSupplier clock) {
    PauseStore store = settings.pauses();
    return store == null ? null : new PauseWatch(store, settings.queues(), shared, listen, clock);
  }

  /** Begins. */
  public void start() {
    loop.start();
  }

  /** Ends after the look under way. */
  public void stop() {
    loop.stop();
  }

  /** Waits for the end; false if the deadline passed before. */
  public boolean join(long deadline) {
    return loop.join(deadline);
  }

  /** Looks if it is time; returns how long to wait for the next look. */
  private long take(boolean woken) {
    if (loop.stopping()) {
      return Loop.END;
    }
    called |= woken;
    long wait = lookedAt + (called ? AT_MOST_EVERY : EVERY) - clock.getAsLong();
    if (wait > 0) {
      return wait;
    }
    called = false;
    look();
    return EVERY;
  }

  private void look() {
    List<OpenPause> open;
    try {
      open = shared.connections().spendOnLook(() -> store.open(queues));
    } catch (RuntimeException failure) {
      shared.health().failed(Operation.PAUSES, failure);
      return;
    } finally {
      lookedAt = clock.getAsLong();
    }
    shared.health().succeeded(Operation.PAUSES);
    Set<String> before = shared.pauses().queues();
    Set<String> now = open.stream().map(OpenPause::queue).collect(Collectors.toSet());
    if (known && now.equals(before)) {
      return;
    }
    open.stream().filter(each -> !known || !before.contains(each.queue())).forEach(this::paused);
    if (known) {
      before.stream().filter(queue -> !now.contains(queue)).forEach(this::resumed);
    }
    known = true;
    shared.pauses().set(now);
  }

  private void paused(OpenPause pause) {
    log.info(
        "[{}] queue '{}' is paused, since {} by {}{}: handlers that run end, and nothing new begins",
        shared.subscriber(),
        OneLine.of(pause.queue()),
        pause.since(),
        words(pause.by()),
        pause.reason() == null ? "" : " (" + words(pause.reason()) + ")");
  }

  private static String words(String text) {
    return OneLine.of(Utf8.bounded(text, MAX_BYTES));
  }

  private void resumed(String queue) {
    log.info("[{}] queue '{}' is resumed", shared.subscriber(), OneLine.of(queue));
  }
}
