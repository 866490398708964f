package dev.outbox4j.spring;

import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.SubscriberState;
import dev.outbox4j.postgres.SchemaFault;
import dev.outbox4j.postgres.SchemaReport;
import dev.outbox4j.postgres.SchemaValidator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Asks the subscribers, from memory, and the database whether the schema fits, which also tells
 * whether it answers; with {@code outbox4j.validate=false} only the former. Thread-safe. What the
 * health indicators of all versions of Spring Boot show.
 */
public final class OutboxStatusCheck {
  private final OutboxLifecycle lifecycle;
  private final @Nullable SchemaValidator validator;

  /**
   * Takes what it asks.
   *
   * @param validator null if the schema is none of its business
   */
  OutboxStatusCheck(OutboxLifecycle lifecycle, @Nullable SchemaValidator validator) {
    this.lifecycle = lifecycle;
    this.validator = validator;
  }

  /**
   * Asks. Never throws for want of a database.
   *
   * @return the answer
   */
  public OutboxStatus check() {
    SchemaReport schema = validator == null ? null : validator.validateSchema();
    boolean startDue = lifecycle.startDue();
    List<SubscriberHealth> healths = lifecycle.health();
    boolean up =
        (schema == null || schema.valid())
            && healths.stream().allMatch(health -> asItShouldBe(health, startDue));
    Map<String, Object> details = new LinkedHashMap<>();
    details.put("schema", schema == null ? "not validated" : told(schema));
    details.put("subscribers", bySubscriber(healths));
    return new OutboxStatus(up, details);
  }

  /** One that nobody has started, and nobody was to start, is as it should be. */
  private static boolean asItShouldBe(SubscriberHealth health, boolean startDue) {
    return health.healthy() || (health.state() == SubscriberState.NEW && !startDue);
  }

  private static Object told(SchemaReport schema) {
    return schema.valid() ? "valid" : schema.faults().stream().map(SchemaFault::toString).toList();
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
    if (health.state() != SubscriberState.NEW) {
      details.put("healthy", health.healthy());
    }
    details.put("listener", health.listener());
    details.put("inFlight", health.inFlight());
    details.put("running", health.running());
    details.put("stuckFor", health.stuckFor().toString());
    details.put("deadLettersWaiting", health.deadLettersWaiting());
    health
        .order()
        .ifPresent(
            order -> {
              details.put("buckets", order.buckets());
              details.put("blockedKeys", order.blockedKeys());
              details.put("keysOnHold", order.keysOnHold());
            });
    health.pausedQueues().ifPresent(paused -> details.put("pausedQueues", paused));
    health.lastClaimAt().ifPresent(at -> details.put("lastClaimAt", at.toString()));
    health.failingSince().ifPresent(since -> details.put("failingSince", since.toString()));
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
