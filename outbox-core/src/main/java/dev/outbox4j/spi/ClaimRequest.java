package dev.outbox4j.spi;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * One claim on one queue.
 *
 * @param queue the queue
 * @param range where in the queue to look
 * @param limit the greatest number of rows; 1 or more
 * @param maxBytes the most payload bytes to bring, 1 or more; one row is brought whatever its size,
 *     and a store that goes by the sizes it saw before may bring more, once, when they grow
 *     suddenly
 * @param lease how long the rows are promised to the claimer, by the server's clock
 * @param owner who claims: names it to people, and to those who wake it
 * @param idle what to say to publishers along with the claim, and what to learn
 * @param timeLimit after which time the server is to end the statement; null is the store's own
 *     limit
 * @param slots how many rows of the queue may be leased at once under this limit, by all claimers
 *     together; 0 is no limit, and then the rows count for nobody's
 */
public record ClaimRequest(
    String queue,
    Range range,
    int limit,
    long maxBytes,
    Duration lease,
    String owner,
    Idle idle,
    @Nullable Duration timeLimit,
    int slots) {

  /** Checks the numbers. */
  public ClaimRequest {
    if (limit < 1 || maxBytes < 1) {
      throw new IllegalArgumentException(
          "limit is " + limit + " and maxBytes is " + maxBytes + "; both must be 1 or more");
    }
    if (slots < 0) {
      throw new IllegalArgumentException("slots is " + slots + "; it must be 0 or more");
    }
  }

  /**
   * A claim without a limit on how many rows are leased at once.
   *
   * @param queue see the components
   * @param range see the components
   * @param limit see the components
   * @param maxBytes see the components
   * @param lease see the components
   * @param owner see the components
   * @param idle see the components
   * @param timeLimit see the components
   */
  public ClaimRequest(
      String queue,
      Range range,
      int limit,
      long maxBytes,
      Duration lease,
      String owner,
      Idle idle,
      @Nullable Duration timeLimit) {
    this(queue, range, limit, maxBytes, lease, owner, idle, timeLimit, 0);
  }

  /**
   * A part of a queue, in the order of due instant and id.
   *
   * @param above look above this place only; null is from the first row on
   * @param upTo look up to this place only, it included; null is up to the last row that is due
   */
  public record Range(@Nullable ScanBound above, @Nullable ScanBound upTo) {
    /** The whole queue. */
    public static final Range ALL = new Range(null, null);
  }

  /**
   * What the claimer is about to do, and what it wants to learn. One subscriber of a queue at a
   * time is <em>on watch</em>: publishers notify it while it sleeps. The others are in reserve:
   * they poll, and may be woken by name.
   *
   * @param mode the kind
   * @param wakeIn for {@link Mode#SLEEP} and {@link Mode#AWAKE}: until when the claimer keeps its
   *     place, unless it says so again
   * @param mark what to learn of open transactions, for {@link Mode#SLEEP} and {@link
   *     Mode#LOOK_AHEAD}: null for nothing, {@link #NEW_MARK} for a mark of those that are open
   *     now, or a mark that was given before, to learn whether all of those have ended
   */
  public record Idle(Mode mode, Duration wakeIn, @Nullable Long mark) {
    /** Asks for a mark. */
    public static final long NEW_MARK = 0;

    /** Publishers are told nothing, and nothing is learned. */
    public static final Idle UNCHANGED = new Idle(Mode.UNCHANGED, Duration.ZERO, null);

    /** As {@link #UNCHANGED}, and the result has a {@link LookAhead}. */
    public static final Idle LOOK_AHEAD = new Idle(Mode.LOOK_AHEAD, Duration.ZERO, null);

    /**
     * As {@link #LOOK_AHEAD}, with a question about open transactions.
     *
     * @param mark see the component
     * @return the request
     */
    public static Idle lookAhead(@Nullable Long mark) {
      return new Idle(Mode.LOOK_AHEAD, Duration.ZERO, mark);
    }

    /**
     * The claimer is busy and needs no notification, but keeps its place for so long; zero gives
     * the watch up.
     *
     * @param keptFor how long it keeps its place
     * @return the request
     */
    public static Idle awake(Duration keptFor) {
      return new Idle(Mode.AWAKE, keptFor, null);
    }

    /**
     * The claimer is about to sleep. It goes on watch if nobody else is, else in reserve; the
     * result has a {@link LookAhead} that says which.
     *
     * @param wakeIn when the claimer will look again by itself at the latest
     * @param mark see the component
     * @return the request
     */
    public static Idle sleep(Duration wakeIn, @Nullable Long mark) {
      return new Idle(Mode.SLEEP, wakeIn, mark);
    }

    /** The kinds of {@link Idle}. */
    public enum Mode {
      /** Nothing changes. */
      UNCHANGED,
      /** No notification is needed. */
      AWAKE,
      /** Look ahead only. */
      LOOK_AHEAD,
      /** About to sleep. */
      SLEEP
    }
  }
}
