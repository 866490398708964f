package dev.outbox4j.spring;

import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.postgres.SchemaFault;
import dev.outbox4j.postgres.SchemaReport;
import dev.outbox4j.postgres.SchemaValidator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * Asks the subscribers, from memory, and the database whether the schema fits, which also tells
 * whether it answers. Thread-safe. What the health indicators of all versions of Spring Boot show.
 */
public final class OutboxStatusCheck {
  private final Supplier<List<SubscriberHealth>> subscribers;
  private final SchemaValidator validator;

  OutboxStatusCheck(Supplier<List<SubscriberHealth>> subscribers, SchemaValidator validator) {
    this.subscribers = subscribers;
    this.validator = validator;
  }

  /**
   * Asks. Never throws for want of a database.
   *
   * @return the answer
   */
  public OutboxStatus check() {
    SchemaReport schema = validator.validateSchema();
    List<SubscriberHealth> healths = subscribers.get();
    boolean up = schema.valid() && healths.stream().allMatch(SubscriberHealth::healthy);
    Map<String, Object> details = new LinkedHashMap<>();
    details.put(
        "schema",
        schema.valid() ? "valid" : schema.faults().stream().map(SchemaFault::toString).toList());
    details.put("subscribers", bySubscriber(healths));
    return new OutboxStatus(up, details);
  }

  /** Returns what is known of each, by its name and in the order given. */
  static Map<String, Map<String, Object>> bySubscriber(List<SubscriberHealth> healths) {
    Map<String, Map<String, Object>> details = new LinkedHashMap<>();
    healths.forEach(health -> details.put(health.subscriber(), details(health)));
    return details;
  }

  private static Map<String, Object> details(SubscriberHealth health) {
    Map<String, Object> details = new LinkedHashMap<>();
    details.put("state", health.state());
    details.put("healthy", health.healthy());
    details.put("listener", health.listener());
    details.put("inFlight", health.inFlight());
    details.put("running", health.running());
    details.put("deadLettersWaiting", health.deadLettersWaiting());
    health.lastClaimAt().ifPresent(at -> details.put("lastClaimAt", at.toString()));
    health.lastFailureAt().ifPresent(at -> details.put("lastFailureAt", at.toString()));
    health.lastFailure().ifPresent(text -> details.put("lastFailure", text));
    health
        .oldest()
        .ifPresent(
            oldest ->
                details.put(
                    "oldest",
                    Map.of(
                        "queue",
                        oldest.queue(),
                        "id",
                        oldest.id(),
                        "type",
                        oldest.type().orElse("none"),
                        "age",
                        oldest.age().toString())));
    return details;
  }
}
