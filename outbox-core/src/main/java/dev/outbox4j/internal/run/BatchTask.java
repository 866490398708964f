package dev.outbox4j.internal.run;

import dev.outbox4j.Batch;
import dev.outbox4j.BatchMessage;
import dev.outbox4j.OutboxException;
import dev.outbox4j.Outcome;
import dev.outbox4j.internal.Causes;
import dev.outbox4j.internal.RedactedThrowable;
import dev.outbox4j.internal.reactive.PublisherResults;
import dev.outbox4j.internal.settings.HandlerTable.BatchRoute;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.settle.Completer;
import dev.outbox4j.internal.state.Buffer;
import dev.outbox4j.internal.state.HandlerRun;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.PausedQueues;
import dev.outbox4j.internal.state.Prefetch;
import dev.outbox4j.internal.state.Room;
import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.UndecodableException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;
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

  /**
   * What becomes of a message that is left over when the search for the one at fault breaks off.
   */
  static final Settlement UNTRIED =
      new Settlement.Retry(
          Duration.ZERO, "its batch failed, and was not handled again", false, false, null);

  private final SubscriberSettings settings;
  private final OutcomeApplier outcomes;
  private final Completer completer;
  private final Room room;
  private final Prefetch prefetch;
  private final Buffer buffer;
  private final DeliveryTask task;
  private final PausedQueues pauses;
  private final Gathering gathering;
  private final Runnable kick;

  // guarded by this
  private final Map<HeldRow, Pass<?>> handedOn = new HashMap<>();
  private boolean closed;

  BatchTask(
      SubscriberSettings settings,
      OutcomeApplier outcomes,
      Completer completer,
      Shared shared,
      Prefetch prefetch,
      Buffer buffer,
      DeliveryTask task,
      Runnable kick) {
    this.settings = settings;
    this.outcomes = outcomes;
    this.completer = completer;
    this.room = shared.room();
    this.pauses = shared.pauses();
    this.prefetch = prefetch;
    this.buffer = buffer;
    this.task = task;
    this.kick = kick;
    this.gathering =
        new Gathering(
            shared.threads(),
            room,
            pauses,
            first -> {
              putBack(List.of(first)); // if nobody takes it any more, a stop gives it back
              kick.run();
            },
            this::putOff);
  }

  Gathering gathering() {
    return gathering;
  }

  /**
   * Handles a row, and what can go with it, on the calling thread; or lets it wait for more.
   *
   * @param whenDone run once the handler's work has ended, if that is not yet so on return
   * @return true if the handler's work has ended, false if its stage is pending
   */
  <T> boolean run(HeldRow first, BatchRoute<T> route, Runnable whenDone, boolean foreignThread) {
    Pass<?> begun = handedOn(first);
    if (begun != null) {
      return begun.goOn(whenDone, foreignThread);
    }
    prefetch.batchSeen();
    List<HeldRow> batch = gathering.handedOn(first);
    if (batch == null) {
      batch = gathered(first, route.batch());
    }
    long now = System.nanoTime();
    List<HeldRow> rows = new ArrayList<>(batch.size());
    for (HeldRow row : batch) {
      // somebody else may have it, or its queue was paused while it waited for more
      if (row.leaseOver(now) || pauses.putsOff(row)) {
        giveBack(row);
      } else {
        rows.add(row);
      }
    }
    if (rows.isEmpty()) {
      return true;
    }
    Pass<T> pass;
    try {
      pass = new Pass<>(rows, route);
    } catch (Throwable noMemory) { // the rows must not hang
      rows.forEach(this::retry);
      throw noMemory;
    }
    return pass.goOn(whenDone, foreignThread);
  }

  private synchronized @Nullable Pass<?> handedOn(HeldRow first) {
    return handedOn.isEmpty() ? null : handedOn.remove(first);
  }

  /** Lets a worker go on with a batch whose stage has failed on a thread of somebody else's. */
  private void handOn(HeldRow first, Pass<?> pass) {
    boolean ended;
    synchronized (this) {
      ended = closed;
      if (!ended) {
        handedOn.put(first, pass);
      }
    }
    if (ended) {
      pass.letOthersTry();
      return;
    }
    putBack(List.of(first)); // if nobody takes it any more, a stop lets go of it
    kick.run();
  }

  /** Lets go of what waits for more of its batch, or for its halves to be handled. */
  void close() {
    List<Pass<?>> left;
    synchronized (this) {
      closed = true;
      left = List.copyOf(handedOn.values());
      handedOn.clear();
    }
    gathering.close().forEach(this::giveBack);
    left.forEach(Pass::letOthersTry);
  }

  /** Returns rows that are taken; none if they wait. */
  private List<HeldRow> gathered(HeldRow first, Batch batch) {
    if (!take(first)) {
      return List.of();
    }
    if (comesAlone(first)) {
      return List.of(first);
    }
    List<HeldRow> rows = fromBuffer(first, batch.most());
    String type = first.typeOrNull();
    if (rows.size() == batch.most() || batch.linger().isZero() || type == null) {
      return rows;
    }
    Gathering.Added added = gathering.add(type, batch, rows);
    added.givenBack().forEach(this::giveBack);
    return added.complete();
  }

  private boolean take(HeldRow row) {
    return task.mayBegin(row, System.nanoTime()) && row.take();
  }

  /** Gives a row back that is taken and whose handler has not begun. */
  void giveBack(HeldRow row) {
    row.decide(Settlement.Release.INSTANCE);
    completer.complete(row);
  }

  private void putOff(HeldRow row) {
    try {
      pauses.putOff(row); // first, so that nothing of its key goes before it
    } finally {
      giveBack(row);
    }
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
  private List<HeldRow> fromBuffer(HeldRow first, int most) {
    List<HeldRow> rows = new ArrayList<>();
    rows.add(first);
    List<HeldRow> others = new ArrayList<>();
    while (rows.size() < most && others.size() < OTHERS * most) {
      HeldRow row = buffer.poll();
      if (row == null) {
        break;
      }
      if (row.state() == HeldRow.State.WAITING && !comesAlone(row) && goesWith(first, row)) {
        if (take(row)) {
          rows.add(row);
        }
      } else {
        others.add(row); // also a batch that is handed on
      }
    }
    if (!others.isEmpty()) {
      putBack(others);
    }
    room.mayBeFree();
    return rows;
  }

  /** Once the buffer is closed, gives back what waits in it: others' rows may be among them. */
  private void putBack(List<HeldRow> rows) {
    buffer.putBack(rows).stream().filter(HeldRow::giveBack).forEach(completer::complete);
  }

  private static boolean goesWith(HeldRow first, HeldRow row) {
    String type = row.typeOrNull();
    return type != null && type.equals(first.typeOrNull());
  }

  /** What becomes of a message, once the run that decided it has ended. */
  private record Decided(HeldRow row, Settlement settlement) {}

  /**
   * Messages on their way through their handler. Confined to one thread at a time: the handler's,
   * then the one that completes its stage, and so on.
   */
  private final class Pass<T> {
    private final BatchRoute<T> route;
    private final List<Decided> decided = new ArrayList<>();
    private final Set<HeldRow> open;

    /** What is to be handled next, the first half first. */
    private final Deque<List<HeldRow>> parts = new ArrayDeque<>();

    /**
     * Calls that may fail, without one that succeeds, until it is not a message that is at fault.
     */
    private final int mostFailures;

    private int failures;
    private boolean succeeded;
    private boolean begun;
    private boolean dispatched;
    private HandlerRun run;

    Pass(List<HeldRow> taken, BatchRoute<T> route) {
      this.open = new LinkedHashSet<>(taken);
      this.route = route;
      this.mostFailures = 34 - Integer.numberOfLeadingZeros(taken.size());
      this.run = HandlerRun.of(taken, List.of(), System.nanoTime());
      this.parts.add(run.rows());
    }

    /** Handles what is left on the calling thread; false if a stage is pending. */
    boolean goOn(Runnable whenDone, boolean foreignThread) {
      try {
        for (List<HeldRow> part = parts.poll(); part != null; part = parts.poll()) {
          List<HeldRow> rows = begun ? begin(part) : part;
          begun = true;
          HandlerRun ofPart = run;
          boolean ended;
          try {
            ended = handle(rows, whenDone);
          } finally {
            DeliveryTask.clearInterrupt(ofPart, foreignThread);
          }
          if (!ended) {
            return false; // nothing here is this thread's any more
          }
          if (ofPart.expired()) {
            return true; // and the timeout has what is left
          }
        }
      } catch (Throwable unexpected) { // such as OutOfMemoryError in our own code
        endInTrouble(unexpected);
        DeliveryTask.clearInterrupt(run, foreignThread);
      }
      return true;
    }

    /** Returns the body, or null if it is decided without the handler. */
    private @Nullable T body(HeldRow row) {
      Settlement without = outcomes.withoutHandler(row, System.nanoTime());
      if (without != null) {
        decided.add(new Decided(row, without));
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

    /**
     * Calls the handler; false if its stage is pending. Bodies are decoded for each call: the one
     * before may have changed them.
     */
    private boolean handle(List<HeldRow> decodable, Runnable whenDone) {
      List<BatchMessage<T>> messages = new ArrayList<>(decodable.size());
      List<HeldRow> rows = new ArrayList<>(decodable.size());
      for (HeldRow row : decodable) {
        T body = body(row);
        if (body != null) {
          messages.add(new BatchMessage<>(body, row.delivery()));
          rows.add(row);
        }
      }
      if (!run.isRunning() || rows.isEmpty()) { // it took too long to decode them, or none is left
        end();
        return true;
      }
      if (!dispatched) {
        dispatched = true;
        rows.forEach(task::dispatched);
      }
      Object result;
      try {
        result =
            task.inContext(
                rows.get(0), rows.size() == 1, () -> route.invocation().run(List.copyOf(messages)));
      } catch (Throwable failure) { // an Error is the messages' failure, not the subscriber's
        boolean interrupted = Thread.currentThread().isInterrupted();
        settle(rows, failure, !isInterrupt(failure) && !interrupted);
        return true;
      }
      if (result instanceof CompletionStage<?> stage) {
        return settleLater(rows, stage, whenDone);
      }
      settle(rows, null, true);
      return true;
    }

    private boolean settleLater(List<HeldRow> rows, CompletionStage<?> stage, Runnable whenDone) {
      PendingStage pending = new PendingStage(whenDone);
      run.goesOnWithoutThread(pending::ended);
      run.onCancel(() -> task.cancel(stage));
      if (!run.isRunning()) {
        run.awaitInterrupt(); // it came before the stage, which nobody may ever complete
        pending.ended();
        task.cancel(stage);
      }
      Stages.whenComplete(
          stage,
          (value, thrown) -> completed(rows, value, thrown, pending),
          refused -> {
            endInTrouble(refused);
            pending.ended();
          });
      return pending.leaveThread();
    }

    private void completed(
        List<HeldRow> rows,
        @Nullable Object value,
        @Nullable Throwable thrown,
        PendingStage pending) {
      try {
        HandlerThread.run(
            settings,
            () -> {
              settle(rows, thrown == null ? refused(value) : thrown, true);
              return true;
            });
      } catch (Throwable unexpected) { // swallowed by the stage: the rows must not hang
        endInTrouble(unexpected);
      } finally {
        try {
          handOnParts(pending);
        } finally {
          pending.ended();
        }
      }
    }

    /** No handler is to run on a thread of somebody else's. */
    private void handOnParts(PendingStage pending) {
      List<HeldRow> next = parts.peek();
      if (next == null || pending.endsOnThread()) {
        return;
      }
      try {
        handOn(next.get(0), this);
      } catch (Throwable unexpected) { // swallowed by the stage: the rows must not hang
        endInTrouble(unexpected);
      }
    }

    /** What may stand for work that nobody waits for, or a decision, must not pass for an ack. */
    private @Nullable Throwable refused(@Nullable Object value) {
      if (value instanceof CompletionStage<?> || PublisherResults.isPublisher(value)) {
        return new OutboxException(
            "The batch handler's stage completed with another stage or a publisher, for which"
                + " nobody waits; use thenCompose in place of thenApply");
      }
      if (value instanceof Outcome) {
        return new OutboxException(
            "The batch handler's stage completed with an Outcome, and does not say of which"
                + " message; decide each by message.delivery().decide(outcome)");
      }
      return null;
    }

    /** Takes what a call came to. */
    private void settle(List<HeldRow> rows, @Nullable Throwable thrown, boolean again) {
      if (thrown != null) {
        failures++;
      } else {
        succeeded = true;
      }
      // what fails whatever it gets is broken
      boolean mayBeOneMessage = succeeded || failures < mostFailures;
      boolean split = thrown != null && rows.size() > 1 && again && mayBeOneMessage;
      List<HeldRow> said = new ArrayList<>(rows.size());
      List<HeldRow> left = new ArrayList<>();
      for (HeldRow row : rows) {
        (thrown == null || row.delivery().decision() != null ? said : left).add(row);
      }
      for (HeldRow row : said) {
        task.handled(row, run, left.isEmpty() ? thrown : null); // else it is told of those left
        decided.add(new Decided(row, outcomes.returned(row, null)));
      }
      if (thrown != null && !split) {
        for (HeldRow row : left) {
          task.handled(row, run, thrown);
          decided.add(
              new Decided(
                  row,
                  rows.size() > 1
                      ? outcomes.threwOnSeveral(row, thrown)
                      : outcomes.threw(row, thrown)));
        }
      }
      if (!end() || thrown == null) {
        return;
      }
      if (left.isEmpty()) {
        task.threwAfterAll(said, thrown);
      } else if (split) {
        log.debug("a batch of {} failed and is handled in halves", rows.size(), thrown);
        handleAgain(left);
      }
    }

    private void handleAgain(List<HeldRow> rows) {
      int half = (rows.size() + 1) / 2;
      if (half < rows.size()) {
        parts.addFirst(rows.subList(half, rows.size()));
      }
      parts.addFirst(rows.subList(0, half));
    }

    /** Begins the run of a part; returns those of its rows that may be handled. */
    private List<HeldRow> begin(List<HeldRow> rows) {
      long now = System.nanoTime();
      run = HandlerRun.of(rows, parts.stream().flatMap(List::stream).toList(), now);
      List<HeldRow> held = new ArrayList<>(rows.size());
      for (HeldRow row : rows) {
        // another may have it, or nothing is to begin any more
        if (row.leaseOver(now) || buffer.isClosed() || pauses.has(row.queue())) {
          decided.add(new Decided(row, UNTRIED));
        } else {
          held.add(row);
        }
      }
      return held;
    }

    /**
     * Ends the run and hands over what it has decided; false if the timeout came first, which then
     * decides of all that is left.
     */
    private boolean end() {
      boolean ended = run.end();
      if (ended) {
        for (Decided each : decided) {
          open.remove(each.row());
          each.row().decide(each.settlement());
          completer.complete(each.row());
        }
        run.forget();
      } else {
        letGo();
      }
      decided.clear();
      return ended;
    }

    private void letGo() {
      open.clear();
      parts.clear();
    }

    /** Nothing is to begin any more. */
    void letOthersTry() {
      for (HeldRow row : open) {
        row.decide(UNTRIED);
        completer.complete(row);
      }
      letGo();
    }

    private void endInTrouble(Throwable trouble) {
      if (!run.end() && run.expired()) {
        letGo();
      }
      int left = open.size();
      try {
        open.forEach(BatchTask.this::retry); // first, since logging may fail as well
      } finally {
        letGo(); // nobody is to go on with them
      }
      log.error(
          "[{}] {} message(s) of a batch could not be handled; they are retried",
          settings.name(),
          left,
          RedactedThrowable.of(trouble));
    }
  }

  /** A thread that is to end is not to begin again. */
  private static boolean isInterrupt(Throwable thrown) {
    return Causes.of(thrown).stream().anyMatch(InterruptedException.class::isInstance);
  }
}
