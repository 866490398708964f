package dev.outbox4j.examples.orders;

import dev.outbox4j.OutboxSubscribers;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.postgres.SchemaFault;
import dev.outbox4j.postgres.SchemaReport;
import dev.outbox4j.postgres.SchemaValidator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What {@code GET /health} tells: whether the schema is as needed and the subscribers work. */
final class HealthCheck {
  private final SchemaValidator validator;
  private final OutboxSubscribers subscribers;

  HealthCheck(SchemaValidator validator, OutboxSubscribers subscribers) {
    this.validator = validator;
    this.subscribers = subscribers;
  }

  Health check() {
    SchemaReport schema = validator.validateSchema();
    List<SubscriberHealth> health = subscribers.health();
    return new Health(
        schema.valid() && health.stream().allMatch(SubscriberHealth::healthy),
        schema.faults().stream().map(SchemaFault::toString).toList(),
        health.stream().map(Subscriber::of).toList());
  }

  /** The answer, as JSON. */
  record Health(boolean healthy, List<String> schemaFaults, List<Subscriber> subscribers) {}

  /** One subscriber in the answer. */
  record Subscriber(
      String name,
      boolean healthy,
      String state,
      String listener,
      int inFlight,
      @Nullable String oldestInFlight,
      @Nullable String lastFailure) {

    static Subscriber of(SubscriberHealth health) {
      return new Subscriber(
          health.subscriber(),
          health.healthy(),
          health.state().name(),
          health.listener().name(),
          health.inFlight(),
          health.oldest().map(Subscriber::words).orElse(null),
          health.lastFailure().orElse(null));
    }

    private static String words(SubscriberHealth.InFlight oldest) {
      return "message %d of queue '%s', type %s, for %d ms"
          .formatted(
              oldest.id(), oldest.queue(), oldest.type().orElse("none"), oldest.age().toMillis());
    }
  }
}
