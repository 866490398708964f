package dev.outbox4j.timer.internal;

import dev.outbox4j.Delivery;
import dev.outbox4j.Outcome;
import dev.outbox4j.timer.Cause;
import dev.outbox4j.timer.PastRun;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.TimerRun;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** An attempt that has begun. */
final class StartedRun implements TimerRun {
  private static final Logger log = LoggerFactory.getLogger(StartedRun.class);
  private static final int MOST_NEXT = 1_000;

  private final Timer timer;
  private final long id;
  private final Instant instant;
  private final Cause cause;
  private final Instant firstMissed;
  private final long missed;
  private final Instant begun;
  private final int attempt;
  private final Optional<PastRun> previous;
  private final Delivery delivery;
  private volatile boolean cancelled;
  private volatile boolean ended;
  private boolean told;
  private boolean returned;
  private final Outcome again = Outcome.reschedule(Duration.ZERO);

  StartedRun(
      Timer timer,
      long id,
      Instant instant,
      Cause cause,
      Instant firstMissed,
      long missed,
      Instant begun,
      int attempt,
      Optional<PastRun> previous,
      Delivery delivery,
      boolean cancelled) {
    this.timer = timer;
    this.id = id;
    this.instant = instant;
    this.cause = cause;
    this.firstMissed = firstMissed;
    this.missed = missed;
    this.begun = begun;
    this.attempt = attempt;
    this.previous = previous;
    this.delivery = delivery;
    this.cancelled = cancelled;
  }

  long id() {
    return id;
  }

  void cancel() {
    cancelled = true;
  }

  /** Somebody else has ended the run. */
  void end() {
    ended = true;
  }

  @Override
  public Timer timer() {
    return timer;
  }

  @Override
  public Instant instant() {
    return instant;
  }

  @Override
  public Cause cause() {
    return cause;
  }

  @Override
  public Instant firstMissed() {
    return firstMissed;
  }

  @Override
  public long missed() {
    return missed;
  }

  @Override
  public Duration lateness() {
    Duration late = Duration.between(instant, begun);
    return late.isNegative() ? Duration.ZERO : late;
  }

  @Override
  public boolean isPastDue() {
    return lateness().compareTo(timer.onTime()) > 0;
  }

  @Override
  public int attempt() {
    return attempt;
  }

  @Override
  public long token() {
    return delivery.leaseToken();
  }

  @Override
  public Optional<PastRun> previous() {
    return previous;
  }

  @Override
  public List<Instant> next(int most) {
    if (most < 1 || most > MOST_NEXT) {
      throw new IllegalArgumentException("most is " + most + "; it must be 1 to " + MOST_NEXT);
    }
    return Instants.next(timer, instant, most);
  }

  @Override
  public boolean isCancelled() {
    if (cancelled || ended) {
      return true;
    }
    if (!delivery.leaseLost() && !delivery.stopping()) {
      return false;
    }
    comeAgain();
    return true;
  }

  /**
   * Who returns for this has not done the work; what the handler decides later holds. Once it has
   * returned, whoever still asks changes nothing.
   */
  private synchronized void comeAgain() {
    if (!told && !returned) {
      told = true;
      try {
        delivery.decide(again);
      } catch (IllegalStateException e) {
        log.debug("timer {}: run {} had ended already", timer.name(), instant, e);
      }
    }
  }

  /** Its handler has returned, or thrown. */
  synchronized void returned() {
    returned = true;
  }

  /** {@return whether it comes again since its handler was told to return, and not otherwise} */
  @SuppressWarnings("ReferenceEquality") // the handler may have decided the same by itself
  boolean comesAgain() {
    return delivery.decided().orElse(null) == again;
  }

  @Override
  public boolean isFenced() {
    return ended || delivery.leaseLost();
  }

  @Override
  public Delivery delivery() {
    return delivery;
  }

  @Override
  public String toString() {
    return "TimerRun[%s, %s, %s]".formatted(timer.name(), instant, cause);
  }
}
