package dev.outbox4j.internal.run;

import dev.outbox4j.Batch;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.Loop;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.PausedQueues;
import dev.outbox4j.internal.state.Room;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Batches that wait for more messages. They occupy no worker meanwhile: a thread of its own ends
 * the waits, and hands a batch on by its first row. It also gives back what waits of a queue that
 * is paused. Thread-safe.
 */
final class Gathering {
  private static final Logger log = LoggerFactory.getLogger(Gathering.class);

  private final Room room;
  private final PausedQueues pauses;
  private final Consumer<HeldRow> handOn;
  private final Consumer<HeldRow> putOff;
  private final Loop loop;

  // guarded by this
  private final Map<String, Waiting> waiting = new HashMap<>();
  private final Map<HeldRow, List<HeldRow>> ready = new HashMap<>();
  private final Deque<HeldRow> paused = new ArrayDeque<>();
  private boolean closed;

  private record Waiting(List<HeldRow> rows, long until) {}

  Gathering(
      EngineThreads threads,
      Room room,
      PausedQueues pauses,
      Consumer<HeldRow> handOn,
      Consumer<HeldRow> putOff) {
    this.room = room;
    this.pauses = pauses;
    this.handOn = handOn;
    this.putOff = putOff;
    this.loop =
        new Loop(
            threads,
            "batches",
            woken -> turn(),
            failure -> log.debug("a batch could not be handed on yet", failure));
    pauses.signal(loop::signal);
  }

  void start() {
    loop.start();
  }

  /**
   * Adds rows to those that wait of their type.
   *
   * @param type their type
   * @param batch how many, and for how long they wait
   * @param taken the rows, which are taken; no more than a batch has room for
   * @return the batch if it is complete, or cannot become so; none while it waits; all rows that
   *     are to be given back, once this is closed
   */
  Added add(String type, Batch batch, List<HeldRow> taken) {
    synchronized (this) {
      if (closed) {
        return new Added(List.of(), taken);
      }
      Waiting before = waiting.get(type);
      List<HeldRow> rows = before == null ? new ArrayList<>() : before.rows();
      int fitting = Math.min(taken.size(), batch.most() - rows.size());
      rows.addAll(taken.subList(0, fitting));
      List<HeldRow> rest = taken.subList(fitting, taken.size());
      long until = before == null ? System.nanoTime() + batch.linger().toNanos() : before.until();
      if (rows.size() < batch.most() && !room.isExhausted()) {
        waiting.put(type, new Waiting(rows, until));
        if (before == null || taken.stream().anyMatch(this::isPaused)) { // that came meanwhile
          loop.signal();
        }
        return Added.NOTHING;
      }
      waiting.remove(type);
      if (!rest.isEmpty()) {
        waiting.put(
            type, new Waiting(new ArrayList<>(rest), System.nanoTime() + batch.linger().toNanos()));
        loop.signal();
      }
      return new Added(rows, List.of());
    }
  }

  /** What comes of rows that were added. */
  record Added(List<HeldRow> complete, List<HeldRow> givenBack) {
    static final Added NOTHING = new Added(List.of(), List.of());
  }

  /** Returns the batch that was handed on by a row, or null if none was. */
  synchronized @Nullable List<HeldRow> handedOn(HeldRow first) {
    return ready.isEmpty() ? null : ready.remove(first);
  }

  /** Hands on what has waited for long enough; returns how long until the next has. */
  private long turn() {
    List<HeldRow> first = new ArrayList<>();
    long wait = TimeUnit.HOURS.toNanos(1);
    synchronized (this) {
      if (loop.stopping()) {
        return Loop.END;
      }
      long now = System.nanoTime();
      for (Iterator<Waiting> each = waiting.values().iterator(); each.hasNext(); ) {
        Waiting batch = each.next();
        takePaused(batch.rows());
        if (batch.rows().isEmpty()) {
          each.remove();
        } else if (now - batch.until() >= 0) {
          each.remove();
          ready.put(batch.rows().get(0), batch.rows());
          first.add(batch.rows().get(0));
        } else {
          wait = Math.min(wait, batch.until() - now);
        }
      }
    }
    first.forEach(handOn);
    for (HeldRow row = nextPaused(); row != null; row = nextPaused()) {
      putOff.accept(row);
    }
    return wait;
  }

  private boolean isPaused(HeldRow row) {
    return pauses.has(row.queue());
  }

  private void takePaused(List<HeldRow> rows) {
    List<HeldRow> found = rows.stream().filter(this::isPaused).toList();
    if (!found.isEmpty()) {
      rows.removeAll(new HashSet<>(found));
      paused.addAll(found);
    }
  }

  /** One by one: what is left when one of them fails has its turn, or is given back by a stop. */
  private synchronized @Nullable HeldRow nextPaused() {
    return paused.poll();
  }

  /** Ends all waits; returns the rows that are to be given back. */
  List<HeldRow> close() {
    loop.stop();
    List<HeldRow> rows = new ArrayList<>();
    synchronized (this) {
      closed = true;
      waiting.values().forEach(batch -> rows.addAll(batch.rows()));
      ready.values().forEach(rows::addAll);
      rows.addAll(paused);
      waiting.clear();
      ready.clear();
      paused.clear();
    }
    return rows;
  }
}
