package dev.outbox4j.dlq;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.dlq.JdbcWorklist.Candidate;
import dev.outbox4j.dlq.JdbcWorklist.Run;
import dev.outbox4j.dlq.JdbcWorklist.Written;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Puts letters back, as a {@link Redrive} says. A letter that stays holds back the younger ones of
 * its ordering key for the rest of the run. Confined to the thread that redrives.
 */
final class RedriveRun {
  private static final Logger log = LoggerFactory.getLogger(RedriveRun.class);
  private static final String NOT_NOTED =
      "Why a dead letter in {} was not redriven could not be noted";
  private static final int LARGEST_BATCH = 100;
  private static final int BATCHES_PER_SECOND = 10;
  private static final long LARGEST_BYTES = 8 << 20;
  private static final int SHARE_OF_MEMORY = 8;
  private static final int LOOKS_FOR_ONE = 10;
  private static final long BETWEEN_TURNS = TimeUnit.MILLISECONDS.toNanos(10);
  private static final long LONGEST_WAIT_FOR_TURN = TimeUnit.SECONDS.toNanos(30);

  private final JdbcWorklist jdbc;
  private final Redrive redrive;
  private final LetterRun letters;
  private final Tally tally;
  private final Pace pace;
  private final Splitter splitter = new Splitter(LARGEST_BATCH);
  private final Map<Key, Candidate> held = new HashMap<>();
  private final Map<Candidate, String> notes = new LinkedHashMap<>();
  private final Set<Long> messagesOfDryRun = new HashSet<>();
  private final Set<Key> timersOfDryRun = new HashSet<>();
  private long patience = LONGEST_WAIT_FOR_TURN;
  private boolean warned;

  /** An ordering key, or a timer, of a queue. */
  private record Key(String queue, String name) {}

  RedriveRun(JdbcWorklist jdbc, Redrive redrive, String action, String filter) {
    this.jdbc = jdbc;
    this.redrive = redrive;
    this.letters = new LetterRun(jdbc, action, redrive.who(), redrive.note().orElse(""), filter);
    this.tally = letters.tally();
    this.pace = new Pace(redrive.perSecond());
  }

  DeadLetterReport all(Selected selected) {
    probe();
    return letters.audited(
        run ->
            LetterRun.each(
                    jdbc, selected, true, Optional.of(run.begun()), found -> batches(found, run))
                || isAtLimit());
  }

  DeadLetterReport dry(Selected selected) {
    probe();
    boolean finished;
    try {
      finished =
          LetterRun.each(jdbc, selected, true, Optional.empty(), found -> batches(found, null));
    } catch (OutboxStoreException e) {
      if (!Thread.currentThread().isInterrupted()) {
        throw e;
      }
      finished = false;
    }
    return tally.report(finished || isAtLimit());
  }

  DeadLetterReport edited(DeadLetter letter, DeadLetterEdit edit) {
    probe();
    Candidate one = Candidate.of(letter);
    return letters.audited(
        run -> {
          Verdict verdict = verdict(edit.of(letter));
          if (Thread.currentThread().isInterrupted()) {
            return false;
          }
          if (verdict.notNow()) {
            tally.passBy(1);
          } else if (verdict.refusal() != null) {
            refuse(one, verdict.refusal());
          } else {
            splitter.run(
                List.of(one),
                part -> send(part, () -> jdbc.redriveEdited(run, letter, edit, redrive, tally)),
                this::failed);
          }
          writeNotes();
          return !Thread.currentThread().isInterrupted();
        });
  }

  private boolean isAtLimit() {
    return tally.done() >= redrive.most();
  }

  private void probe() {
    Optional<Callable<?>> probe = redrive.probe();
    if (probe.isPresent()) {
      try {
        probe.get().call();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new OutboxException("The probe was interrupted, so nothing was redriven", e);
      } catch (Exception e) {
        throw new OutboxException("The probe failed, so nothing was redriven: " + e, e);
      }
    }
  }

  private boolean batches(List<Candidate> found, @Nullable Run run) {
    int from = 0;
    while (from < found.size()) {
      long left = redrive.most() - tally.done();
      if (left <= 0 || Thread.currentThread().isInterrupted() || !pace.await()) {
        return false;
      }
      List<Candidate> batch = batch(found.subList(from, found.size()), left);
      from += batch.size();
      long before = tally.done();
      if (!batch(batch, run)) {
        return false;
      }
      // to look is not free, above all if there are checks, so that it has a rate as well
      double looked =
          run == null && redrive.checks().isEmpty() ? 0 : batch.size() / (double) LOOKS_FOR_ONE;
      double went = run == null ? 0 : (double) (tally.done() - before);
      pace.charge(Math.max(went, looked));
    }
    if (run != null) {
      letters.giveSignOfLife(run);
    }
    return true;
  }

  private List<Candidate> batch(List<Candidate> found, long left) {
    long most =
        Math.min(
            left,
            Math.max(1, Math.min(splitter.largest(), redrive.perSecond() / BATCHES_PER_SECOND)));
    int count = 0;
    long bytes = 0;
    while (count < found.size() && count < most) {
      bytes += found.get(count).bytes();
      if (count > 0 && bytes > LARGEST_BYTES) {
        break;
      }
      count++;
    }
    return found.subList(0, count);
  }

  private boolean batch(List<Candidate> batch, @Nullable Run run) {
    Map<Candidate, String> refusals = new LinkedHashMap<>();
    List<Candidate> allowed = new ArrayList<>();
    if (!check(batch, refusals, allowed, run)) {
      return false; // of a batch that was not looked at whole, nothing is done or said
    }
    refusals.forEach(this::refuse);
    List<Candidate> free = allowed.stream().filter(each -> !isHeld(each)).toList();
    tally.passBy(batch.size() - refusals.size() - free.size());
    if (run == null) {
      if (!free.isEmpty()) {
        dry(free);
      }
      notes.clear(); // nothing is written
      return true;
    }
    Run acting = run;
    if (!free.isEmpty()) {
      splitter.run(
          free,
          part -> {
            if (Thread.currentThread().isInterrupted()) {
              return; // also if older ones were not sent for that
            }
            // one of the part before may have stayed
            List<Candidate> now = part.stream().filter(each -> !isHeld(each)).toList();
            if (!now.isEmpty()) {
              send(now, () -> jdbc.redrive(acting, now, redrive, tally));
            }
            tally.passBy(part.size() - now.size());
          },
          this::failed);
    }
    writeNotes();
    return !Thread.currentThread().isInterrupted();
  }

  /** Asks the checks; false if the thread was interrupted meanwhile. */
  private boolean check(
      List<Candidate> batch,
      Map<Candidate, String> refusals,
      List<Candidate> allowed,
      @Nullable Run run) {
    if (redrive.checks().isEmpty()) {
      allowed.addAll(batch);
      return true;
    }
    Map<Long, DeadLetter> whole = new HashMap<>();
    Map<Candidate, String> unreadable = new HashMap<>();
    read(batch.stream().filter(each -> !isTooLarge(each)).toList(), whole, unreadable);
    Set<Key> heldHere = new HashSet<>();
    for (Candidate each : batch) {
      DeadLetter letter = whole.get(each.id());
      String lost = unreadable.get(each);
      if (lost == null && !isTooLarge(each) && (letter == null || !each.isStill(letter))) {
        continue; // somebody was faster
      }
      Optional<Key> key = key(each);
      if (isHeld(each) || key.filter(heldHere::contains).isPresent()) {
        continue;
      }
      Verdict verdict =
          letter != null ? verdict(letter) : Verdict.refused(lost != null ? lost : tooMany(each));
      if (Thread.currentThread().isInterrupted()) {
        return false;
      }
      if (verdict.notNow()) { // it is passed by, and so are those behind it
        hold(each);
        key.ifPresent(heldHere::add);
      } else if (verdict.refusal() != null) {
        refusals.put(each, verdict.refusal());
        key.ifPresent(heldHere::add);
      } else {
        allowed.add(each);
      }
      if (run != null) {
        letters.giveSignOfLife(run);
      }
    }
    return true;
  }

  private static String tooMany(Candidate each) {
    return "to be checked it would take about "
        + each.bytes()
        + " bytes, too many for this process";
  }

  /** Reads letters, and notes why the server cannot read some. */
  private void read(
      List<Candidate> some, Map<Long, DeadLetter> whole, Map<Candidate, String> unreadable) {
    if (some.isEmpty()) {
      return;
    }
    try {
      jdbc.letters(JdbcWorklist.ids(some)).forEach(each -> whole.put(each.summary().id(), each));
    } catch (OutboxStoreException e) {
      if (!Splitter.isUnreadable(e)) {
        throw e;
      }
      if (some.size() == 1) {
        unreadable.put(some.get(0), LetterRun.refusalOf(e));
        return;
      }
      int half = some.size() / 2;
      read(some.subList(0, half), whole, unreadable);
      read(some.subList(half, some.size()), whole, unreadable);
    }
  }

  /** What no process could hold may be dead for that: it is not read, lest it kill this one. */
  private static boolean isTooLarge(Candidate letter) {
    return letter.bytes()
        > Math.max(LARGEST_BYTES, Runtime.getRuntime().maxMemory() / SHARE_OF_MEMORY);
  }

  private void hold(Candidate letter) {
    key(letter).ifPresent(key -> held.merge(key, letter, (a, b) -> a.isOlderThan(b) ? a : b));
  }

  private boolean isHeld(Candidate letter) {
    return key(letter).map(held::get).filter(older -> older.isOlderThan(letter)).isPresent();
  }

  private static Optional<Key> key(Candidate letter) {
    return Optional.ofNullable(letter.orderingKey()).map(name -> new Key(letter.queue(), name));
  }

  private void dry(List<Candidate> free) {
    Map<Long, String> obstacles = jdbc.obstacles(JdbcWorklist.ids(free));
    for (Candidate each : free) {
      if (isHeld(each)) {
        tally.passBy(1);
        continue;
      }
      String obstacle = obstacles.get(each.id());
      Optional<Key> timer =
          Optional.ofNullable(each.timerId()).map(name -> new Key(each.queue(), name));
      if (obstacle == null && messagesOfDryRun.contains(each.messageId())) {
        obstacle = Obstacle.LIVE_ID;
      }
      if (obstacle == null && timer.filter(timersOfDryRun::contains).isPresent()) {
        obstacle = Obstacle.LIVE_TIMER;
      }
      if (obstacle == null) {
        tally.did(1);
        messagesOfDryRun.add(each.messageId());
        timer.ifPresent(timersOfDryRun::add);
      } else {
        refuse(each, obstacle);
      }
    }
  }

  /** A statement that puts letters back; empty if somebody else has the turn to do so. */
  private interface Sending {
    Optional<Map<Long, Written>> send();
  }

  private void send(List<Candidate> some, Sending sending) {
    long begun = System.nanoTime();
    Optional<Map<Long, Written>> written = sending.send();
    while (written.isEmpty() && System.nanoTime() - begun < patience) {
      if (Thread.currentThread().isInterrupted()) {
        return;
      }
      LockSupport.parkNanos(BETWEEN_TURNS);
      written = sending.send();
    }
    if (written.isEmpty()) {
      some.forEach(this::hold);
    }
    // whoever kept the turn for so long stands still: no other batch waits for it
    patience = written.isEmpty() ? 0 : LONGEST_WAIT_FOR_TURN;
    Map<Long, Written> known = written.orElse(Map.of());
    for (Candidate each : some) {
      tell(each, known.get(each.id()));
    }
  }

  private void tell(Candidate letter, @Nullable Written what) {
    if (what == null) {
      tally.passBy(1); // it is not as it was: somebody was faster
    } else if (what.done()) {
      tally.did(1);
    } else if (what.words() == null || what.words().equals(Obstacle.LOCKED)) {
      tally.passBy(1);
      hold(letter);
    } else {
      refuse(letter, what.words());
    }
  }

  private void failed(Candidate letter, OutboxStoreException failure) {
    if (Splitter.isOfTheMoment(failure)) {
      log.debug("Dead letter {} in {} is passed by", letter.id(), jdbc.name(), failure);
      tally.passBy(1);
      hold(letter);
    } else {
      refuse(letter, LetterRun.refusalOf(failure));
    }
  }

  private void refuse(Candidate letter, String reason) {
    tally.refuse(letter.id(), reason);
    notes.put(letter, Words.storable(Words.NOT_REDRIVEN + reason));
    hold(letter);
  }

  /** The report has the reasons, too: a letter that cannot be written now stops nothing. */
  private void writeNotes() {
    if (!notes.isEmpty()) {
      try {
        splitter.run(
            List.copyOf(notes.keySet()),
            part -> jdbc.note(part, notes, redrive.who()),
            (letter, failure) -> warn(failure));
      } catch (OutboxStoreException e) {
        warn(e);
      }
      notes.clear();
    }
  }

  /** Once: what refuses one note may refuse them all. */
  private void warn(OutboxStoreException failure) {
    if (warned) {
      log.debug(NOT_NOTED, jdbc.name(), failure);
    } else {
      log.warn(NOT_NOTED, jdbc.name(), failure);
      warned = true;
    }
  }

  /**
   * What the checks say of a letter.
   *
   * @param refusal why it is not to be redriven; null if it may, or that cannot be told now
   * @param notNow whether that cannot be told now
   */
  private record Verdict(@Nullable String refusal, boolean notNow) {
    static final Verdict MAY_GO = new Verdict(null, false);
    static final Verdict NOT_NOW = new Verdict(null, true);

    static Verdict refused(String why) {
      return new Verdict(why, false);
    }
  }

  private Verdict verdict(DeadLetter letter) {
    try {
      for (DeadLetterCheck check : redrive.checks()) {
        Optional<String> refusal = refusal(check, letter);
        if (refusal.isPresent() || Thread.currentThread().isInterrupted()) {
          return refusal.map(Words::storable).map(Verdict::refused).orElse(Verdict.MAY_GO);
        }
      }
      return Verdict.MAY_GO;
    } catch (OutboxStoreException e) {
      log.debug("Dead letter {} in {} is passed by", letter.summary().id(), jdbc.name(), e);
      return Verdict.NOT_NOW;
    }
  }

  /**
   * A check meets what no handler could handle, so that its errors are of the letter, too; but for
   * what is of the moment, which it throws.
   */
  @SuppressWarnings("NullAway") // a check may return null, whatever its signature says
  private static Optional<String> refusal(DeadLetterCheck check, DeadLetter letter) {
    try {
      Optional<String> refusal = check.refusal(letter);
      return refusal == null ? Optional.of("a check returned null") : refusal;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return Optional.empty();
    } catch (Throwable e) {
      if (e instanceof OutboxStoreException failure && Splitter.isOfTheMoment(failure)) {
        throw failure;
      }
      if (e instanceof VirtualMachineError error && !(e instanceof StackOverflowError)) {
        throw error;
      }
      return Optional.of("a check threw " + e.getClass().getName());
    }
  }
}
