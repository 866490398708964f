package dev.outbox4j.internal;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.internal.EngineHealth.Operation;
import dev.outbox4j.internal.InFlight.State;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.Written;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The leases of all rows in the engine, renewed at half their life. Confined to the lease keeper.
 *
 * <p>A row that no worker has begun by then is given back, so that another process can handle it. A
 * row whose lease cannot be extended, because another session has locked it or the server refuses
 * the write, is tried again by itself; the others are not affected.
 */
final class RowLeases implements Renewable {
  private static final Logger log = LoggerFactory.getLogger(RowLeases.class);

  private static final int MAX_RENEW = 2_000;
  private static final int MAX_REFUSALS = 24;

  /** Answers lost in a row after which it is tried whether a row is at fault. */
  private static final int LOST_ANSWERS = 3;

  private static final long LONGEST_WAIT = TimeUnit.SECONDS.toNanos(1);

  private final Engine.Shared shared;
  private final OutboxStore store;
  private final Completer completer;
  private final Prefetch prefetch;
  private final Duration lease;

  /** For a connection, and before stuck rows are tried again. */
  private final long longestWait;

  /** Short beside half a lease, in which a connection that was lost must be replaced. */
  private final long retryPause;

  /** Rows whose lease could not be extended with the others', and since when. */
  private final Map<InFlight, Long> stuck = new LinkedHashMap<>();

  private long stuckDueAt = System.nanoTime();

  /** Rows whose own renewal got no answer: stuck, if the server answers others. */
  private final List<InFlight> suspects = new ArrayList<>();

  private boolean amongStuck;
  private int failuresInRow;
  private int lostInRow;
  private long lostSince;
  private int refusals;
  private long begunAt;

  RowLeases(
      SubscriberSettings settings, Engine.Shared shared, Completer completer, Prefetch prefetch) {
    this.shared = shared;
    this.store = settings.store();
    this.completer = completer;
    this.prefetch = prefetch;
    this.lease = settings.claiming().lease();
    this.longestWait = Math.min(LONGEST_WAIT, lease.toNanos() / 8);
    this.retryPause = Math.min(LONGEST_WAIT, lease.toNanos() / 32);
  }

  @Override
  public void renewDue() {
    long now = System.nanoTime();
    begunAt = now;
    suspects.clear(); // of a round that an Error ended
    boolean overdue = false;
    List<ClaimedBatch> due = new ArrayList<>();
    for (ClaimedBatch batch : shared.registry().batches()) {
      if (batch.lease().dueAt(now)) {
        due.add(batch);
      } else {
        overdue |= batch.lease().overdue();
      }
    }
    boolean failed = !renewBatches(due);
    if (!failed) {
      retryStuck(now);
    }
    if (!failed && !overdue && stuck.isEmpty()) {
      shared.health().succeeded(Operation.RENEW); // none is owed
    }
  }

  /** Renews what shares a lease; false if the server is in trouble. */
  private boolean renewBatches(List<ClaimedBatch> due) {
    if (due.isEmpty()) {
      return true;
    }
    Map<String, List<InFlight>> rows = new LinkedHashMap<>();
    for (ClaimedBatch batch : due) {
      for (int i = 0; i < batch.size(); i++) {
        InFlight row = batch.at(i);
        if (row != null && wanted(row) && !givenBack(row)) {
          rows.computeIfAbsent(batch.queue(), queue -> new ArrayList<>()).add(row);
        }
      }
    }
    long sentAt = System.nanoTime();
    Set<String> renewed = renewQueues(rows);
    boolean answered = judgeSuspects();
    long again = System.nanoTime() + retryPause;
    boolean failed = false;
    for (ClaimedBatch batch : due) {
      if (answered && (renewed.contains(batch.queue()) || !rows.containsKey(batch.queue()))) {
        batch.lease().renewed(sentAt, lease.toNanos());
      } else {
        batch.lease().renewLater(again);
        failed = true;
      }
    }
    if (failed) {
      return false;
    }
    failuresInRow = 0;
    lostInRow = 0;
    return true;
  }

  /** Returns the queues whose rows are renewed, or known to be stuck. */
  private Set<String> renewQueues(Map<String, List<InFlight>> rows) {
    Set<String> renewed = new HashSet<>();
    for (Map.Entry<String, List<InFlight>> queue : rows.entrySet()) {
      List<InFlight> ofQueue = queue.getValue();
      refusals = 0;
      try {
        for (int from = 0; from < ofQueue.size(); from += MAX_RENEW) {
          renew(ofQueue.subList(from, Math.min(ofQueue.size(), from + MAX_RENEW)));
        }
        renewed.add(queue.getKey());
      } catch (RuntimeException failure) {
        if (refusals < MAX_REFUSALS) {
          break; // the server is in trouble; many refused rows concern their queue alone
        }
      }
    }
    return renewed;
  }

  /** Returns false if nothing succeeds, so that it is not the rows. */
  private boolean judgeSuspects() {
    boolean guilty = suspects.isEmpty() || shared.connections().succeededSince(lostSince);
    if (guilty) {
      suspects.forEach(row -> stuck(row, "cannot be renewed: the connection is lost each time"));
    }
    suspects.clear();
    return guilty;
  }

  private static boolean wanted(InFlight row) {
    return row.state() != State.SETTLED && !row.knownLost() && !row.isLocked();
  }

  private boolean givenBack(InFlight row) {
    if (row.state() != State.BUFFERED || !row.giveBack()) {
      return false;
    }
    prefetch.stalled();
    completer.complete(row);
    return true;
  }

  private void retryStuck(long now) {
    stuck.keySet().removeIf(row -> row.state() == State.SETTLED || row.knownLost());
    if (stuck.isEmpty() || now - stuckDueAt < 0) {
      return;
    }
    Map<String, List<InFlight>> rows = new LinkedHashMap<>();
    for (InFlight row : stuck.keySet()) {
      rows.computeIfAbsent(row.batch().queue(), queue -> new ArrayList<>()).add(row);
    }
    amongStuck = true;
    try {
      for (List<InFlight> ofQueue : rows.values()) {
        if (!retryStuck(ofQueue)) {
          break;
        }
      }
    } finally { // an Error goes on to the loop, and an outage would look like rows at fault
      amongStuck = false;
    }
    long cost = System.nanoTime() - now;
    stuckDueAt =
        System.nanoTime() + Math.max(longestWait, Math.min(10 * cost, lease.toNanos() / 4));
  }

  /** Tries those of one queue again; false if the server is in trouble. */
  private boolean retryStuck(List<InFlight> ofQueue) {
    refusals = 0;
    try {
      renew(ofQueue.subList(0, Math.min(ofQueue.size(), MAX_RENEW)));
    } catch (RuntimeException failure) {
      log.debug("[{}] leases of single rows cannot be renewed", shared.subscriber(), failure);
      return refusals >= MAX_REFUSALS;
    }
    return true;
  }

  /** Renews rows of one queue; what the server refuses is sought by halving. */
  private void renew(List<InFlight> rows) {
    List<InFlight> sent = new ArrayList<>(rows.size());
    Written written;
    try {
      written =
          shared
              .connections()
              .spendOnRenewal(
                  longestWait,
                  () -> {
                    // asked again after the wait: a row given back meanwhile must stay given back
                    rows.stream().filter(row -> row.state() != State.SETTLED).forEach(sent::add);
                    List<LeaseRef> leases = sent.stream().map(InFlight::lease).toList();
                    return leases.isEmpty() ? Written.done(Set.of()) : store.renew(leases, lease);
                  });
    } catch (RuntimeException thrown) {
      shared.health().failed(Operation.RENEW, thrown);
      OutboxStoreException failure = Fence.asStoreException(thrown);
      if (!concernsRows(failure) || refusals >= MAX_REFUSALS) {
        throw failure;
      }
      refusals++;
      if (rows.size() == 1 && !amongStuck && !wasAnswered(failure)) {
        suspects.add(rows.get(0));
      } else if (rows.size() == 1) {
        stuck(rows.get(0), "cannot be renewed: " + failure.getMessage());
      } else {
        renew(rows.subList(0, rows.size() / 2));
        renew(rows.subList(rows.size() / 2, rows.size()));
      }
      return;
    }
    if (!written.done().isEmpty()) {
      shared.events().renewed(written.done().size());
    }
    Predicate<InFlight> done = Fence.among(sent, written.done());
    Predicate<InFlight> busy = Fence.among(sent, written.busy());
    for (InFlight row : sent) {
      if (done.test(row)) {
        row.unlocked();
        stuck.remove(row);
      } else if (busy.test(row)) {
        stuck(row, "is locked by another session: look for an open transaction that locked it");
      } else {
        stuck.remove(row);
        missing(row);
      }
    }
  }

  private boolean concernsRows(OutboxStoreException failure) {
    Fault fault = failure.fault();
    if (fault == Fault.ROW || fault == Fault.TIMEOUT) {
      return true;
    }
    if (wasAnswered(failure)) {
      return amongStuck || refusals > 0 || ++failuresInRow > 1;
    }
    if (lostInRow++ == 0) {
      lostSince = System.nanoTime();
    }
    boolean prompt = System.nanoTime() - begunAt < longestWait; // what hangs is not sought
    return prompt && (amongStuck || lostInRow >= LOST_ANSWERS);
  }

  private static boolean wasAnswered(OutboxStoreException failure) {
    return !failure.outcomeUnknown() && failure.fault() != Fault.CONNECTION;
  }

  private void stuck(InFlight row, String why) {
    State state = row.state();
    if (state == State.SETTLED) {
      return;
    }
    long now = System.nanoTime();
    Long known = stuck.remove(row);
    long since = known == null ? now : known;
    stuck.put(row, since); // to the end: the next try begins with those that this one left out
    row.lockedByOther(row.batch().lease().expiresAt());
    if (state != State.DECIDED) { // else it may be ourselves who write it just now
      shared
          .health()
          .held(
              Operation.RENEW,
              "the lease of row "
                  + row.id()
                  + " of queue '"
                  + row.queue()
                  + "' has not been extended since "
                  + Instant.now().minusNanos(now - since).truncatedTo(ChronoUnit.SECONDS)
                  + ": it "
                  + why);
    }
  }

  /**
   * Not held any more: settled by ourselves since the statement was made up, or another owner's.
   */
  private void missing(InFlight row) {
    if (row.withdraw()) {
      row.lose();
      log.debug("[{}] {}: lease lost before its handler was started", shared.subscriber(), row);
      completer.abandon(row, Phase.RENEW);
    } else if (row.state() == State.RUNNING) {
      row.lose();
      log.warn(
          "[{}] {}: lease lost while its handler runs; what it decides changes nothing",
          shared.subscriber(),
          row);
      shared.events().leaseLost(row, Phase.RENEW);
    }
  }
}
