package dev.outbox4j.lock;

import java.time.Duration;
import java.util.List;

/**
 * What the locks of an application know of themselves in this process, read from memory.
 *
 * @param application whose locks they are
 * @param started whether they are started and not stopped
 * @param listens whether they have a source that tells of releases
 * @param connected whether that source is connected now
 * @param held the locks that are held here, by their names
 * @param listeners the listeners that are started here, by their names
 * @param waiting how many threads wait for a lock, listeners included
 */
public record LocksHealth(
    String application,
    boolean started,
    boolean listens,
    boolean connected,
    List<Held> held,
    List<Listener> listeners,
    int waiting) {

  /**
   * A lock that is held.
   *
   * @param name its name, with its suffix
   * @param token the fencing token
   * @param remaining for how long it is held if it is not renewed
   */
  public record Held(String name, long token, Duration remaining) {}

  /**
   * A listener that is started.
   *
   * @param name the name of its lock
   * @param holds whether its work is done here now; else it stands by
   */
  public record Listener(String name, boolean holds) {}

  /** Copies the lists. */
  public LocksHealth {
    held = List.copyOf(held);
    listeners = List.copyOf(listeners);
  }

  /**
   * Tells whether they are started, and their source is connected if there is one. To wait for a
   * lock does not make them unhealthy.
   */
  public boolean healthy() {
    return started && (connected || !listens);
  }
}
