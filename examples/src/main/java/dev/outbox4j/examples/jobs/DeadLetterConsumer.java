package dev.outbox4j.examples.jobs;

import static dev.outbox4j.FailureReason.REJECTED;
import static dev.outbox4j.FailureReason.RETRY_TERMINAL;
import static dev.outbox4j.FailureReason.UNDECODABLE;
import static dev.outbox4j.dlq.DeadLetterFilter.ids;
import static dev.outbox4j.dlq.DeadLetterFilter.reason;
import static dev.outbox4j.dlq.DeadLetterFilter.resolvedBefore;
import static dev.outbox4j.dlq.DeadLetterFilter.unresolved;

import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.dlq.DeadLetterFilter;
import dev.outbox4j.dlq.DeadLetterPage;
import dev.outbox4j.dlq.DeadLetterReport;
import dev.outbox4j.dlq.DeadLetterSummary;
import dev.outbox4j.dlq.Redrive;
import dev.outbox4j.job.JobAlert;
import dev.outbox4j.job.JobAlerts;
import dev.outbox4j.job.JobDeadLetters;
import dev.outbox4j.job.JobQueue;
import dev.outbox4j.job.JobSample;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Looks at the dead letters of the queue now and then, as an operator does: it replays what can
 * work, discards what never will, leaves the rest to a person, and raises alerts. Any number of
 * processes may do so at once: each letter is replayed or discarded once.
 *
 * <p>If it dies in a round, what was done stays done, and the next round goes on with the rest.
 * Thread-safe.
 */
final class DeadLetterConsumer {
  /** By which name it is in the audit. */
  static final String NAME = "taste-dead-letters";

  /** As many as a report names that are refused. */
  private static final int PAGE = 100;

  private static final int REPLAYS_PER_SECOND = 50;

  /** For how long a letter is kept that was replayed or discarded. */
  private static final Duration KEPT = Duration.ofDays(14);

  private final JobQueue queue;
  private final JobAlerts rules;
  private final Consumer<JobAlert> alarm;

  // guarded by this
  private final List<JobSample> samples = new ArrayList<>();
  private Set<JobAlert.Rule> raised = EnumSet.noneOf(JobAlert.Rule.class);

  /**
   * Creates it; does no I/O.
   *
   * @param queue the queue, which knows the probe of the analysis service
   * @param rules when to raise alerts
   * @param alarm told of each alert that was not there in the round before
   */
  DeadLetterConsumer(JobQueue queue, JobAlerts rules, Consumer<JobAlert> alarm) {
    this.queue = queue;
    this.rules = rules;
    this.alarm = alarm;
  }

  /** Looks at all letters that nobody has resolved, once. */
  Round look() {
    Looked looked = new Looked();
    JobDeadLetters.Letters open = queue.deadLetters().where(unresolved());
    DeadLetterPage page = open.page(PAGE);
    looked.at(page);
    // a letter that fails again meanwhile is before this place, and so for the next round
    while (page.next().isPresent()) {
      page = open.page(PAGE, page.next().get());
      looked.at(page);
    }
    return new Round(
        looked.replayed,
        looked.discarded,
        looked.kept,
        Optional.ofNullable(looked.probe),
        alerts());
  }

  /** One round. */
  private final class Looked {
    private final JobDeadLetters letters = queue.deadLetters();
    private final Map<Long, String> kept = new TreeMap<>();
    private long replayed;
    private long discarded;
    private @Nullable String probe;

    void at(DeadLetterPage page) {
      List<Long> toReplay = new ArrayList<>();
      List<Long> toDiscard = new ArrayList<>();
      for (DeadLetterSummary letter : page.letters()) {
        switch (Verdict.of(letter)) {
          case REPLAY -> toReplay.add(letter.id());
          case DISCARD -> toDiscard.add(letter.id());
          case KEEP -> kept.put(letter.id(), why(letter));
        }
      }
      discard(toDiscard);
      replay(toReplay);
    }

    private void discard(List<Long> ids) {
      if (!ids.isEmpty()) {
        String reason = "the handler has rejected it for good";
        discarded += letters.discard(those(ids, REJECTED), NAME, reason).done();
      }
    }

    /** Once the service is known not to work, nothing is replayed any more in this round. */
    private void replay(List<Long> ids) {
      if (ids.isEmpty()) {
        return;
      }
      if (probe == null) {
        try {
          Redrive redrive = Redrive.by(NAME).note("it may work now").perSecond(REPLAYS_PER_SECOND);
          DeadLetterReport report =
              letters.replay(those(ids, RETRY_TERMINAL, UNDECODABLE), redrive);
          replayed += report.done();
          report.refusals().forEach(refusal -> kept.put(refusal.id(), refusal.reason()));
          return;
        } catch (OutboxStoreException e) {
          throw e; // the database is to blame: the next round goes on
        } catch (OutboxException e) {
          probe = e.getMessage();
        }
      }
      ids.forEach(id -> kept.put(id, "the analysis service does not work"));
    }
  }

  /** Those that still are as they were judged: somebody else may have been faster. */
  private static DeadLetterFilter those(List<Long> ids, FailureReason... reasons) {
    return ids(ids.stream().mapToLong(Long::longValue).toArray()).and(reason(reasons));
  }

  private static String why(DeadLetterSummary letter) {
    return "%s after %d deliveries, %d failures and %d replays: %s"
        .formatted(
            letter.reason(),
            letter.deliveries(),
            letter.attempts(),
            letter.redrives(),
            letter.exception().orElse("no exception"));
  }

  private synchronized List<JobAlert> alerts() {
    samples.add(queue.sample());
    if (samples.size() > rules.risingSamples()) {
      samples.remove(0);
    }
    List<JobAlert> alerts = rules.of(samples, List.of());
    Set<JobAlert.Rule> now = EnumSet.noneOf(JobAlert.Rule.class);
    for (JobAlert alert : alerts) {
      now.add(alert.rule());
      if (!raised.contains(alert.rule())) {
        alarm.accept(alert);
      }
    }
    raised = now;
    return alerts;
  }

  /**
   * Deletes what was replayed or discarded long ago. What nobody has looked at stays.
   *
   * @return how many letters were deleted
   */
  long purge() {
    Instant now = queue.sample().at(); // the server's clock
    return queue.deadLetters().purge(resolvedBefore(now.minus(KEPT)), NAME).done();
  }
}
