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
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Looks which queues are paused, between the turns of a fetcher: twice a second, and at once when a
 * notification comes while one is. What cannot be found out stays as it was. Confined to the
 * fetcher.
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
  private final Loop.Step turn;
  private final Runnable changed;
  private final LongSupplier clock;
  private boolean known;
  private long lookedAt;
  private long restsUntil;

  private PauseWatch(
      PauseStore store,
      List<String> queues,
      Shared shared,
      Loop.Step turn,
      Runnable changed,
      LongSupplier clock) {
    this.store = store;
    this.queues = queues;
    this.shared = shared;
    this.turn = turn;
    this.changed = changed;
    this.clock = clock;
    this.lookedAt = clock.getAsLong() - EVERY;
    this.restsUntil = clock.getAsLong();
  }

  /**
   * Returns a fetcher's turn with looks in between, if the queues can be paused; else the turn.
   *
   * @param changed told when other queues are paused than before
   */
  public static Loop.Step around(
      Loop.Step turn,
      SubscriberSettings settings,
      Shared shared,
      Runnable changed,
      LongSupplier clock) {
    PauseStore store = settings.pauses();
    return store == null
        ? turn
        : new PauseWatch(store, settings.queues(), shared, turn, changed, clock)::take;
  }

  /** Looks if it is time, and takes a turn unless the last one wanted to rest for longer. */
  private long take(boolean woken) throws Exception {
    if (shared.registry().stopping()) {
      return turn.take(woken); // which ends without a statement
    }
    boolean hasChanged = isDue(woken) && look();
    long now = clock.getAsLong();
    if (!woken && !hasChanged && restsUntil - now > 0) {
      return Math.min(restsUntil - now, untilLook(now));
    }
    restsUntil = now; // in case the turn fails
    long wait = turn.take(woken || hasChanged);
    if (wait == Loop.END) {
      return wait;
    }
    now = clock.getAsLong();
    restsUntil = now + wait;
    return Math.min(wait, untilLook(now));
  }

  private boolean isDue(boolean woken) {
    long since = clock.getAsLong() - lookedAt;
    return since >= EVERY
        || (woken && !shared.pauses().queues().isEmpty() && since >= AT_MOST_EVERY);
  }

  private long untilLook(long now) {
    return Math.max(0, lookedAt + EVERY - now);
  }

  /** Returns whether other queues are paused than before. */
  private boolean look() {
    List<OpenPause> open;
    try {
      open = shared.connections().spendOnClaim(() -> store.open(queues));
    } catch (RuntimeException failure) {
      shared.health().failed(Operation.PAUSES, failure);
      return false;
    } finally {
      lookedAt = clock.getAsLong();
    }
    shared.health().succeeded(Operation.PAUSES);
    Set<String> before = shared.pauses().queues();
    Set<String> now = open.stream().map(OpenPause::queue).collect(Collectors.toSet());
    if (known && now.equals(before)) {
      return false;
    }
    open.stream().filter(each -> !known || !before.contains(each.queue())).forEach(this::paused);
    if (known) {
      before.stream().filter(queue -> !now.contains(queue)).forEach(this::resumed);
    }
    known = true;
    shared.pauses().set(now);
    changed.run();
    return true;
  }

  private void paused(OpenPause pause) {
    log.info(
        "[{}] queue '{}' is paused, since {} by {}{}: handlers that run end, and nothing new begins",
        shared.subscriber(),
        OneLine.of(pause.queue()),
        pause.since(),
        words(pause.by()),
        pause.reason().map(reason -> " (" + words(reason) + ")").orElse(""));
  }

  private static String words(String text) {
    return OneLine.of(Utf8.bounded(text, MAX_BYTES));
  }

  private void resumed(String queue) {
    log.info("[{}] queue '{}' is resumed", shared.subscriber(), OneLine.of(queue));
  }
}
