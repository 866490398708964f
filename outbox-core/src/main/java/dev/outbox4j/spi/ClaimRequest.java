package dev.outbox4j.spi;

import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One claim.
 *
 * @param queues the queues to look into, most urgent first, at least one
 * @param limit the greatest number of rows over all queues; 1 or more
 * @param lease how long the rows are promised to the claimer, by the server's clock
 * @param owner who claims, for people
 * @param idle what to say to publishers along with the claim
 */
public record ClaimRequest(
    List<QueueScan> queues, int limit, Duration lease, String owner, Idle idle) {

  /** Checks and copies the components. */
  public ClaimRequest {
    queues = List.copyOf(queues);
    if (queues.isEmpty() || limit < 1) {
      throw new IllegalArgumentException("A claim needs a queue and a limit of 1 or more");
    }
  }

  /**
   * A queue and where in it to start.
   *
   * @param queue its name
   * @param above look above this place only; null is a sweep over the whole queue
   */
  public record QueueScan(String queue, @Nullable ScanBound above) {}

  /**
   * What the claimer is about to do.
   *
   * @param mode the kind
   * @param wakeIn for {@link Mode#SLEEP}: when the claimer will look again by itself at the latest
   */
  public record Idle(Mode mode, Duration wakeIn) {
    /** The claimer goes on as before; publishers are told nothing. */
    public static final Idle UNCHANGED = new Idle(Mode.UNCHANGED, Duration.ZERO);

    /** The claimer is busy from now on and needs no notification. */
    public static final Idle AWAKE = new Idle(Mode.AWAKE, Duration.ZERO);

    /** As {@link #UNCHANGED}, and the result has a {@link LookAhead}. */
    public static final Idle LOOK_AHEAD = new Idle(Mode.LOOK_AHEAD, Duration.ZERO);

    /**
     * The claimer is about to sleep and wants a notification for what is due before it wakes; the
     * result has a {@link LookAhead}.
     *
     * @param wakeIn when the claimer will look again by itself at the latest
     * @return the announcement
     */
    public static Idle sleep(Duration wakeIn) {
      return new Idle(Mode.SLEEP, wakeIn);
    }

    /** The kinds of {@link Idle}. */
    public enum Mode {
      /** Nothing changes. */
      UNCHANGED,
      /** No notification is needed any more. */
      AWAKE,
      /** Look ahead only. */
      LOOK_AHEAD,
      /** About to sleep. */
      SLEEP
    }
  }
}
