package dev.outbox4j.internal.run;

import dev.outbox4j.Batch;
import dev.outbox4j.BatchMessage;
import dev.outbox4j.internal.Causes;
import dev.outbox4j.internal.RedactedThrowable;
import dev.outbox4j.internal.settings.HandlerTable.BatchRoute;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.settle.Completer;
import dev.outbox4j.internal.state.Buffer;
import dev.outbox4j.internal.state.HandlerRun;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Room;
import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.UndecodableException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs handlers of several messages at once. A batch that fails is handled again in halves, until
 * what is at fault stands alone: only that has failed. Thread-safe.
 */
final class BatchTask {
  private static final Logger log = LoggerFactory.getLogger(BatchTask.class);

  /** Rows of other types that are looked at, and put back, for each one that is wanted. */
  private static final int OTHERS = 4;

  private static final long LOOK_EVERY = TimeUnit.MILLISECONDS.toNanos(1);

  private final SubscriberSettings settings;
  private final OutcomeApplier outcomes;
  private final Completer completer;
  private final Room room;
  private final Buffer buffer;
  private final DeliveryTask task;

  BatchTask(
      SubscriberSettings settings,
      OutcomeApplier outcomes,
      Completer completer,
      Shared shared,
      Buffer buffer,
      DeliveryTask task) {
    this.settings = settings;
    this.outcomes = outcomes;
    this.completer = completer;
    this.room = shared.room();
    this.buffer = buffer;
    this.task = task;
  }

  /** Handles a row, and what can go with it, on the calling thread. */
  <T> void run(HeldRow first, BatchRoute<T> route, boolean foreignThread) {
    List<HeldRow> rows = comesAlone(first) ? List.of(first) : gathered(first, route.batch());
    long now = System.nanoTime();
    List<HeldRow> taken = new ArrayList<>(rows.size());
    for (HeldRow row : rows) {
      if (task.underLease(row, now) && row.take()) {
        taken.add(row);
      }
    }
    if (taken.isEmpty()) {
      return;
    }
    Pass<T> pass;
    try {
      pass = new Pass<>(taken, route, foreignThread);
    } catch (Throwable noMemory) { // the rows must not hang
      taken.forEach(this::retry);
      throw noMemory;
    }
    pass.run();
  }

  private void retry(HeldRow row) {
    row.decide(DeliveryTask.AFTER_TROUBLE);
    completer.complete(row);
  }

  /**
   * Tells whether a row has failed before, or its last owner has gone: it may have failed a batch,
   * or ended a process, which then concerns no other row again.
   */
  private static boolean comesAlone(HeldRow row) {
    return row.history().attempts() > 0 || row.deliveries() > 1;
  }

  /** Takes further rows of the same type from the buffer. */
  private List<HeldRow> gathered(HeldRow first, Batch batch) {
    long until = System.nanoTime() + batch.linger().toNanos();
    List<HeldRow> rows = new ArrayList<>();
    rows.add(first);
    List<HeldRow> others = new ArrayList<>();
    while (rows.size() < batch.most()) {
      HeldRow row = others.size() < OTHERS * batch.most() ? buffer.poll() : null;
      if (row == null) {
        putBack(others);
        long left = until - System.nanoTime();
        if (left <= 0 || buffer.isClosed() || Thread.currentThread().isInterrupted()) {
          break;
        }
        room.mayBeFree();
        LockSupport.parkNanos(this, Math.min(left, LOOK_EVERY));
      } else if (!comesAlone(row) && goesWith(first, row)) {
        rows.add(row);
      } else {
        others.add(row);
      }
    }
    putBack(others);
    room.mayBeFree();
    if (buffer.isClosed()) {
      giveBack(rows);
    }
    return rows;
  }

  private static boolean goesWith(HeldRow first, HeldRow row) {
    String type = row.typeOrNull();
    return type != null && type.equals(first.typeOrNull());
  }

  private void putBack(List<HeldRow> others) {
    if (!others.isEmpty()) {
      giveBack(buffer.putBack(others));
      others.clear();
    }
  }

  private void giveBack(List<HeldRow> rows) {
    rows.stream().filter(HeldRow::giveBack).forEach(completer::complete);
  }

  /** What becomes of a message, once the run that decided it has ended. */
  private record Decided(HeldRow row, Settlement settlement) {}

  /** Messages on their way through their handler. Confined to the handler's thread. */
  private final class Pass<T> {
    private final BatchRoute<T> route;
    private final boolean foreignThread;
    private final List<Decided> decided = new ArrayList<>();
    private final Set<HeldRow> open;
    private HandlerRun run;

    Pass(List<HeldRow> taken, BatchRoute<T> route, boolean foreignThread) {
      this.open = new LinkedHashSet<>(taken);
      this.route = route;
      this.foreignThread = foreignThread;
      this.run = HandlerRun.of(taken, System.nanoTime());
    }

    void run() {
      try {
        List<BatchMessage<T>> messages = new ArrayList<>(open.size());
        List<HeldRow> rows = new ArrayList<>(open.size());
        for (HeldRow row : open) {
          T body = body(row);
          if (body != null) {
            messages.add(new BatchMessage<>(body, row.delivery()));
            rows.add(row);
          }
        }
        handle(rows, messages);
      } catch (Throwable unexpected) { // such as OutOfMemoryError in our own code
        endInTrouble(unexpected);
      }
    }

    /** Returns the body, or null if it is decided without the handler. */
    private @Nullable T body(HeldRow row) {
      if (row.deliveries() > settings.failing().maxDeliveries(row.typeOrNull())) {
        decided.add(new Decided(row, outcomes.tooManyDeliveries(row)));
        return null;
      }
      try {
        return route.decoder().body(row.delivery());
      } catch (UndecodableException undecodable) {
        decided.add(new Decided(row, outcomes.undecodable(row, undecodable)));
      } catch (Throwable failure) { // this attempt failed, the bytes may be good
        decided.add(new Decided(row, outcomes.codecFailed(row, failure)));
      }
      return null;
    }

    private void handle(List<HeldRow> rows, List<BatchMessage<T>> messages) {
      if (!run.isRunning()) { // it took too long to decode them
        end();
        return;
      }
      Throwable thrown = rows.isEmpty() ? null : call(rows, messages);
      boolean split = thrown != null && rows.size() > 1 && !isInterrupt(thrown);
      List<HeldRow> again = new ArrayList<>();
      List<BatchMessage<T>> messagesAgain = new ArrayList<>();
      for (int i = 0; i < rows.size(); i++) {
        HeldRow row = rows.get(i);
        if (thrown == null || row.delivery().decision() != null) {
          task.handled(row, run, null);
          decided.add(new Decided(row, outcomes.returned(row, null)));
        } else if (split) {
          again.add(row);
          messagesAgain.add(messages.get(i));
        } else {
          task.handled(row, run, thrown);
          decided.add(new Decided(row, outcomes.threw(row, thrown)));
        }
      }
      if (!end()) {
        return; // the timeout decides
      }
      if (!again.isEmpty()) {
        log.debug("a batch of {} failed and is handled in halves", rows.size(), thrown);
        int half = (again.size() + 1) / 2;
        next(again.subList(0, half), messagesAgain.subList(0, half));
        if (half < again.size()) {
          next(again.subList(half, again.size()), messagesAgain.subList(half, again.size()));
        }
      }
    }

    private void next(List<HeldRow> rows, List<BatchMessage<T>> messages) {
      long now = System.nanoTime();
      run = HandlerRun.of(rows, now);
      List<HeldRow> held = new ArrayList<>(rows.size());
      List<BatchMessage<T>> messagesHeld = new ArrayList<>(rows.size());
      for (int i = 0; i < rows.size(); i++) {
        if (rows.get(i).leaseOver(now)) { // somebody else may have it
          decided.add(new Decided(rows.get(i), Settlement.Release.INSTANCE));
        } else {
          held.add(rows.get(i));
          messagesHeld.add(messages.get(i));
        }
      }
      handle(held, messagesHeld);
    }

    private @Nullable Throwable call(List<HeldRow> rows, List<BatchMessage<T>> messages) {
      try {
        rows.forEach(task::dispatched);
        task.inContext(
            rows.get(0),
            rows.size() == 1,
            () -> {
              route.handler().handle(List.copyOf(messages));
              return null;
            });
        return null;
      } catch (Throwable failure) { // an Error is the messages' failure, not the subscriber's
        return failure;
      }
    }

    /** Ends the run and hands over what it has decided; false if the timeout came first. */
    private boolean end() {
      boolean ended = run.end();
      DeliveryTask.clearInterrupt(run, foreignThread);
      if (ended) {
        for (Decided each : decided) {
          open.remove(each.row());
          each.row().decide(each.settlement());
          completer.complete(each.row());
        }
      } else {
        run.rows().forEach(open::remove);
      }
      decided.clear();
      return ended;
    }

    private void endInTrouble(Throwable trouble) {
      if (!run.end() && run.expired()) {
        run.rows().forEach(open::remove);
      }
      DeliveryTask.clearInterrupt(run, foreignThread);
      open.forEach(BatchTask.this::retry); // first, since logging may fail as well
      log.error(
          "[{}] {} message(s) of a batch could not be handled; they are retried",
          settings.name(),
          open.size(),
          RedactedThrowable.of(trouble));
    }
  }

  /** A thread that is to end is not to begin again. */
  private static boolean isInterrupt(Throwable thrown) {
    return Causes.of(thrown).stream().anyMatch(InterruptedException.class::isInstance);
  }
}
