package dev.outbox4j.dlq;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.dlq.JdbcWorklist.Candidate;
import dev.outbox4j.dlq.JdbcWorklist.Run;
import dev.outbox4j.dlq.JdbcWorklist.Written;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One action on many letters, with its entry in the audit. Confined to the thread that acts. */
final class LetterRun {
  private static final Logger log = LoggerFactory.getLogger(LetterRun.class);
  private static final int BATCH = 500;
  private static final int ATTEMPTS_TO_END = 5;
  private static final long SIGN_OF_LIFE = TimeUnit.MINUTES.toNanos(1);

  private final JdbcWorklist jdbc;
  private final String action;
  private final String by;
  private final String note;
  private final String filter;
  private final Tally tally = new Tally();
  private long seen = System.nanoTime();

  LetterRun(JdbcWorklist jdbc, String action, String by, String note, String filter) {
    this.jdbc = jdbc;
    this.action = action;
    this.by = by;
    this.note = note;
    this.filter = filter;
  }

  /** What is done to some letters; returns what became of those that it had in hand. */
  interface Step {
    Map<Long, Written> on(Run run, List<Candidate> letters);
  }

  /** What is done with a look's letters; false ends the run. */
  interface Look {
    boolean at(List<Candidate> letters);
  }

  /** The whole of an action; false if it was interrupted. */
  interface Work {
    boolean on(Run run);
  }

  Tally tally() {
    return tally;
  }

  /** Discards or purges; the letters do not depend on each other. */
  DeadLetterReport all(Selected selected, boolean open, Step step) {
    return audited(run -> each(run, jdbc, selected, open, step));
  }

  /** Does something to each letter of a selection, as a part of a run; false if interrupted. */
  boolean each(Run run, JdbcWorklist of, Selected selected, boolean open, Step step) {
    Splitter splitter = new Splitter(BATCH);
    return each(
        of,
        selected,
        open,
        Optional.of(run.begun()),
        letters -> {
          giveSignOfLife(run);
          for (int from = 0; from < letters.size(); ) {
            if (Thread.currentThread().isInterrupted()) {
              return false;
            }
            int to = Math.min(from + splitter.largest(), letters.size());
            splitter.run(
                letters.subList(from, to),
                part -> tell(part, step.on(run, part)),
                (letter, failure) -> {
                  failed(letter, failure);
                  giveSignOfLife(run); // each may have waited for a lock
                });
            giveSignOfLife(run);
            from = to;
          }
          return true;
        });
  }

  private void tell(List<Candidate> letters, Map<Long, Written> written) {
    for (Candidate letter : letters) {
      Written what = written.get(letter.id());
      if (what != null && what.done()) {
        tally.did(1);
      } else if (what != null && what.words() != null) {
        tally.refuse(letter.id(), what.words());
      } else {
        tally.passBy(1);
      }
    }
  }

  private void failed(Candidate letter, OutboxStoreException failure) {
    if (Splitter.isOfTheMoment(failure)) {
      tally.passBy(1);
    } else {
      tally.refuse(letter.id(), refusalOf(failure));
    }
  }

  static String refusalOf(OutboxStoreException failure) {
    return Words.storable("the server refuses it: " + failure.getMessage());
  }

  /** Does something under an entry of the audit, which says how it ended. */
  DeadLetterReport audited(Work work) {
    return audited(jdbc.begin(action, by, note, filter), work);
  }

  /** Does something under an entry that was written already. */
  DeadLetterReport audited(Run run, Work work) {
    boolean finished;
    try {
      finished = work.on(run);
    } catch (OutboxStoreException failure) {
      if (!Thread.currentThread().isInterrupted()) {
        end(run, "failed", Words.of(failure));
        throw failure;
      }
      log.debug("{} of dead letters in {} was interrupted", action, jdbc.name(), failure);
      finished = false;
    } catch (Throwable failure) {
      end(run, "failed", Words.of(failure));
      throw failure;
    }
    end(run, finished ? "completed" : "stopped", "");
    log.info(
        "{} of dead letters in {} by {}, entry {} of the audit, has ended: {} done, {} refused, {}"
            + " passed by",
        action,
        jdbc.name(),
        Words.onOneLine(by),
        run.id(),
        tally.done(),
        tally.refused(),
        tally.passedBy());
    return tally.report(finished);
  }

  /** A pool would give an interrupted thread no connection. */
  private void end(Run run, String status, String error) {
    boolean interrupted = Thread.interrupted();
    try {
      end(run, status, error, ATTEMPTS_TO_END);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private void end(Run run, String status, String error, int attempts) {
    try {
      jdbc.end(run, status, error, tally);
    } catch (OutboxStoreException e) {
      if (attempts > 1 && (e.fault() == Fault.TIMEOUT || e.fault() == Fault.TRANSIENT)) {
        end(run, status, error, attempts - 1);
      } else {
        log.warn(
            "Entry {} of the audit of {} could not be ended, which is to say: {} {}",
            run.id(),
            jdbc.name(),
            status,
            error,
            e);
      }
    }
  }

  /** Once a minute: a run that gives none for some minutes is taken for dead. */
  void giveSignOfLife(Run run) {
    if (System.nanoTime() - seen > SIGN_OF_LIFE) {
      giveSignOfLife(run, Duration.ZERO);
    }
  }

  /** Gives one that is good for a time in which no other follows, and withdraws one before. */
  void giveSignOfLife(Run run, Duration ahead) {
    seen = System.nanoTime();
    try {
      jdbc.seen(run, ahead);
    } catch (OutboxStoreException e) {
      log.debug("Entry {} of the audit of {} could not be written", run.id(), jdbc.name(), e);
    }
  }

  /** Looks at the letters of a selection, one window after the other. */
  static boolean each(
      JdbcWorklist jdbc, Selected selected, boolean open, Optional<Instant> begun, Look look) {
    @Nullable Candidate last = null;
    while (true) {
      List<Candidate> window = jdbc.candidates(selected, open, begun, last);
      if (window.isEmpty()) {
        return true;
      }
      last = window.get(window.size() - 1);
      if (!look.at(window.stream().filter(Candidate::meant).toList())) {
        return false;
      }
    }
  }
}
