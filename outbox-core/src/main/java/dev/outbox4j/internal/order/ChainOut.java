package dev.outbox4j.internal.order;

import dev.outbox4j.internal.run.Rows;
import dev.outbox4j.internal.settle.Completer;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Shared;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Hands on to the workers what chains let through, and back what they drop. Thread-safe. */
final class ChainOut implements KeyChains.Out {
  private static final Logger log = LoggerFactory.getLogger(ChainOut.class);

  /** Rows due within it are remembered; the store finds those that are due later. */
  static final Duration SOON = Duration.ofSeconds(2);

  private final String queue;
  private final Shared shared;
  private final Rows rows;
  private final Completer completer;
  private final Agenda agenda;
  private final LongSupplier clock;
  private final Runnable signal;

  /** What broke while rows were taken or handed on: nothing that is in memory can be relied on. */
  private final AtomicReference<@Nullable Throwable> broken = new AtomicReference<>();

  ChainOut(
      String queue,
      Shared shared,
      Rows rows,
      Completer completer,
      Agenda agenda,
      LongSupplier clock,
      Runnable signal) {
    this.queue = queue;
    this.shared = shared;
    this.rows = rows;
    this.completer = completer;
    this.agenda = agenda;
    this.clock = clock;
    this.signal = signal;
  }

  @Override
  public void ready(List<HeldRow> ready) {
    List<HeldRow> untaken = rows.buffer().add(ready);
    rows.pool().kick(ready.size() - untaken.size());
    withdrawn(untaken);
  }

  @Override
  public void withdrawn(List<HeldRow> withdrawn) {
    List<HeldRow> settled = new ArrayList<>(withdrawn.size());
    for (HeldRow row : withdrawn) {
      if (HeldOfQueue.bucketOf(row).counted()) {
        if (row.giveBack()) {
          completer.complete(row);
        }
      } else if (row.withdraw()) {
        settled.add(row);
      }
    }
    if (!settled.isEmpty()) {
      shared.registry().settle(settled);
      shared.room().mayBeFree();
    }
  }

  @Override
  public void again(HeldRow row, long at) {
    boolean soon = at - clock.getAsLong() <= SOON.toNanos();
    if (soon || row.message().orderingKey() != null) { // else it is found when it falls due
      agenda.add(row.id(), at);
      signal.run();
    }
  }

  @Override
  public void hungry() {
    signal.run();
  }

  @Override
  public void onHold(HeldRow row) {
    shared
        .warnings()
        .warn(
            log,
            "hold " + queue,
            "[{}] {}: its ordering key waits until the dead letter is resolved",
            shared.subscriber(),
            row);
    signal.run(); // from now on it is asked
  }

  @Override
  public void broken(Throwable failure) {
    broken.compareAndSet(null, failure);
    signal.run();
  }

  /** Returns what broke since it was last asked for, or null. */
  @Nullable Throwable takeBroken() {
    return broken.getAndSet(null);
  }
}
