package dev.outbox4j.internal.settle;

import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.internal.ByteBudget;
import dev.outbox4j.internal.Durations;
import dev.outbox4j.internal.Loop;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.settle.GroupWriter.Kind;
import dev.outbox4j.internal.state.EngineHealth.Operation;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.BucketLease;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.DeadLetterWriter;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.RescheduleUpdate;
import dev.outbox4j.spi.RetryUpdate;
import dev.outbox4j.spi.Written;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes outcomes by group commit, on a loop of its own: while one flush is on the wire, further
 * outcomes pile up and go in the next; alone, an outcome goes at once. A write that fails is kept
 * and tried again, its lease renewed meanwhile unless the row is given back, until it succeeds or
 * another owner has the row.
 */
public final class Completer {
  private static final Logger log = LoggerFactory.getLogger(Completer.class);

  /** The most rows one statement settles. */
  private static final int MAX_FLUSH = 2_000;

  private static final int MAX_MOVE = 500;

  /** How long outcomes are gathered while more rows wait to be handled. */
  private static final long GATHER_NANOS = TimeUnit.MILLISECONDS.toNanos(2);

  private static final Duration PUT_OFF = Duration.ofSeconds(30);

  private final Shared shared;
  private final OutboxStore store;
  private final @Nullable DeadLetterWriter deadLetters;
  private final FailureLog failures;
  private final Loop loop;
  private final int gatherUpTo;

  private final AtomicReference<@Nullable HeldRow> completed = new AtomicReference<>();
  private volatile boolean parked;
  private volatile boolean acksOnly;
  private volatile boolean givenUp;

  // confined to the loop
  private final Map<String, Writers> writers = new LinkedHashMap<>();
  private final List<GroupWriter> all = new ArrayList<>();
  private @Nullable HeldRow collected; // taken over and not sorted yet, oldest first

  /** The writers of one queue. */
  private record Writers(
      GroupWriter acks,
      GroupWriter retries,
      GroupWriter reschedules,
      GroupWriter releases,
      @Nullable GroupWriter deadLetters) {}

  public Completer(SubscriberSettings settings, Shared shared) {
    this.shared = shared;
    this.store = settings.store();
    this.deadLetters = settings.deadLetters();
    this.failures = new FailureLog(shared.warnings());
    this.loop = new Loop(shared.threads(), "completer", this::flush, this::survive);
    this.gatherUpTo = settings.claiming().batchSize();
    long heldBytes = ByteBudget.held();
    for (String queue : settings.queues()) {
      Writers of =
          new Writers(
              writer(new Acks(), queue, heldBytes),
              writer(new Retries(), queue, heldBytes),
              writer(new Reschedules(), queue, heldBytes),
              writer(new Releases(), queue, heldBytes),
              deadLetters == null ? null : writer(new DeadLetters(deadLetters), queue, heldBytes));
      writers.put(queue, of);
    }
  }

  private GroupWriter writer(Kind kind, String queue, long heldBytes) {
    GroupWriter writer = new GroupWriter(kind, queue, shared, heldBytes);
    all.add(writer);
    return writer;
  }

  public void start() {
    loop.start();
  }

  /** Takes a decided row over; from any thread. */
  public void complete(HeldRow row) {
    if (acksOnly
        && !(row.settlement() instanceof Settlement.Ack
            || row.settlement() instanceof Settlement.Leave
            || row.settlement() instanceof Settlement.Release)) {
      row.lose(); // so that its lease is not renewed once more, which would make others wait
      log.debug("[{}] {} is left to the end of its lease", shared.subscriber(), row);
      return;
    }
    HeldRow head;
    do {
      head = completed.get();
      row.nextCompleted = head;
    } while (!completed.compareAndSet(head, row));
    if (parked) {
      loop.signal();
    }
    row.tellDecided(); // not before: what follows it must not be written before it
  }

  /** Takes note of a row that its handler's transaction has settled; from any thread. */
  public void committed(HeldRow row, Settlement settlement) {
    row.committed(settlement);
    shared.registry().settle(row);
    if (settlement instanceof Settlement.Reschedule reschedule) {
      shared.room().dueAgainIn(Durations.saturatedNanos(reschedule.delay()));
      shared.events().rescheduled(row, reschedule.delay());
    } else {
      shared.events().acked(List.of(row));
    }
    shared.room().settled();
  }

  /** Lets go of a row that its handler's transaction did not find; from any thread. */
  public void missed(HeldRow row, Phase phase) {
    shared.registry().settle(row);
    Fence.reportMissing(shared, row, phase);
    shared.room().settled();
  }

  /** Lets go of a row that was withdrawn because its lease is over; from any thread. */
  public void abandon(HeldRow row, Phase phase) {
    shared.registry().settle(row);
    shared.events().leaseLost(row, phase);
    shared.room().settled();
  }

  /**
   * Takes over nothing from now on but what is done or left to others: handlers are about to be
   * interrupted by the stop, and what that makes them throw is no failure of their messages.
   */
  public void acksOnly() {
    acksOnly = true;
  }

  /** Ends the loop once everything is written. */
  public void stop() {
    loop.stop();
  }

  /** Waits for the end; false if the deadline passed before. */
  public boolean join(long deadline) {
    return loop.join(deadline);
  }

  /** Ends the loop once the statement under way has ended and what is left was tried once more. */
  public void giveUp() {
    givenUp = true;
    loop.interrupt();
  }

  /** Returns how many terminal failures the dead letters have not taken. */
  public int deadLettersWaiting() {
    int waiting = 0;
    for (GroupWriter writer : all) {
      if (writer.operation() == Operation.DEAD_LETTER) {
        waiting += writer.waiting();
      }
    }
    return waiting;
  }

  /** Returns how many rows wait aside and do not count in the registry. */
  public int parked() {
    return all.stream().mapToInt(GroupWriter::parked).sum();
  }

  private void survive(Throwable unexpected) {
    shared.health().failed(Operation.ACK, unexpected);
  }

  /** Writes what there is and returns how long to wait for more. */
  private long flush(boolean woken) {
    parked = false;
    boolean stopping = loop.stopping();
    if (collect() > 0 && !stopping && shared.room().hasWaiting()) {
      gather();
    }
    long wait = GroupWriter.NOTHING;
    for (GroupWriter writer : all) {
      wait = Math.min(wait, writer.flush(stopping));
    }
    if (shared.health().failing()) {
      recover();
    }
    if (givenUp) {
      return lastPass();
    }
    parked = true; // before the last look, so that whoever comes after it signals
    if (completed.get() != null) {
      return 0;
    }
    return stopping && idle() ? Loop.END : wait;
  }

  private long lastPass() {
    Thread.interrupted(); // it would make every connection fail
    collect();
    for (GroupWriter writer : all) {
      writer.flush(true);
      if (writer.fresh() > 0) { // such as acks that waited for one before them
        writer.flush(true);
      }
    }
    return Loop.END;
  }

  /** What no writer has trouble with any more works again. */
  private void recover() {
    for (GroupWriter writer : all) {
      Operation operation = writer.operation();
      if (all.stream().noneMatch(other -> other.operation() == operation && other.troubled())) {
        shared.health().succeeded(operation);
      }
    }
  }

  private boolean idle() {
    return completed.get() == null
        && collected == null
        && all.stream().allMatch(writer -> writer.idle(true));
  }

  private int collect() {
    int count = sortCollected(); // what an Error, such as OutOfMemoryError, left behind
    HeldRow top = completed.getAndSet(null);
    while (top != null) { // the stack gives the newest first
      HeldRow next = top.nextCompleted;
      top.nextCompleted = collected;
      collected = top;
      top = next;
    }
    return count + sortCollected();
  }

  private int sortCollected() {
    int count = 0;
    for (HeldRow row = collected; row != null; row = collected, count++) {
      sort(row);
      collected = row.nextCompleted; // only now: what is not sorted must not be forgotten
      row.nextCompleted = null;
    }
    return count;
  }

  private void sort(HeldRow row) {
    Writers of = Objects.requireNonNull(writers.get(row.batch().queue()));
    Settlement settlement = row.settlement();
    if (settlement instanceof Settlement.Ack) {
      of.acks().add(row);
    } else if (settlement instanceof Settlement.Retry || settlement instanceof Settlement.Leave) {
      of.retries().add(row);
    } else if (settlement instanceof Settlement.Reschedule) {
      of.reschedules().add(row);
    } else if (settlement instanceof Settlement.Release) {
      if (needsNoRelease(row)) {
        shared.registry().settle(row);
      } else {
        of.releases().add(row);
      }
    } else if (settlement instanceof Settlement.DeadLetter) {
      // where there are no dead letters the row is deleted
      Objects.requireNonNullElse(of.deadLetters(), of.acks()).add(row);
    } else {
      throw new AssertionError(settlement);
    }
  }

  /** Nothing was written to read it. */
  private static boolean needsNoRelease(HeldRow row) {
    BucketLease bucket = row.lease().bucket();
    return bucket != null && !bucket.counted();
  }

  /** While workers have rows to go on with, a larger group costs no one any time. */
  private void gather() {
    long until = System.nanoTime() + GATHER_NANOS;
    while (all.stream().mapToInt(GroupWriter::fresh).sum() < gatherUpTo && !loop.stopping()) {
      long left = until - System.nanoTime();
      if (left <= 0) {
        return;
      }
      LockSupport.parkNanos(this, left);
      collect();
      if (!shared.room().hasWaiting()) {
        return;
      }
    }
  }

  private static List<LeaseRef> leases(List<HeldRow> rows) {
    return rows.stream().map(HeldRow::lease).toList();
  }

  /** What the kinds have in common. */
  private abstract class Writing implements Kind {
    private final Operation operation;
    private final Phase phase;
    private final int maxGroup;

    Writing(Operation operation, Phase phase, int maxGroup) {
      this.operation = operation;
      this.phase = phase;
      this.maxGroup = maxGroup;
    }

    @Override
    public final Operation operation() {
      return operation;
    }

    @Override
    public final Phase phase() {
      return phase;
    }

    @Override
    public final int maxGroup() {
      return maxGroup;
    }

    /** Whatever was decided of them, their handlers are done, and what came instead is due. */
    @Override
    public void replaced(List<HeldRow> rows) {
      shared.room().dueAgainIn(0);
      List<HeldRow> acked = new ArrayList<>(rows.size());
      int released = 0;
      for (HeldRow row : rows) {
        if (row.settlement() == Settlement.Ack.INSTANCE) {
          acked.add(row);
        } else if (row.settlement() == Settlement.Release.INSTANCE) {
          released++;
        } else {
          failures.replaced(row);
          shared.events().rescheduled(row, Duration.ZERO);
        }
      }
      if (!acked.isEmpty()) {
        shared.events().acked(acked);
      }
      if (released > 0) {
        shared.events().released(released);
      }
    }

    /** Leaves the row to the end of its lease. */
    @Override
    public void tooMany(RowQueue from) {
      shared.registry().settle(Objects.requireNonNull(from.peekFirst()));
      HeldRow row = from.removeFirst();
      shared
          .warnings()
          .error(
              log,
              "left " + operation.verb(),
              "too many outcomes cannot be written; {} is left to the end of its lease",
              row);
    }
  }

  /** Deletes rows that are done, and terminal failures where there are no dead letters. */
  private final class Acks extends Writing {
    Acks() {
      super(Operation.ACK, Phase.ACK, MAX_FLUSH);
    }

    @Override
    public Written write(List<HeldRow> rows) {
      return store.ack(leases(rows));
    }

    @Override
    public void written(List<HeldRow> rows) {
      List<HeldRow> acked = new ArrayList<>(rows.size());
      for (HeldRow row : rows) {
        if (row.settlement() instanceof Settlement.DeadLetter terminal) {
          failures.deleted(row, terminal);
          shared.events().deadLettered(row, terminal.reason(), false);
        } else {
          acked.add(row);
        }
      }
      shared.events().acked(acked);
    }
  }

  private final class Retries extends Writing {
    Retries() {
      super(Operation.RETRY, Phase.RETRY, MAX_FLUSH);
    }

    @Override
    public Written write(List<HeldRow> rows) {
      return store.retry(rows.stream().map(this::update).toList());
    }

    private RetryUpdate update(HeldRow row) {
      if (row.settlement() instanceof Settlement.Leave leave) {
        return new RetryUpdate(row.lease(), leave.delay(), Settlement.Leave.ERROR, false, true);
      }
      Settlement.Retry retry = (Settlement.Retry) row.settlement();
      return new RetryUpdate(
          row.lease(), retry.delay(), retry.error(), retry.counted(), retry.givesBack());
    }

    @Override
    public void written(List<HeldRow> rows) {
      for (HeldRow row : rows) {
        if (row.settlement() instanceof Settlement.Leave leave) {
          shared.room().dueAgainIn(Durations.saturatedNanos(leave.delay()));
          shared.events().rescheduled(row, leave.delay());
        } else {
          Duration delay = ((Settlement.Retry) row.settlement()).delay();
          shared.room().dueAgainIn(Durations.saturatedNanos(delay));
          shared.events().retried(row, delay);
        }
      }
      for (HeldRow row : rows) {
        if (row.settlement() instanceof Settlement.Retry retry) {
          failures.retried(row, retry);
        }
      }
    }
  }

  private final class Reschedules extends Writing {
    Reschedules() {
      super(Operation.RESCHEDULE, Phase.RESCHEDULE, MAX_FLUSH);
    }

    @Override
    public Written write(List<HeldRow> rows) {
      List<RescheduleUpdate> updates = new ArrayList<>(rows.size());
      for (HeldRow row : rows) {
        updates.add(
            new RescheduleUpdate(row.lease(), ((Settlement.Reschedule) row.settlement()).delay()));
      }
      return store.reschedule(updates);
    }

    @Override
    public void written(List<HeldRow> rows) {
      for (HeldRow row : rows) {
        Duration delay = ((Settlement.Reschedule) row.settlement()).delay();
        shared.room().dueAgainIn(Durations.saturatedNanos(delay));
        shared.events().rescheduled(row, delay);
      }
    }
  }

  private final class Releases extends Writing {
    Releases() {
      super(Operation.RELEASE, Phase.RELEASE, MAX_FLUSH);
    }

    @Override
    public Written write(List<HeldRow> rows) {
      return store.release(leases(rows));
    }

    @Override
    public void written(List<HeldRow> rows) {
      if (!rows.isEmpty()) {
        log.debug("[{}] released {} rows", shared.subscriber(), rows.size());
        shared.events().released(rows.size());
      }
    }
  }

  /** Moves terminal failures; while that fails, those beyond the room are put off. */
  private final class DeadLetters extends Writing {
    private final DeadLetterWriter target;

    DeadLetters(DeadLetterWriter target) {
      super(Operation.DEAD_LETTER, Phase.DEAD_LETTER, MAX_MOVE);
      this.target = target;
    }

    @Override
    public Written write(List<HeldRow> rows) {
      List<DeadLetterEntry> entries = new ArrayList<>(rows.size());
      for (HeldRow row : rows) {
        Settlement.DeadLetter terminal = (Settlement.DeadLetter) row.settlement();
        entries.add(
            new DeadLetterEntry(
                row.lease(), terminal.reason(), terminal.attempts(), terminal.exception()));
      }
      return target.write(entries);
    }

    @Override
    public void written(List<HeldRow> rows) {
      for (HeldRow row : rows) {
        Settlement.DeadLetter terminal = (Settlement.DeadLetter) row.settlement();
        failures.moved(row, terminal, target.place());
        shared.events().deadLettered(row, terminal.reason(), true);
      }
    }

    /** An attempt counts only where a handler ran. */
    @Override
    public void tooMany(RowQueue from) {
      HeldRow row = Objects.requireNonNull(from.peekFirst());
      Settlement.DeadLetter terminal = (Settlement.DeadLetter) row.settlement();
      boolean handled = terminal.attempts() > row.history().attempts();
      row.putOff(
          Settlement.Retry.putOff(PUT_OFF, "the dead letters are broken; postponed", handled));
      Objects.requireNonNull(writers.get(row.batch().queue())).retries().add(from.removeFirst());
      shared
          .warnings()
          .warn(log, "put off", "{} cannot be dead-lettered now; postponed by {}", row, PUT_OFF);
    }
  }
}
