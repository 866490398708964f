package dev.outbox4j.testing;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Range;
import dev.outbox4j.test.internal.MemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.NavigableSet;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.Function;

/** The store in memory of {@code outbox-test}, which can be made to fail, block or lie. */
public final class InMemoryStore extends MemoryStore {
  private final Map<String, Integer> calls = new TreeMap<>();
  private final Set<Long> locked = new HashSet<>();
  private final Set<Long> refused = new HashSet<>();
  private final Map<Long, Failing> failing = new HashMap<>();
  private final NavigableSet<Long> openTransactions = new TreeSet<>();
  private volatile Consumer<String> before = operation -> {};
  private volatile Consumer<String> after = operation -> {};
  private volatile Consumer<ClaimRequest> beforeClaim = request -> {};
  private volatile Function<Range, Duration> claimCost = range -> Duration.ZERO;
  private volatile OptionalInt connectionLimit = OptionalInt.empty();
  private volatile Duration networkTimeout = Duration.ofSeconds(15);

  private record Failing(Fault fault, Runnable meanwhile) {}

  /** Creates an empty store. */
  public InMemoryStore(Clock clock) {
    super(clock);
  }

  /** Tells how often an operation was called, by its verb. */
  public synchronized int calls(String operation) {
    return calls.getOrDefault(operation, 0);
  }

  /** Locks a row as a stranger's transaction does: it is not claimed, and writes find it busy. */
  public synchronized void lock(long id) {
    locked.add(id);
  }

  /** Takes a {@link #lock} back. */
  public synchronized void unlock(long id) {
    locked.remove(id);
  }

  /** Refuses to write a lease to a row, as a trigger that raises does. */
  public synchronized void refuseLease(long id) {
    refused.add(id);
  }

  /** Fails all writes that name a row, the dead letter's included, until {@link #mend}. */
  public synchronized void failWrites(long id, Fault fault) {
    failWrites(id, fault, () -> {});
  }

  /** The same, and calls back before each such failure: what happens while the server is at it. */
  public synchronized void failWrites(long id, Fault fault, Runnable meanwhile) {
    failing.put(id, new Failing(fault, meanwhile));
  }

  /** Takes {@link #refuseLease} and {@link #failWrites} back. */
  public synchronized void mend(long id) {
    refused.remove(id);
    failing.remove(id);
  }

  /** Begins a transaction that stays open, and returns its number. */
  public synchronized long openTransaction() {
    long number = beginTransaction();
    openTransactions.add(number);
    return number;
  }

  /** Ends a transaction. */
  public synchronized void endTransaction(long number) {
    openTransactions.remove(number);
  }

  /**
   * Makes the store tell how long claims over a range take. No time goes by, but a claim whose time
   * limit, or the network timeout, is less than that fails as one that the server ended.
   */
  public void claimCost(Function<Range, Duration> cost) {
    claimCost = cost;
  }

  /** Sets the network timeout. */
  public void networkTimeout(Duration timeout) {
    networkTimeout = timeout;
  }

  /**
   * Calls back with each operation's verb before it does anything; what is thrown is its result.
   */
  public void beforeEach(Consumer<String> hook) {
    before = hook;
  }

  /** Calls back with each claim before it does anything; what is thrown is its result. */
  public void beforeEachClaim(Consumer<ClaimRequest> hook) {
    beforeClaim = hook;
  }

  /** Calls back after each operation took effect: what is thrown is an answer that was lost. */
  public void afterEach(Consumer<String> hook) {
    after = hook;
  }

  /** Makes the store tell that it can borrow so many connections at once. */
  public void connectionLimit(int limit) {
    connectionLimit = OptionalInt.of(limit);
  }

  @Override
  public Duration networkTimeout() {
    return networkTimeout;
  }

  @Override
  public OptionalInt connectionLimit() {
    return connectionLimit;
  }

  @Override
  protected void before(String operation) {
    synchronized (this) {
      calls.merge(operation, 1, Integer::sum);
    }
    before.accept(operation);
  }

  @Override
  protected void after(String operation) {
    after.accept(operation);
  }

  @Override
  protected void beforeClaim(ClaimRequest request) {
    beforeClaim.accept(request);
  }

  @Override
  protected void checkClaim(ClaimRequest request) {
    Duration cost = claimCost.apply(request.range());
    Duration limit = request.timeLimit() == null ? networkTimeout : request.timeLimit();
    if (cost.compareTo(limit) > 0) {
      throw new OutboxStoreException(
          "claim failed: it takes " + cost + " and may take " + limit, Fault.TIMEOUT, false, null);
    }
  }

  @Override
  protected synchronized void checkWrite(String operation, long id) {
    Failing failure = failing.get(id);
    if (failure != null) {
      failure.meanwhile().run();
      throw new OutboxStoreException(
          operation + " failed: row " + id, failure.fault(), false, null);
    }
  }

  @Override
  protected synchronized boolean isLocked(long id) {
    return locked.contains(id);
  }

  @Override
  protected synchronized boolean refusesLease(long id) {
    return refused.contains(id);
  }

  @Override
  protected synchronized boolean haveEnded(long number) {
    return openTransactions.isEmpty() || openTransactions.first() > number;
  }
}
