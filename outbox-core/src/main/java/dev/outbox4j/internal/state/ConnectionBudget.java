package dev.outbox4j.internal.state;

import dev.outbox4j.OutboxStoreException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * Keeps a subscriber at its pooled connections, whichever of its threads ask. Thread-safe.
 *
 * <p>Renewals come first: nothing else is begun while one waits. And while statements hang, one of
 * them is kept for renewals: a claim and a write that both wait for an answer would let every lease
 * run out meanwhile. Only a look may have it too, which is given up well before a lease ends.
 * Everything else gets its turn in the order of asking, and no one waits without end.
 */
public final class ConnectionBudget {
  private static final long LONGEST_PROMPT = TimeUnit.SECONDS.toNanos(2);
  private static final Duration PATIENCE = Duration.ofSeconds(10);

  /** For how long a pool makes somebody wait for a connection: HikariCP's default. */
  private static final long POOL_WAIT = TimeUnit.SECONDS.toNanos(30);

  private static final long LONGEST_CAREFUL = TimeUnit.SECONDS.toNanos(30);

  private final int connections;
  private final LongSupplier clock;

  /** A statement that takes longer is taken to hang. */
  private final long promptNanos;

  /** Above what the pool and the store's time limit allow: the driver does not come back. */
  private final long lostNanos;

  /** How long one connection is kept for renewals after a statement hung and failed. */
  private final long carefulNanos;

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();

  // guarded by the lock
  private final Deque<Use> queue = new ArrayDeque<>();
  private final List<Use> others = new ArrayList<>();
  private final List<Use> renewing = new ArrayList<>();
  private int waitingRenewals;
  private int waitingLooks;
  private long succeededAt;
  private long carefulUntil;

  private enum Kind {
    CLAIM,
    WRITE,
    LOOK,
    RENEWAL
  }

  /** A statement that waits or runs. */
  private static final class Use {
    private final Kind kind;
    private long since;

    Use(Kind kind) {
      this.kind = kind;
    }

    boolean renewal() {
      return kind == Kind.RENEWAL;
    }
  }

  public ConnectionBudget(Duration lease, Duration networkTimeout, int connections) {
    this(lease, networkTimeout, connections, System::nanoTime);
  }

  public ConnectionBudget(
      Duration lease, Duration networkTimeout, int connections, LongSupplier clock) {
    this.connections = connections;
    this.clock = clock;
    this.lostNanos = POOL_WAIT + 2 * networkTimeout.toNanos();
    this.succeededAt = clock.getAsLong();
    this.carefulUntil = clock.getAsLong();
    this.promptNanos = Math.min(LONGEST_PROMPT, lease.toNanos() / 8);
    this.carefulNanos = Math.min(LONGEST_CAREFUL, lease.toNanos() / 2);
  }

  /** Runs a claim. */
  public <T> T spendOnClaim(Supplier<T> statement) {
    return run(new Use(Kind.CLAIM), PATIENCE.toNanos(), statement);
  }

  /** Runs a write. */
  public <T> T spend(Supplier<T> statement) {
    return run(new Use(Kind.WRITE), PATIENCE.toNanos(), statement);
  }

  /** Runs a look: a short read that goes before claims and writes that have not begun. */
  public <T> T spendOnLook(Supplier<T> statement) {
    return run(new Use(Kind.LOOK), PATIENCE.toNanos(), statement);
  }

  /** Runs what only tells other subscribers something. */
  public void spendOnSaying(Runnable statement) {
    spend(
        () -> {
          statement.run();
          return statement;
        });
  }

  /** Runs a renewal, which goes before everything that has not begun. */
  public <T> T spendOnRenewal(long longestWait, Supplier<T> statement) {
    return run(new Use(Kind.RENEWAL), longestWait, statement);
  }

  /** A result of null says that nothing was sent. */
  private <T> T run(Use use, long longestWait, Supplier<T> statement) {
    begin(use, longestWait);
    boolean failed = true;
    boolean answered = false;
    try {
      T result = statement.get();
      failed = false;
      answered = result != null;
      return result;
    } finally {
      end(use, failed, answered);
    }
  }

  private void begin(Use use, long longestWait) {
    boolean interrupted = false;
    lock.lock();
    try {
      long until = clock.getAsLong() + longestWait;
      enqueue(use);
      try {
        while (!mayBegin(use)) {
          long left = until - clock.getAsLong();
          if (left <= 0) {
            throw busy(use, longestWait);
          }
          try {
            changed.awaitNanos(left);
          } catch (InterruptedException e) {
            interrupted = true; // whoever interrupts an engine thread means: look again
          }
        }
        use.since = clock.getAsLong();
        (use.renewal() ? renewing : others).add(use);
      } finally {
        dequeue(use);
        changed.signalAll(); // the next in the queue may have a turn as well
      }
    } finally {
      lock.unlock();
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private void enqueue(Use use) {
    switch (use.kind) {
      case RENEWAL -> waitingRenewals++;
      case LOOK -> waitingLooks++;
      default -> queue.addLast(use);
    }
  }

  private void dequeue(Use use) {
    switch (use.kind) {
      case RENEWAL -> waitingRenewals--;
      case LOOK -> waitingLooks--;
      default -> queue.remove(use);
    }
  }

  private boolean mayBegin(Use use) {
    long now = clock.getAsLong();
    long running = others.stream().filter(other -> !lost(other, now)).count();
    if (running + renewing.size() >= connections) {
      return false;
    }
    if (use.kind == Kind.CLAIM
        && others.stream().anyMatch(o -> o.kind == Kind.WRITE && lost(o, now))) {
      return false; // nobody writes what would be claimed
    }
    return switch (use.kind) {
      case RENEWAL -> true;
      case LOOK -> waitingRenewals == 0;
      default ->
          waitingRenewals + waitingLooks == 0
              && queue.peekFirst() == use
              && (running == 0 || prompt());
    };
  }

  /** Its connection is gone for good, so the rest must do without. */
  private boolean lost(Use use, long now) {
    return now - use.since > lostNanos;
  }

  /** Tells whether no statement hangs, or has lately. */
  private boolean prompt() {
    long now = clock.getAsLong();
    for (Use other : others) {
      if (now - other.since > promptNanos && !lost(other, now)) {
        return false;
      }
    }
    return now - carefulUntil >= 0;
  }

  /** Tells whether some statement other than a look has succeeded after an instant. */
  public boolean succeededSince(long instant) {
    lock.lock();
    try {
      return succeededAt - instant > 0;
    } finally {
      lock.unlock();
    }
  }

  /** Returns for how long the driver has not come back from a statement; 0 if it is in time. */
  long lostForNanos() {
    long oldest = oldestNanos();
    return oldest > lostNanos ? oldest : 0;
  }

  private long oldestNanos() {
    lock.lock();
    try {
      long now = clock.getAsLong();
      return Stream.concat(others.stream(), renewing.stream())
          .mapToLong(use -> now - use.since)
          .max()
          .orElse(0);
    } finally {
      lock.unlock();
    }
  }

  /** Returns for how long some statement has been waiting for its answer; 0 if that is usual. */
  public long hangingNanos() {
    long oldest = oldestNanos();
    return oldest > promptNanos ? oldest : 0;
  }

  private void end(Use use, boolean failed, boolean answered) {
    lock.lock();
    try {
      long now = clock.getAsLong();
      if (failed && now - use.since > promptNanos) {
        carefulUntil = now + carefulNanos;
      }
      (use.renewal() ? renewing : others).remove(use);
      if (answered && use.kind != Kind.LOOK) { // which a server may answer that writes nothing
        succeededAt = now;
      }
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  private static OutboxStoreException busy(Use use, long waited) {
    return new OutboxStoreException(
        "The connections"
            + " of this subscriber have been in use for "
            + TimeUnit.NANOSECONDS.toMillis(waited)
            + " ms"
            + (use.renewal() ? "" : ", one being kept for renewals while statements hang")
            + "; look at the server, the network and the pool",
        OutboxStoreException.Fault.CONNECTION,
        false,
        null);
  }
}
