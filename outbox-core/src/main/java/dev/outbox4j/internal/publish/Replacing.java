package dev.outbox4j.internal.publish;

import dev.outbox4j.IfLive;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Messages of one call that take the place of live ones. */
public final class Replacing {
  private record Timer(String queue, String timerId) {}

  private Replacing() {}

  /**
   * Returns the places of messages that are not published, since the same call has one that takes
   * their place: of one timer id the last of these is published.
   *
   * @throws OutboxException if there are messages with dedup keys beside such ones
   */
  public static Set<Integer> leftOut(List<OutboxMessage> messages) {
    Map<Timer, Integer> last = new HashMap<>();
    for (int place = 0; place < messages.size(); place++) {
      OutboxMessage message = messages.get(place);
      if (message.timerId().isPresent() && message.ifLive() == IfLive.REPLACE) {
        last.put(timer(message), place);
      }
    }
    if (last.isEmpty()) {
      return Set.of();
    }
    Set<Integer> leftOut = new HashSet<>();
    for (int place = 0; place < messages.size(); place++) {
      OutboxMessage message = messages.get(place);
      if (message.dedupKey().isPresent()) {
        throw new OutboxException(
            "a call has messages with dedup keys and others that take the place of live ones;"
                + " publish these in a call each");
      }
      if (message.timerId().isPresent() && last.getOrDefault(timer(message), place) != place) {
        leftOut.add(place);
      }
    }
    return leftOut;
  }

  private static Timer timer(OutboxMessage message) {
    return new Timer(message.queue(), message.timerId().orElseThrow());
  }
}
