package dev.outbox4j.poller;

import java.util.List;

/**
 * What the pollers of an application know of themselves on this node, read from memory.
 *
 * @param application whose pollers they are
 * @param started whether they are started, and not stopped
 * @param pollers each, in the order of the definitions
 */
public record PollersHealth(String application, boolean started, List<PollerHealth> pollers) {

  /** Copies the list. */
  public PollersHealth {
    pollers = List.copyOf(pollers);
  }

  /**
   * {@return whether they are started, and each poller has looked and its latest look succeeded}
   */
  public boolean healthy() {
    return started && pollers.stream().allMatch(PollerHealth::healthy);
  }
}
