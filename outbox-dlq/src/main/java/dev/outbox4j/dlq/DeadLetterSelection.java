package dev.outbox4j.dlq;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.dlq.DeadLetterPage.Position;
import java.util.Objects;
import java.util.Optional;

/** Some dead letters, and what can be done with them. Immutable and thread-safe. */
public final class DeadLetterSelection {
  private static final int MOST_OF_A_PAGE = 1_000;

  private final JdbcWorklist jdbc;
  private final DeadLetterFilter filter;
  private final DeadLetterFilter unresolved;
  private final Selected selected;

  DeadLetterSelection(JdbcWorklist jdbc, DeadLetterFilter filter) {
    this.jdbc = jdbc;
    this.filter = filter;
    this.unresolved = filter.otherwise(DeadLetterFilter.unresolved());
    this.selected = new Selected(unresolved.terms());
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
    return jdbc.page(selected, requireSize(size), Optional.empty());
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
  public DeadLetterPage page(int size, Position after) {
    return jdbc.page(selected, requireSize(size), Optional.of(after));
  }

  static int requireSize(int size) {
    if (size < 1 || size > MOST_OF_A_PAGE) {
      throw new IllegalArgumentException("size is " + size + "; it must be 1 to " + MOST_OF_A_PAGE);
    }
    return size;
  }

  /**
   * Counts the letters.
   *
   * @param most where to stop, at least 1: the cost is that many letters, and those that an index
   *     does not leave out
   * @return how many there are, at most {@code most}
   * @throws IllegalArgumentException if {@code most} is less than 1
   * @throws OutboxStoreException if the statement fails, or takes more than 12 seconds
   */
  public long count(long most) {
    if (most < 1) {
      throw new IllegalArgumentException("most is " + most + "; it must be 1 or more");
    }
    return jdbc.count(selected, most);
  }

  /**
   * Puts the letters back into the outbox that failed before this call, queue after queue, in the
   * order in which their messages were published. Each keeps its id, type, headers and ordering
   * key, and has its attempts from zero. A letter is left where it is, and named in the report, if
   * a check refuses it, if a live message has its id or its timer id, or if the server refuses its
   * message. A letter that somebody else has in hand is passed by. A letter that stays holds back
   * the younger ones of its ordering key that the filter names, until the next call.
   *
   * <p>It may be called by several processes at once: each letter is put back once, and the order
   * of each key is kept, since they put letters with ordering keys back in turn. Each has its own
   * rate.
   *
   * <p>The call returns when all is done. An interrupt ends it early: the report says so, and the
   * thread stays interrupted. What was put back by then stays so; to call it again is safe.
   *
   * @param redrive who, how fast, and what is to be checked
   * @return what became of it
   * @throws IllegalArgumentException if the filter names an id that no letter has; nothing was done
   * @throws OutboxException if the probe fails; nothing was put back
   * @throws OutboxStoreException if a statement fails for what is no letter's fault; what was put
   *     back before stays so, and the audit says how many these are
   */
  public DeadLetterReport redrive(Redrive redrive) {
    return redriving(redrive).all(selected);
  }

  /**
   * Says what {@link #redrive} would do, and changes nothing: the probe and the checks are called,
   * the checks at ten times the rate at most. What others do meanwhile it cannot say.
   *
   * @param redrive who, and what is to be checked
   * @return what would become of it
   * @throws IllegalArgumentException if the filter names an id that no letter has
   * @throws OutboxException if the probe fails
   * @throws OutboxStoreException if a statement fails
   */
  public DeadLetterReport dryRun(Redrive redrive) {
    return redriving(redrive).dry(selected);
  }

  private RedriveRun redriving(Redrive redrive) {
    Objects.requireNonNull(redrive, "redrive");
    requireKnownIds();
    return new RedriveRun(jdbc, redrive, "redrive", unresolved.toString());
  }

  private void requireKnownIds() {
    for (long[] ids : selected.ids()) {
      Optional<Long> unknown = jdbc.unknown(ids);
      if (unknown.isPresent()) {
        throw new IllegalArgumentException(
            "There is no dead letter %d of this outbox in %s; nothing was done"
                .formatted(unknown.get(), jdbc.name()));
      }
    }
  }

  /**
   * Resolves the letters that failed before this call without putting them back. Those that are
   * resolved already stay as they are, and those that somebody else has in hand are passed by. An
   * interrupt ends it early, as it does {@link #redrive}.
   *
   * @param by who does it; not blank, at most 255 bytes in UTF-8
   * @param reason why; not blank, at most 2,000 bytes in UTF-8
   * @return what became of it
   * @throws IllegalArgumentException if a text is blank or too long, or the filter names an id that
   *     no letter has
   * @throws OutboxStoreException if a statement fails for what is no letter's fault; what was
   *     discarded before stays so
   */
  public DeadLetterReport discard(String by, String reason) {
    Words.requireBy(by);
    Words.requireNote("reason", reason);
    requireKnownIds();
    return new LetterRun(jdbc, "discard", by, reason, unresolved.toString())
        .all(
            selected,
            true,
            (run, letters) -> jdbc.discard(run, letters, by, Words.DISCARDED + reason));
  }

  /**
   * Deletes the letters that are resolved, with their histories. Unresolved ones stay, and so do
   * those whose message is in the outbox: these are named in the report. Here a filter that says
   * nothing of resolution means the resolved letters. An interrupt ends it early, as it does {@link
   * #redrive}.
   *
   * @param by who does it; not blank, at most 255 bytes in UTF-8
   * @return what became of it
   * @throws IllegalArgumentException if the text is blank or too long, or the filter names an id
   *     that no letter has
   * @throws OutboxStoreException if a statement fails for what is no letter's fault; what was
   *     deleted before stays so
   */
  public DeadLetterReport purge(String by) {
    return purge(by, false);
  }

  /**
   * Deletes the letters with their histories, whether anybody has resolved them or not, and whether
   * their messages are in the outbox or not. Here a filter that says nothing of resolution means
   * both. An interrupt ends it early, as it does {@link #redrive}.
   *
   * @param by who does it; not blank, at most 255 bytes in UTF-8
   * @return what became of it
   * @throws IllegalArgumentException if the text is blank or too long, or the filter names an id
   *     that no letter has
   * @throws OutboxStoreException if a statement fails for what is no letter's fault; what was
   *     deleted before stays so
   */
  public DeadLetterReport purgeUnresolvedToo(String by) {
    return purge(by, true);
  }

  private DeadLetterReport purge(String by, boolean forced) {
    Words.requireBy(by);
    requireKnownIds();
    DeadLetterFilter meant =
        filter.otherwise(forced ? DeadLetterFilter.any() : DeadLetterFilter.resolved());
    return new LetterRun(jdbc, "purge", by, "", meant.toString())
        .all(
            new Selected(meant.terms()), false, (run, letters) -> jdbc.purge(run, letters, forced));
  }
}
