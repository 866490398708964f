package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import java.util.LinkedHashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Refuses settings each of which is allowed, and which together do not do what one of them says. A
 * switch that turns a part off may leave that part's settings: they often come from another file.
 */
final class Contradictions {
  private Contradictions() {}

  /**
   * Looks at the values; those that a subscriber's builder refuses are left to it.
   *
   * @throws OutboxException with all that there are
   */
  static void refuse(OutboxProperties properties) {
    Set<String> faults = new LinkedHashSet<>(); // what all queues share is told once
    if (properties.deleteTerminalFailures()) {
      addUnused("outbox4j.dead-letter-table", properties.deadLetterTable(), faults);
      addUnused("outbox4j.dead-letter-schema", properties.deadLetterSchema(), faults);
    }
    if (Boolean.TRUE.equals(properties.subscriber().holdKeyOnDeadLetter())
        && properties.orderedQueues().isEmpty()) {
      faults.add(
          "outbox4j.subscriber.hold-key-on-dead-letter=true and no outbox4j.ordered-queues: only"
              + " ordered queues hold keys, so none would be held; name the ordered queues, or drop"
              + " it");
    }
    if (properties.queues().isEmpty()) { // else a queue's own value may be what lacks here
      SubscriberSettings.ofAll(properties).addContradictions(faults);
    }
    properties
        .queues()
        .keySet()
        .forEach(
            queue -> SubscriberSettings.of(properties, queue, false).addContradictions(faults));
    refuse(faults);
  }

  /**
   * Refuses what was found.
   *
   * @throws OutboxException if it is anything
   */
  static void refuse(Set<String> faults) {
    if (!faults.isEmpty()) {
      throw new OutboxException(
          faults.size() == 1
              ? faults.iterator().next()
              : faults.size() + " settings do not go together:\n" + String.join("\n", faults));
    }
  }

  private static void addUnused(String property, @Nullable String value, Set<String> faults) {
    if (value != null) {
      faults.add(
          "outbox4j.delete-terminal-failures=true and "
              + property
              + "="
              + value
              + ": what fails for good would be deleted, and nothing would come there; drop one of"
              + " the two");
    }
  }
}
