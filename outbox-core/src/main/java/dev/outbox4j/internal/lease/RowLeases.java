package dev.outbox4j.internal.lease;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.internal.lease.StuckRows.Company;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.settle.Completer;
import dev.outbox4j.internal.settle.Fence;
import dev.outbox4j.internal.state.ClaimedBatch;
import dev.outbox4j.internal.state.EngineHealth.Operation;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.HeldRow.State;
import dev.outbox4j.internal.state.Prefetch;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.Written;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The leases of all rows in the engine, renewed at half their life. Confined to the lease keeper.
 *
 * <p>A row that no worker has begun by then is given back, so that another process can handle it. A
 * row whose lease cannot be extended, because another session has locked it or the server refuses
 * the write, is tried again by itself; the others are not affected.
 *
 * <p>All queues share one thread, so one whose renewals take too long must not keep it: of such a
 * queue one statement a round is waited for, after what is due of the others.
 */
public final class RowLeases implements Renewable {
  private static final Logger log = LoggerFactory.getLogger(RowLeases.class);

  private static final int MAX_RENEW = 2_000;
  private static final int MAX_REFUSALS = 24;

  /** The most rows that may lose their leases with one whose renewal takes too long. */
  private static final int FEW = 16;

  /** Answers lost in a row after which it is tried whether a row is at fault. */
  private static final int LOST_ANSWERS = 3;

  private static final long LONGEST_WAIT = TimeUnit.SECONDS.toNanos(1);

  private final Shared shared;
  private final OutboxStore store;
  private final Completer completer;
  private final Prefetch prefetch;
  private final Duration lease;
  private final LongSupplier clock;

  /** For a connection, and before stuck rows are tried again. */
  private final long longestWait;

  /** Short beside half a lease, in which a connection that was lost must be replaced. */
  private final long retryPause;

  private final StuckRows stuck = new StuckRows();
  private long stuckDueAt;

  /** Of this round: rows whose own renewal got no answer; stuck, if the server answers others. */
  private final List<HeldRow> suspects = new ArrayList<>();

  private boolean amongStuck;
  private int failuresInRow;
  private int lostInRow;
  private long lostSince;

  /** Of this round: queues of which as many rows were refused as are sought in one. */
  private final Set<String> exhausted = new HashSet<>();

  /** Of this round: the server is in trouble. */
  private boolean trouble;

  /** Of this round: a statement was refused, and took too long. */
  private boolean slow;

  // of the statements that were begun together
  private int refusals;
  private long begunAt;

  public RowLeases(
      SubscriberSettings settings, Shared shared, Completer completer, Prefetch prefetch) {
    this(settings, shared, completer, prefetch, System::nanoTime);
  }

  public RowLeases(
      SubscriberSettings settings,
      Shared shared,
      Completer completer,
      Prefetch prefetch,
      LongSupplier clock) {
    this.shared = shared;
    this.store = settings.store();
    this.completer = completer;
    this.prefetch = prefetch;
    this.lease = settings.claiming().lease();
    this.clock = clock;
    this.stuckDueAt = clock.getAsLong();
    this.longestWait = Math.min(LONGEST_WAIT, lease.toNanos() / 8);
    this.retryPause = Math.min(LONGEST_WAIT, lease.toNanos() / 32);
  }

  @Override
  public void renewDue() {
    long now = clock.getAsLong();
    suspects.clear();
    stuck.removeSettled();
    exhausted.clear();
    trouble = false;
    slow = false;
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
    if (!trouble) {
      retryStuck(now);
    }
    if (!failed && !overdue && stuck.isEmpty()) {
      shared.health().succeeded(Operation.RENEW); // none is owed
    }
  }

  /** Renews what shares a lease; false if some of it is still owed. */
  private boolean renewBatches(List<ClaimedBatch> due) {
    if (due.isEmpty()) {
      return true;
    }
    Map<String, List<HeldRow>> rows = new LinkedHashMap<>();
    for (ClaimedBatch batch : due) {
      for (int i = 0; i < batch.size(); i++) {
        HeldRow row = batch.at(i);
        if (row != null && wanted(row) && !leftToItsTransaction(row) && !givenBack(row)) {
          rows.computeIfAbsent(batch.queue(), queue -> new ArrayList<>()).add(row);
        }
      }
    }
    long sentAt = clock.getAsLong();
    Set<String> renewed = renewQueues(rows);
    boolean answered = judgeSuspects();
    trouble |= !answered;
    long again = clock.getAsLong() + retryPause;
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
  private Set<String> renewQueues(Map<String, List<HeldRow>> rows) {
    Set<String> renewed = new HashSet<>();
    for (String queue : stuck.inTurn(rows.keySet())) {
      List<HeldRow> ofQueue = Objects.requireNonNull(rows.get(queue));
      if (stuck.isSlow(queue)) {
        ofQueue.forEach(this::setApart); // another statement would make other queues wait
        renewed.add(queue);
        continue;
      }
      begin();
      try {
        for (int from = 0; from < ofQueue.size(); from += MAX_RENEW) {
          renew(ofQueue.subList(from, Math.min(ofQueue.size(), from + MAX_RENEW)));
        }
        renewed.add(queue);
      } catch (RuntimeException failure) {
        stuck.served(queue);
        if (refusals < MAX_REFUSALS) {
          trouble = true; // of the server; many refused rows concern their queue alone
          break;
        }
        exhausted.add(queue);
      }
      if (refusals == 0) {
        stuck.renewed(queue);
      }
    }
    return renewed;
  }

  private void begin() {
    refusals = 0;
    begunAt = clock.getAsLong();
  }

  /** Returns false if nothing succeeds, so that it is not the rows. */
  private boolean judgeSuspects() {
    boolean guilty = suspects.isEmpty() || shared.connections().succeededSince(lostSince);
    if (guilty) {
      suspects.forEach(row -> stuck(row, "cannot be renewed: the connection is lost each time"));
    }
    return guilty;
  }

  private static boolean wanted(HeldRow row) {
    return row.state() != State.SETTLED && !row.knownLost() && !row.isApart();
  }

  /**
   * A row that its handler's transaction has locked, or is about to: nobody else can claim it, and
   * a renewal would wait for it. If that transaction fails, the lease ends when it would have.
   */
  private static boolean leftToItsTransaction(HeldRow row) {
    if (!row.isCommitting()) {
      return false;
    }
    row.setApart(row.batch().lease().expiresAt());
    return true;
  }

  private boolean givenBack(HeldRow row) {
    if (row.state() != State.WAITING || !row.giveBack()) {
      return false;
    }
    row.setApart(row.batch().lease().expiresAt()); // what is renewed with its batch is not its own
    prefetch.stalled();
    completer.complete(row);
    return true;
  }

  private void retryStuck(long now) {
    if (slow || stuck.isEmpty() || now - stuckDueAt < 0) {
      return;
    }
    long sentAt = clock.getAsLong();
    amongStuck = true;
    try {
      if (retryWithAll()) {
        retryWithFew(sentAt);
      }
    } finally { // an Error goes on to the loop, and an outage would look like rows at fault
      amongStuck = false;
    }
    long cost = clock.getAsLong() - sentAt;
    stuckDueAt =
        clock.getAsLong() + Math.max(longestWait, Math.min(10 * cost, lease.toNanos() / 16));
  }

  /** Tries rows that took no one's time; false if nothing else is to be tried in this round. */
  private boolean retryWithAll() {
    for (String queue : stuck.queues()) {
      List<HeldRow> rows = exhausted.contains(queue) ? List.of() : stuck.of(queue, Company.ALL);
      if (!retry(rows.subList(0, Math.min(rows.size(), MAX_RENEW)))) {
        return false;
      }
    }
    return true;
  }

  /** Tries rows of queues that took too long, until one does again. */
  private void retryWithFew(long sentAt) {
    for (String queue : stuck.queues()) {
      for (Company company : EnumSet.range(Company.FEW, Company.NONE_AND_LAST)) {
        List<HeldRow> rows = stuck.of(queue, company);
        int size = 1;
        for (int from = 0; from < rows.size(); ) {
          int to = Math.min(rows.size(), from + size);
          if (!retry(rows.subList(from, to))) {
            return;
          }
          if (clock.getAsLong() - sentAt >= longestWait) {
            stuck.served(queue);
            return;
          }
          from = to;
          size = company == Company.FEW ? Math.min(2 * size, FEW) : 1;
        }
      }
    }
  }

  /** Tries rows of one queue again; false if nothing else is to be tried in this round. */
  private boolean retry(List<HeldRow> rows) {
    if (rows.isEmpty()) {
      return true;
    }
    begin();
    try {
      renew(rows);
    } catch (RuntimeException failure) {
      log.debug("[{}] leases of single rows cannot be renewed", shared.subscriber(), failure);
      stuck.served(rows.get(0).queue());
      return refusals >= MAX_REFUSALS && !slow;
    }
    return !slow;
  }

  /** Renews rows of one queue; what the server refuses is sought by halving. */
  private void renew(List<HeldRow> rows) {
    if (refusals > 0 && takesTooLong()) {
      rows.forEach(this::setApart);
      return;
    }
    List<HeldRow> sent = new ArrayList<>(rows.size());
    Written written;
    try {
      written =
          shared
              .connections()
              .spendOnRenewal(
                  longestWait,
                  () -> {
                    // asked again after the wait: a row given back meanwhile must stay given back
                    rows.stream()
                        .filter(row -> row.state() != State.SETTLED && !leftToItsTransaction(row))
                        .forEach(sent::add);
                    List<LeaseRef> leases = sent.stream().map(HeldRow::lease).toList();
                    return leases.isEmpty() ? null : store.renew(leases, lease);
                  });
    } catch (RuntimeException thrown) {
      shared.health().failed(Operation.RENEW, thrown);
      OutboxStoreException failure = Fence.asStoreException(thrown);
      if (!concernsRows(failure) || refusals >= MAX_REFUSALS) {
        throw failure;
      }
      refusals++;
      if (takesTooLong()) {
        tookTooLong(rows, failure);
      } else if (rows.size() == 1 && !amongStuck && !wasAnswered(failure)) {
        suspects.add(rows.get(0));
      } else if (rows.size() == 1) {
        stuck(rows.get(0), "cannot be renewed: " + failure.getMessage());
      } else {
        renew(rows.subList(0, rows.size() / 2));
        renew(rows.subList(rows.size() / 2, rows.size()));
      }
      return;
    }
    if (sent.isEmpty()) {
      return;
    }
    if (!written.done().isEmpty()) {
      shared.events().renewed(written.done().size());
    }
    Predicate<HeldRow> done = Fence.among(sent, written.done());
    Predicate<HeldRow> busy = Fence.among(sent, written.busy());
    for (HeldRow row : sent) {
      if (done.test(row)) {
        row.rejoin();
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
      lostSince = System.nanoTime(); // the connections' clock
    }
    return !takesTooLong() && (amongStuck || lostInRow >= LOST_ANSWERS); // what hangs is not sought
  }

  private boolean takesTooLong() {
    return clock.getAsLong() - begunAt >= longestWait;
  }

  private static boolean wasAnswered(OutboxStoreException failure) {
    return !failure.outcomeUnknown() && failure.fault() != Fault.CONNECTION;
  }

  /** A statement was refused, and waiting for the next one would make others wait. */
  private void tookTooLong(List<HeldRow> rows, OutboxStoreException failure) {
    slow = true;
    stuck.served(rows.get(0).queue());
    if (rows.size() == 1) {
      stuck(rows.get(0), Company.NONE_AND_LAST, "cannot be renewed: " + failure.getMessage());
      return;
    }
    for (HeldRow row : rows) {
      hold(row, stuck.company(row) == Company.ALL ? Company.FEW : Company.NONE);
    }
  }

  /** Leaves a row that was not tried to a later round. */
  private void setApart(HeldRow row) {
    Company known = stuck.company(row);
    hold(row, known == Company.ALL ? Company.FEW : known);
  }

  private void stuck(HeldRow row, String why) {
    stuck(row, Company.ALL, why);
  }

  private void stuck(HeldRow row, Company next, String why) {
    State state = row.state();
    long now = clock.getAsLong();
    long since = hold(row, next);
    // else we may just be writing it
    if (state != State.SETTLED && state != State.DECIDED && !row.isCommitting()) {
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

  /** Keeps a row from being renewed with its batch; returns since when it is stuck. */
  private long hold(HeldRow row, Company next) {
    long since = stuck.put(row, next, clock.getAsLong());
    row.setApart(row.batch().lease().expiresAt());
    return since;
  }

  /**
   * Not held any more: settled by ourselves since the statement was made up, or another owner's.
   */
  private void missing(HeldRow row) {
    row.setApart(row.batch().lease().expiresAt()); // what is renewed with its batch is not its own
    if (row.running() != null) { // none is renewed that was not begun
      row.lose();
      log.warn(
          "[{}] {}: lease lost while its handler runs; what it decides changes nothing",
          shared.subscriber(),
          row);
      shared.events().leaseLost(row, Phase.RENEW);
    }
  }
}
