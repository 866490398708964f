package dev.outbox4j.job;

import static dev.outbox4j.dlq.DeadLetterFilter.queue;
import static dev.outbox4j.dlq.DeadLetterFilter.resolved;
import static dev.outbox4j.dlq.DeadLetterFilter.unresolved;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.dlq.DeadLetter;
import dev.outbox4j.dlq.DeadLetterEdit;
import dev.outbox4j.dlq.DeadLetterFilter;
import dev.outbox4j.dlq.DeadLetterReport;
import dev.outbox4j.dlq.DeadLetterSelection;
import dev.outbox4j.dlq.DeadLetterWorklist;
import dev.outbox4j.dlq.Redrive;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;

/**
 * The dead letters of a job queue: replayed only if they can work, deleted only if somebody has
 * looked at them. Thread-safe; its connections need the rights of an operator.
 */
public final class JobDeadLetters {
  private static final int MOST_COUNTED = 10_000;
  private static final int MOST_NAMED = 100;

  private final DeadLetterWorklist worklist;
  private final String queue;
  private final Map<String, JobType<?>> types;
  private final JobBodies bodies;
  private final @Nullable Callable<?> probe;

  JobDeadLetters(
      DeadLetterWorklist worklist,
      String queue,
      Map<String, JobType<?>> types,
      JobBodies bodies,
      @Nullable Callable<?> probe) {
    this.worklist = worklist;
    this.queue = queue;
    this.types = Map.copyOf(types);
    this.bodies = bodies;
    this.probe = probe;
  }

  /**
   * Selects letters of this queue, to look at them or to discard them. What is put back by the
   * selection itself is not validated; {@link #replay(DeadLetterFilter, Redrive)} does that.
   *
   * @param filter which of the queue's letters
   * @return what can be done with them
   */
  public DeadLetterSelection where(DeadLetterFilter filter) {
    return worklist.where(ofQueue(filter));
  }

  private DeadLetterFilter ofQueue(DeadLetterFilter filter) {
    return queue(queue).and(Objects.requireNonNull(filter, "filter"));
  }

  /**
   * Replays letters that nobody has resolved: each goes back into the queue as it is, with its
   * budget from zero, if the probe of the queue's dependencies succeeds, its type is known to this
   * queue, it can be decoded, and its type's check has nothing against it. The probe is called
   * once, before the first letter. A letter that is refused stays where it is, and says why.
   *
   * @param filter which of the queue's letters
   * @param redrive who, why and how fast, and further checks; the queue's probe, if it has one,
   *     takes the place of the redrive's
   * @return what became of it
   * @throws IllegalArgumentException if the filter names an id that no letter has
   * @throws OutboxException if the probe fails; nothing was put back
   * @throws OutboxStoreException if a statement fails; what was put back before stays so
   */
  public DeadLetterReport replay(DeadLetterFilter filter, Redrive redrive) {
    return where(filter.and(unresolved())).redrive(validating(redrive));
  }

  /**
   * Says what {@link #replay(DeadLetterFilter, Redrive)} would do, and changes nothing.
   *
   * @param filter which of the queue's letters
   * @param redrive as for the replay
   * @return what would become of it
   * @throws OutboxException if the probe fails
   * @throws OutboxStoreException if a statement fails
   */
  public DeadLetterReport dryRun(DeadLetterFilter filter, Redrive redrive) {
    return where(filter.and(unresolved())).dryRun(validating(redrive));
  }

  /**
   * Replays a letter with changes, which are validated as {@link #replay(DeadLetterFilter,
   * Redrive)} says.
   *
   * @param id the letter's own id
   * @param edit the changes
   * @param redrive who and why, and further checks
   * @return what became of it
   * @throws IllegalArgumentException if there is no such letter of this queue, or it is resolved
   * @throws OutboxException if the probe fails
   * @throws OutboxStoreException if a statement fails
   */
  public DeadLetterReport replay(long id, DeadLetterEdit edit, Redrive redrive) {
    boolean ofQueue =
        worklist.find(id).filter(letter -> letter.summary().queue().equals(queue)).isPresent();
    if (!ofQueue) {
      throw new IllegalArgumentException(
          "There is no dead letter %d of queue '%s'".formatted(id, queue));
    }
    return worklist.redrive(id, edit, validating(redrive));
  }

  private Redrive validating(Redrive redrive) {
    Redrive checked = Objects.requireNonNull(redrive, "redrive").checking(this::refusal);
    return probe == null ? checked : checked.probing(probe);
  }

  private Optional<String> refusal(DeadLetter letter) throws Exception {
    String name = letter.summary().type().orElse("");
    JobType<?> type = types.get(name);
    if (type == null) {
      return Optional.of(
          "job type '%s' is not known here; correct it, or add it by on(...) or knows(...)"
              .formatted(name));
    }
    return refusal(type, letter);
  }

  private <T> Optional<String> refusal(JobType<T> type, DeadLetter letter) throws Exception {
    return type.refusal(bodies.decode(type, letter));
  }

  /**
   * Resolves letters without replaying them.
   *
   * @param filter which of the queue's letters
   * @param by who does it; not blank, at most 255 bytes in UTF-8
   * @param reason why; not blank, at most 2,000 bytes in UTF-8
   * @return what became of it
   * @throws IllegalArgumentException if a text is blank or too long, or the filter names an id that
   *     no letter has
   * @throws OutboxStoreException if a statement fails; what was discarded before stays so
   */
  public DeadLetterReport discard(DeadLetterFilter filter, String by, String reason) {
    return where(filter).discard(by, reason);
  }

  /**
   * Deletes letters that somebody has replayed or discarded, with their histories. Those that
   * nobody has looked at are refused: they stay, and the report counts and names them.
   *
   * @param filter which of the queue's letters
   * @param by who does it; not blank, at most 255 bytes in UTF-8
   * @return what became of it; of more than 10,000 that are refused, that many are counted
   * @throws IllegalArgumentException if the text is blank or too long, or the filter names an id
   *     that no letter has
   * @throws OutboxStoreException if a statement fails; what was deleted before stays so
   */
  public DeadLetterReport purge(DeadLetterFilter filter, String by) {
    DeadLetterReport purged = where(filter.and(resolved())).purge(by);
    DeadLetterSelection open = where(filter.and(unresolved()));
    long refused = open.count(MOST_COUNTED);
    List<DeadLetterReport.Refusal> refusals = new ArrayList<>(purged.refusals());
    if (refused > 0) {
      open.page(MOST_NAMED).letters().stream()
          .limit(MOST_NAMED - Math.min(MOST_NAMED, refusals.size()))
          .forEach(
              letter ->
                  refusals.add(
                      new DeadLetterReport.Refusal(
                          letter.id(), "nobody has looked at it; replay or discard it first")));
    }
    return new DeadLetterReport(
        purged.done(), purged.refused() + refused, purged.passedBy(), refusals, purged.finished());
  }
}
