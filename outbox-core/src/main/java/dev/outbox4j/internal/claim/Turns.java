package dev.outbox4j.internal.claim;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Which queue of a subscriber goes first in a round, and so gets the room there is: in the long run
 * each as often as its weight says, evenly spread. Not thread-safe.
 */
public final class Turns {
  private final Map<String, Integer> weights;

  /** How far each queue is behind what its weight gives it; as smooth weighted round robin does. */
  private final Map<String, Long> credits = new HashMap<>();

  /** Gives these queues these weights, and all others one. */
  public Turns(Map<String, Integer> weights) {
    this.weights = Map.copyOf(weights);
  }

  /** Tells whether a round ends with a queue that has more: else the next would get as much. */
  public boolean areWeighted() {
    return !weights.isEmpty();
  }

  /**
   * Returns which of these queues goes first now.
   *
   * @param queues at least one; they may change from round to round
   * @return its index
   */
  public int first(List<String> queues) {
    int chosen = 0;
    long most = Long.MIN_VALUE;
    long total = 0;
    for (int i = 0; i < queues.size(); i++) {
      int weight = weights.getOrDefault(queues.get(i), 1);
      long credit = credits.merge(queues.get(i), (long) weight, Long::sum);
      total += weight;
      if (credit > most) {
        most = credit;
        chosen = i;
      }
    }
    credits.merge(queues.get(chosen), -total, Long::sum);
    return chosen;
  }
}
