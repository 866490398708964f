package dev.outbox4j.job;

import static dev.outbox4j.dlq.DeadLetterFilter.queue;
import static dev.outbox4j.dlq.DeadLetterFilter.resolved;
import static dev.outbox4j.dlq.DeadLetterFilter.unresolved;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.dlq.DeadLetter;
import dev.outbox4j.dlq.DeadLetterEdit;
import dev.outbox4j.dlq.DeadLetterFilter;
import dev.outbox4j.dlq.DeadLetterPage;
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
 * looked at them. Thread-safe; its connections need the rights of an operator, and those on the
 * record of jobs, which {@code JobMigrations} grants.
 */
public final class JobDeadLetters {
  private static final int MOST_COUNTED = 10_000;
  private static final int MOST_NAMED = 100;

  private final DeadLetterWorklist worklist;
  private final String queue;
  private final Map<String, JobType<?>> types;
  private final JobBodies bodies;
  private final JobStore store;
  private final @Nullable Callable<?> probe;

  JobDeadLetters(
      DeadLetterWorklist worklist,
      String queue,
      Map<String, JobType<?>> types,
      JobBodies bodies,
      JobStore store,
      @Nullable Callable<?> probe) {
    this.worklist = worklist;
    this.queue = queue;
    this.types = Map.copyOf(types);
    this.bodies = bodies;
    this.store = store;
    this.probe = probe;
  }

  /**
   * Selects letters of this queue, to look at them. What is done to them is done here, lest a
   * replay be not validated, or a purge delete what nobody has looked at.
   *
   * @param filter which of the queue's letters
   * @return what they are
   */
  public Letters where(DeadLetterFilter filter) {
    return new Letters(selected(filter));
  }

  private DeadLetterSelection selected(DeadLetterFilter filter) {
    return worklist.where(queue(queue).and(Objects.requireNonNull(filter, "filter")));
  }

  /** Some letters of a queue, to be looked at. Immutable and thread-safe. */
  public static final class Letters {
    private final DeadLetterSelection selected;

    private Letters(DeadLetterSelection selected) {
      this.selected = selected;
    }

    /**
     * Returns the letters that failed last.
     *
     * @param size how many at most, 1 to 1,000
     * @return the first page
     * @throws IllegalArgumentException if the size is out of range
     * @throws OutboxStoreException if the statement fails
     */
    public DeadLetterPage page(int size) {
      return selected.page(size);
    }

    /**
     * Returns the letters that failed before those of a page.
     *
     * @param size how many at most, 1 to 1,000
     * @param after the place where the last page ended
     * @return the next page
     * @throws IllegalArgumentException if the size is out of range
     * @throws OutboxStoreException if the statement fails
     */
    public DeadLetterPage page(int size, DeadLetterPage.Position after) {
      return selected.page(size, after);
    }

    /**
     * Counts the letters.
     *
     * @param most where to stop, at least 1
     * @return how many there are, at most {@code most}
     * @throws IllegalArgumentException if {@code most} is less than 1
     * @throws OutboxStoreException if the statement fails
     */
    public long count(long most) {
      return selected.count(most);
    }
  }

  /**
   * Replays letters that nobody has resolved: each goes back into the queue as it is, with its
   * budget and its window in flight from zero, if the probe of the queue's dependencies succeeds,
   * its type is known to this queue, it can be decoded, and its type's check has nothing against
   * it. The probe is called once, before the first letter. A letter that is refused stays where it
   * is, and says why. A job that was deleted from the record since is put on record again.
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
    return selected(filter.and(unresolved())).redrive(validating(redrive, true));
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
    return selected(filter.and(unresolved())).dryRun(validating(redrive, false));
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
    return worklist.redrive(id, edit, validating(redrive, true));
  }

  /**
   * Adds what is asked of a letter before it is replayed, the record of its job at last.
   *
   * @param records whether it is really replayed
   */
  private Redrive validating(Redrive redrive, boolean records) {
    Redrive checked = Objects.requireNonNull(redrive, "redrive").checking(this::refusal);
    Redrive probing = probe == null ? checked : checked.probing(probe);
    return records ? probing.checking(this::unrecorded) : probing;
  }

  /**
   * A letter whose job cannot be put on record stays: nobody could ask for its state. If somebody
   * has the job's row, the letter is passed by.
   */
  private Optional<String> unrecorded(DeadLetter letter) {
    String jobId = letter.headers().get(Job.ID_HEADER);
    if (jobId == null) { // it was published without this queue, so it is no job
      return Optional.empty();
    }
    try {
      store.record(jobId, letter);
      return Optional.empty();
    } catch (OutboxStoreException e) {
      if (e.fault() == Fault.TIMEOUT || isLostRace(e)) {
        throw e;
      }
      return Optional.of("its job could not be put on record: " + e.getMessage());
    }
  }

  private static boolean isLostRace(OutboxStoreException e) {
    return e.sqlState().filter(state -> state.startsWith("40")).isPresent();
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
    return selected(filter).discard(by, reason);
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
    DeadLetterReport purged = selected(filter.and(resolved())).purge(by);
    DeadLetterSelection open = selected(filter.and(unresolved()));
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
