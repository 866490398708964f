package dev.outbox4j.poller.internal;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.poller.Cursor;
import dev.outbox4j.poller.HeldBack;
import dev.outbox4j.poller.Poller;
import dev.outbox4j.poller.PollerFailure;
import dev.outbox4j.poller.PollerHealth.State;
import dev.outbox4j.poller.Position;
import dev.outbox4j.poller.Position.Side;
import dev.outbox4j.poller.TickResult;
import dev.outbox4j.poller.TickResult.Outcome;
import dev.outbox4j.poller.internal.FollowedSource.Known;
import dev.outbox4j.poller.internal.PollerStore.Ending;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Looks at the source of one poller, and handles what is found, batch after batch under one lease.
 * Confined to one thread.
 */
final class PollerTick {
  private static final long FIRST_RECHECK = Duration.ofMillis(10).toNanos();
  private static final long LONGEST_RECHECK = Duration.ofMillis(250).toNanos();
  private static final long LONGEST_WAIT_IN_A_TICK = Duration.ofSeconds(1).toNanos();
  private static final Duration WORTH_A_WARNING = Duration.ofSeconds(60);

  /** So often a free row can be locked in a row by chance. */
  private static final int PASSED_BY = 10;

  private final Poller poller;
  private final String application;
  private final PollerStore store;
  private final FollowedSource source;
  private final Batches batches;
  private final Renewals renewals;
  private final Observer observer;
  private final PollerLog log;
  private final NodeState state;
  private final Pauses pauses;
  private int passedBy;

  /** Since when rows that can be seen wait for transactions, by the source's clock. */
  private @Nullable Instant waitingSince;

  /** The end that was found last, and since when it is known, by the source's clock. */
  private @Nullable Position knownEnd;

  private @Nullable Instant endKnownAt;

  PollerTick(
      Poller poller,
      String application,
      PollerStore store,
      FollowedSource source,
      Batches batches,
      Renewals renewals,
      Observer observer,
      PollerLog log,
      NodeState state,
      Pauses pauses) {
    this.poller = poller;
    this.application = application;
    this.store = store;
    this.source = source;
    this.batches = batches;
    this.renewals = renewals;
    this.observer = observer;
    this.log = log;
    this.state = state;
    this.pauses = pauses;
  }

  /** Looks once; a failure is told in the result. */
  TickResult tick() {
    long begun = System.nanoTime();
    log.tickStart();
    TickResult result = look();
    Duration took = since(begun);
    state.ticked(result);
    log.tickComplete(result, took);
    observer.tell(events -> events.ticked(application, poller.name(), took, result));
    return result;
  }

  /** What a tick has done so far. */
  private static final class Tally {
    long rows;
    int batches;
    int quarantined;

    TickResult result(Outcome outcome) {
      return new TickResult(
          outcome, rows, batches, quarantined, List.of(), Optional.empty(), Optional.empty());
    }

    TickResult failed(PollerFailure step, String reason) {
      return new TickResult(
          Outcome.FAILED,
          rows,
          batches,
          quarantined,
          List.of(),
          Optional.of(step),
          Optional.of(reason));
    }
  }

  private TickResult look() {
    Tally tally = new Tally();
    long sent = System.nanoTime();
    StateRow row;
    try {
      Optional<StateRow> found = store.acquire();
      if (found.isEmpty()) {
        register();
        sent = System.nanoTime();
        found = store.acquire();
      }
      row = found.orElseThrow(() -> new OutboxException("the poller was removed meanwhile"));
    } catch (OutboxException e) {
      return failed(tally, PollerFailure.LEASE, e, 0, Position.beginning(), 0);
    }
    if (!row.acquired()) {
      return notAcquired(tally, row);
    }
    passedBy = 0;
    state.acquired(row);
    String before = row.ownerBefore();
    if (before != null && !store.isOwn(before)) {
      batches.endSessions(row.token());
    }
    Lease lease = new Lease(store, renewals, log, row.token(), poller.lease(), sent);
    state.holds(lease);
    lease.begin();
    try {
      return new Turn(lease, row, tally).take();
    } finally {
      lease.end();
      state.holds(null);
    }
  }

  /** Puts the poller on record. */
  void register() {
    store.register(poller.start().orElse(Position.beginning()), poller.startsPaused());
  }

  private TickResult notAcquired(Tally tally, StateRow row) {
    if (row.finished()) {
      return skipped(tally, row, State.FINISHED, Outcome.FINISHED, "it has come to its end");
    }
    if (row.paused()) {
      return skipped(tally, row, State.PAUSED, Outcome.PAUSED, "it is paused");
    }
    if (row.waiting()) {
      return skipped(
          tally, row, State.STANDBY, Outcome.WAITING, "the next attempt is still to come");
    }
    if (!row.leased()) {
      passedBy++;
      if (passedBy >= PASSED_BY) {
        batches.endSessions(row.token() + 1); // one that stands still may have it
        return failed(
            tally,
            PollerFailure.LEASE,
            new OutboxException(
                "the lease is free, and the poller's row is locked by another session; look in pg_locks"
                    + " who has it, and end that transaction"),
            row.token(),
            Position.beginning(),
            0);
      }
    } else {
      passedBy = 0;
    }
    return skipped(tally, row, State.STANDBY, Outcome.STANDBY, "node " + row.owner() + " has it");
  }

  private TickResult skipped(Tally tally, StateRow row, State now, Outcome outcome, String why) {
    state.others(now, outcome, row);
    log.acquireSkipped(row, why);
    return tally.result(outcome);
  }

  private TickResult failed(
      Tally tally,
      PollerFailure step,
      Throwable failure,
      long token,
      Position position,
      int attempt) {
    String words = Failures.words(failure);
    log.failed(step, token, position, 0, attempt, Duration.ZERO, words);
    state.failed(step, words);
    observer.tell(events -> events.failed(application, poller.name(), step, failure));
    return tally.failed(step, words);
  }

  private static Duration since(long begun) {
    return Duration.ofNanos(System.nanoTime() - begun);
  }

  /** One turn with the lease. */
  private final class Turn {
    private final Lease lease;
    private final StateRow row;
    private final Tally tally;
    private Position position = Position.beginning();
    private @Nullable Position end;
    private int attempt;

    /** Of rows that are held back; once is enough. */
    private boolean hasWarned;

    /** What was found last, and when. */
    private Horizon.@Nullable Found found;

    private long foundAt;

    /**
     * By when everything is handled that was committed, once what was found is; null: not known.
     */
    private @Nullable Instant completeAt;

    Turn(Lease lease, StateRow row, Tally tally) {
      this.lease = lease;
      this.row = row;
      this.tally = tally;
      this.attempt = 1 + row.attempts() + (row.ownerBefore() == null ? 0 : 1);
    }

    TickResult take() {
      try {
        position = position();
        Known known = describe();
        if (!begin(known)) {
          return finish();
        }
        requireType(known);
        if (row.redrives()) {
          int handled = batches.redrive(lease, position);
          tally.rows += handled;
        }
        return follow();
      } catch (StepException e) {
        return failed(e);
      } catch (RuntimeException | Error e) { // none is known, but the thread is to live
        return failed(new StepException(PollerFailure.FETCH, e));
      }
    }

    private Position position() {
      try {
        return row.stored().position();
      } catch (IllegalArgumentException e) {
        throw new StepException(
            PollerFailure.CHECKPOINT,
            new OutboxException(
                "the position on record is none (%s); set another by PollerControl.set"
                    .formatted(e.getMessage()),
                e));
      }
    }

    private Known describe() {
      boolean anew = !source.isKnown();
      try {
        Known known = source.known();
        if (anew) {
          state.described(known.description().warnings());
          known.description().warnings().forEach(log::warned);
        }
        return known;
      } catch (OutboxException e) {
        throw new StepException(PollerFailure.SOURCE, e);
      }
    }

    /** Returns false if there is nothing to do, ever. */
    private boolean begin(Known known) {
      Map<String, String> here = Fingerprint.of(poller, known.description());
      boolean adopts = row.fingerprint().equals("{}");
      if (row.begun() && !adopts) {
        requireSame(here);
        end = endOnRecord();
        if (end != null || !poller.endsNow()) {
          return true;
        }
      }
      Horizon.Found first = lookAt(known, Position.beginning());
      CursorType type = known.description().cursor().type();
      String greatest = first.greatest();
      if (!row.begun()) {
        position = start(type, greatest);
      }
      end = endFrom(type, greatest);
      noteEnd(first.at());
      if (end != null) {
        requireTypeOf("end", known, end);
      }
      requireType(known);
      note(here);
      state.at(position);
      return !(poller.endsNow() && end == null);
    }

    private void note(Map<String, String> fingerprint) {
      try {
        if (!store.begin(lease.token(), Json.object(fingerprint), position, end)) {
          throw new StepException(
              PollerFailure.LEASE,
              new OutboxException("the lease was lost: " + store.whyLost(lease.token())));
        }
      } catch (OutboxStoreException e) {
        throw new StepException(PollerFailure.LEASE, e);
      }
    }

    private Position start(CursorType type, @Nullable String greatest) {
      Optional<Position> start = poller.start();
      if (start.isPresent()) {
        return start.get();
      }
      return greatest == null
          ? Position.beginning()
          : Position.of(Side.AFTER, type.tag(), greatest, List.of());
    }

    private @Nullable Position endFrom(CursorType type, @Nullable String greatest) {
      if (!poller.endsNow()) {
        return poller.end().orElse(null);
      }
      Position onRecord = endOnRecord();
      if (onRecord != null) {
        return onRecord;
      }
      return greatest == null ? null : Position.of(Side.AFTER, type.tag(), greatest, List.of());
    }

    private @Nullable Position endOnRecord() {
      if (poller.end().isPresent()) {
        return poller.end().get();
      }
      return !poller.endsNow() || row.endType().isEmpty()
          ? null
          : Position.of(Side.AFTER, row.endType(), row.endCursor(), List.of());
    }

    private void requireSame(Map<String, String> here) {
      List<String> differences = Fingerprint.differences(fingerprintOnRecord(), here);
      if (!differences.isEmpty()) {
        throw new StepException(
            PollerFailure.SOURCE,
            new OutboxException(
                "the definition is another than the one on record: %s; correct it, or adopt it by"
                        .formatted(String.join("; ", differences))
                    + " PollerControl.adopt, which keeps the position, or begin anew by"
                    + " PollerControl.reset"));
      }
    }

    private Map<String, String> fingerprintOnRecord() {
      return new HashMap<>(row.fingerprintParts());
    }

    private void requireType(Known known) {
      requireTypeOf("position", known, position);
    }

    private TickResult follow() {
      long waitUntil = waitUntil();
      long recheck = FIRST_RECHECK;
      while (true) {
        if (pauses.isStopping()) {
          return handBack(0);
        }
        Horizon.Found now = lookAt(describe(), position);
        List<SourceRow> rows = fetch(now);
        boolean isFull = rows.size() >= poller.batchSize();
        if (!rows.isEmpty()) {
          waitingSince = null;
          tellHeldBack(now);
        } else {
          if (isFinished(now)) {
            return finish();
          }
          now = waiting(now);
          long wait = now.held() ? recheck : Duration.ofMillis(now.moreSoon()).toNanos();
          if (wait == 0 || tally.rows > 0 || System.nanoTime() + wait - waitUntil > 0) {
            return release(now.held() ? Outcome.HELD_BACK : Outcome.EMPTY);
          }
          pauses.pause(wait);
          recheck = Math.min(LONGEST_RECHECK, 2 * recheck);
          continue;
        }
        boolean isOver = !isFull && end == null;
        if (handle(rows, isOver)) {
          return tally.result(Outcome.PROCESSED);
        }
        if (isOver) {
          return release(Outcome.PROCESSED);
        }
      }
    }

    private Horizon.Found lookAt(Known known, Position from) {
      try {
        Horizon.Found now = known.horizon().look(from);
        found = now;
        foundAt = System.nanoTime();
        Bound bound = now.bound();
        completeAt =
            bound == null || bound.completeAt().equals(Instant.EPOCH) ? null : bound.completeAt();
        noteEnd(now.at());
        return now;
      } catch (NormalizeException e) {
        throw new StepException(PollerFailure.NORMALIZE, e);
      } catch (OutboxException e) {
        throw new StepException(PollerFailure.FETCH, e);
      }
    }

    /** What is complete up to the end is known by marks that are set from here on. */
    private void noteEnd(Instant at) {
      Position last = end;
      if (last != null && !last.equals(knownEnd)) {
        knownEnd = last;
        endKnownAt = at;
      }
    }

    /** Nothing was found. What is open holds nothing back if nothing more can be seen. */
    private Horizon.Found waiting(Horizon.Found now) {
      Horizon.Found result = now;
      if (now.held() && isAnyBehind(now)) {
        Instant since = waitingSince == null ? now.at() : waitingSince;
        waitingSince = since;
        result = now.waitingSince(since);
      } else {
        waitingSince = null;
        if (now.held()) {
          result = now.free();
          completeAt = now.seenAt();
        } else if (now.greatest() == null) {
          completeAt = now.seenAt();
        }
      }
      found = result;
      tellHeldBack(result);
      return result;
    }

    private boolean isAnyBehind(Horizon.Found now) {
      try {
        return source.isAnyBehind(position, now, end);
      } catch (OutboxException e) {
        throw new StepException(PollerFailure.FETCH, e);
      }
    }

    private void tellHeldBack(Horizon.Found now) {
      state.heldBack(now.heldBack());
      now.heldBack()
          .filter(held -> !hasWarned && held.delay().compareTo(WORTH_A_WARNING) >= 0)
          .ifPresent(
              held -> {
                hasWarned = true;
                log.heldBack(lease.token(), position, held.toString());
              });
    }

    private List<SourceRow> fetch(Horizon.Found now) {
      Bound bound = now.bound();
      if (bound == null) {
        return List.of();
      }
      long begun = System.nanoTime();
      try {
        List<SourceRow> rows = source.fetch(position, effective(bound), end);
        observer.tell(
            events -> events.fetched(application, poller.name(), since(begun), rows.size(), null));
        if (rows.isEmpty()) {
          log.fetchEmpty(lease.token(), position, since(begun));
        }
        return rows;
      } catch (NormalizeException e) {
        observer.tell(events -> events.fetched(application, poller.name(), since(begun), 0, e));
        throw new StepException(PollerFailure.NORMALIZE, e);
      } catch (OutboxException e) {
        observer.tell(events -> events.fetched(application, poller.name(), since(begun), 0, e));
        throw new StepException(PollerFailure.FETCH, e);
      }
    }

    /**
     * A poller that ends with what it saw first ends with all rows of the greatest cursor: of a
     * mark that was set after that all are there, also if its cursor is less since the last row is
     * gone.
     */
    private Bound effective(Bound bound) {
      Position last = end;
      Instant known = endKnownAt;
      Instant setAt = bound.setAt();
      boolean byClock = poller.cursor().kind() == Cursor.Kind.SERVER_TIME;
      if (last == null || known == null || setAt == null || !poller.endsNow() || byClock) {
        return bound;
      }
      return last.equals(knownEnd) && !setAt.isBefore(known)
          ? new Bound(last.cursor().orElseThrow(), true, bound.completeAt(), bound.server(), setAt)
          : bound;
    }

    private boolean isFinished(Horizon.Found now) {
      Bound bound = now.bound();
      Position last = end;
      if (bound == null || last == null) {
        return false;
      }
      try {
        return source.reaches(effective(bound), last);
      } catch (OutboxException e) {
        throw new StepException(PollerFailure.FETCH, e);
      }
    }

    /** Returns whether the lease was released. */
    private boolean handle(List<SourceRow> rows, boolean isOver) {
      long begun = System.nanoTime();
      Supplier<Ending> ending =
          () -> new Ending(isOver, isOver ? lag() : lagBehind(rows), heldBackWords());
      Batches.Result result = batches.handle(lease, rows, position, attempt, ending);
      attempt = 1;
      position = rows.get(rows.size() - 1).position();
      tally.rows += result.handled;
      tally.quarantined += result.quarantined;
      tally.batches++;
      state.at(position);
      tellLag(isOver ? lag() : lagBehind(rows));
      if (result.released) {
        state.succeeded();
        return true;
      }
      if (result.paused) {
        release(Outcome.PROCESSED);
        return true;
      }
      poller
          .rate()
          .ifPresent(
              rate -> {
                long due = rows.size() * Duration.ofSeconds(1).toNanos() / rate;
                pauses.pause(Math.max(0, due - (System.nanoTime() - begun)));
              });
      return false;
    }

    private void tellLag(@Nullable Duration lag) {
      if (lag != null) {
        state.lag(lag);
      }
    }

    /** How old everything is that is handled, when nothing more was found. */
    private @Nullable Duration lag() {
      return lagSince(completeAt);
    }

    /** While there is more, the last row may tell it. */
    private @Nullable Duration lagBehind(List<SourceRow> rows) {
      String cursor = rows.get(rows.size() - 1).position().cursor().orElseThrow();
      return lagSince(source.known().horizon().completeAt(cursor));
    }

    private @Nullable Duration lagSince(@Nullable Instant complete) {
      Horizon.Found now = found;
      return now == null || complete == null
          ? null
          : positive(Duration.between(complete, now.at())).plus(since(foundAt));
    }

    private static Duration positive(Duration duration) {
      return duration.isNegative() ? Duration.ZERO : duration;
    }

    private String heldBackWords() {
      Horizon.Found now = found;
      return now == null ? "" : now.heldBack().map(HeldBack::toString).orElse("");
    }

    private TickResult release(Outcome outcome) {
      Duration lag = outcome == Outcome.PROCESSED ? null : lag();
      try {
        if (!store.release(lease.token(), lag, heldBackWords())) {
          log.changed(LogEvent.LEASE_RELEASED_BY_OTHERS, store.whyLost(lease.token()));
        }
      } catch (OutboxStoreException e) {
        return PollerTick.this.failed(
            tally, PollerFailure.RELEASE, e, lease.token(), position, attempt);
      }
      tellLag(lag);
      state.succeeded();
      return tally.result(tally.rows > 0 ? Outcome.PROCESSED : outcome);
    }

    /** Something that was found may be left: nothing is known of the lag, and nothing succeeded. */
    private TickResult handBack(int attempts) {
      try {
        store.handBack(lease.token(), attempts);
      } catch (OutboxStoreException e) {
        return PollerTick.this.failed(
            tally, PollerFailure.RELEASE, e, lease.token(), position, attempt);
      }
      return tally.result(tally.rows > 0 ? Outcome.PROCESSED : Outcome.EMPTY);
    }

    private TickResult finish() {
      try {
        store.finish(lease.token());
      } catch (OutboxStoreException e) {
        return failed(new StepException(PollerFailure.COMMIT, e));
      }
      log.changed(LogEvent.POLLER_FINISHED, "no row up to its end is left");
      state.succeeded();
      return tally.result(tally.rows > 0 ? Outcome.PROCESSED : Outcome.FINISHED);
    }

    private TickResult failed(StepException e) {
      Throwable reason = e.reason();
      if (e.step() == PollerFailure.SOURCE
          || e.step() == PollerFailure.FETCH
          || e.step() == PollerFailure.NORMALIZE) {
        source.forget();
      }
      if (e.step() == PollerFailure.HANDLER && pauses.isInterrupted()) {
        return handBack(1); // it did not fail; it comes again
      }
      TickResult result =
          PollerTick.this.failed(tally, e.step(), reason, lease.token(), position, attempt);
      note(e, Failures.words(reason));
      return result;
    }

    /** If it cannot be noted, the lease ends by itself. */
    private void note(StepException e, String words) {
      if (lease.isLost()) {
        return;
      }
      boolean isAttempt = e.step() == PollerFailure.HANDLER;
      try {
        store.fail(
            lease.token(),
            e.step(),
            words,
            isAttempt,
            isAttempt ? wait(attempt) : Duration.ZERO,
            e.behind(),
            heldBackWords());
      } catch (OutboxStoreException failure) {
        log.failed(
            PollerFailure.RELEASE,
            lease.token(),
            position,
            0,
            attempt,
            Duration.ZERO,
            Failures.words(failure));
        observer.tell(
            events -> events.failed(application, poller.name(), PollerFailure.RELEASE, failure));
      }
    }

    private Duration wait(int attempts) {
      double factor = Math.pow(2, Math.min(62, attempts - 1));
      double nanos = poller.firstWait().toNanos() * factor;
      long longest = poller.longestWait().toNanos();
      return Duration.ofNanos(nanos >= longest ? longest : (long) nanos);
    }
  }

  private static void requireTypeOf(String what, Known known, Position where) {
    CursorType type = known.description().cursor().type();
    where
        .type()
        .map(CursorType::named)
        .filter(other -> !type.takes(other))
        .ifPresent(
            other -> {
              throw new StepException(
                  PollerFailure.SOURCE,
                  new OutboxException(
                      "the %s is of type %s and the cursor of type %s; give one of the cursor's type"
                          .formatted(what, other.tag(), type.tag())));
            });
    int parts = where.key().size();
    if (parts > 0 && parts != known.description().key().size()) {
      throw new StepException(
          PollerFailure.CHECKPOINT,
          new OutboxException(
              "the position on record has a key of %d columns and the source one of %d; set another by PollerControl.set"
                  .formatted(parts, known.description().key().size())));
    }
  }

  /** Reads what the first batch would be; writes nothing, and takes no lease. */
  TickResult dry() {
    Tally tally = new Tally();
    try {
      StateRow row = store.state().orElse(null);
      Known known = source.known();
      Position position = row == null || !row.begun() ? null : row.stored().position();
      if (row != null && row.begun() && !row.fingerprint().equals("{}")) {
        List<String> differences =
            Fingerprint.differences(
                row.fingerprintParts(), Fingerprint.of(poller, known.description()));
        if (!differences.isEmpty()) {
          return tally.failed(
              PollerFailure.SOURCE,
              "the definition is another than the one on record: "
                  + String.join("; ", differences));
        }
      }
      requireTypeOf("position", known, position == null ? Position.beginning() : position);
      return dry(known, position);
    } catch (OutboxStoreException e) {
      return tally.failed(PollerFailure.LEASE, Failures.words(e));
    } catch (NormalizeException e) {
      return tally.failed(PollerFailure.NORMALIZE, Failures.words(e));
    } catch (StepException e) {
      return tally.failed(e.step(), Failures.words(e.reason()));
    } catch (SourceException e) {
      source.forget();
      return tally.failed(PollerFailure.SOURCE, Failures.words(e));
    } catch (IllegalArgumentException e) {
      return tally.failed(PollerFailure.CHECKPOINT, Failures.words(e));
    }
  }

  /** Waits for rows that are complete soon as a tick does. */
  private TickResult dry(Known known, @Nullable Position position) {
    Horizon.Found now = known.horizon().look(position == null ? Position.beginning() : position);
    Position from = position == null ? startOf(known, now) : position;
    Position end = poller.end().orElse(null);
    long waitUntil = waitUntil();
    long recheck = FIRST_RECHECK;
    while (true) {
      Bound bound = now.bound();
      List<SourceRow> rows = bound == null ? List.of() : source.fetch(from, bound, end);
      if (!rows.isEmpty()) {
        return dry(Outcome.PROCESSED, rows);
      }
      boolean isHeld = now.held() && source.isAnyBehind(from, now, end);
      long soon = now.held() ? 0 : Duration.ofMillis(now.moreSoon()).toNanos();
      long wait = isHeld ? recheck : soon;
      boolean isTooLong = System.nanoTime() + wait - waitUntil > 0;
      if (wait == 0 || isTooLong || pauses.isStopping()) {
        return dry(isHeld ? Outcome.HELD_BACK : Outcome.EMPTY, rows);
      }
      pauses.pause(wait);
      recheck = Math.min(LONGEST_RECHECK, 2 * recheck);
      now = known.horizon().look(from);
    }
  }

  private static TickResult dry(Outcome outcome, List<SourceRow> rows) {
    return new TickResult(
        outcome,
        rows.size(),
        rows.isEmpty() ? 0 : 1,
        0,
        rows.stream().map(SourceRow::change).toList(),
        Optional.empty(),
        Optional.empty());
  }

  /** A look later than the margin tells more, also where ticks are few. */
  private long waitUntil() {
    long wanted = Math.max(poller.pollInterval().toNanos(), 4 * poller.cursor().margin().toNanos());
    return System.nanoTime() + Math.min(LONGEST_WAIT_IN_A_TICK, wanted);
  }

  private Position startOf(Known known, Horizon.Found first) {
    String greatest = first.greatest();
    return poller
        .start()
        .orElseGet(
            () ->
                greatest == null
                    ? Position.beginning()
                    : Position.of(
                        Side.AFTER,
                        known.description().cursor().type().tag(),
                        greatest,
                        List.of()));
  }
}
