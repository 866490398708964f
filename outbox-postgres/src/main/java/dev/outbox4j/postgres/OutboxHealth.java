package dev.outbox4j.postgres;

import java.util.List;

/**
 * What an {@link OutboxHealthCheck} found. Immutable; fit to be shown by a health endpoint.
 *
 * @param schema the faults of the schema, and of the database if it does not answer
 * @param queues the depth of each queue, in the order asked for; empty if they cannot be counted
 */
public record OutboxHealth(SchemaReport schema, List<QueueDepth> queues) {

  /** Copies the list. */
  public OutboxHealth {
    queues = List.copyOf(queues);
  }

  /** {@return true if the database answered and nothing is at fault} */
  public boolean healthy() {
    return schema.valid();
  }
}
