package dev.outbox4j.monitor.internal;

import dev.outbox4j.OutboxMessage;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/** The message that wakes an instance. It is the same for all checks of an execution. */
final class Wake {
  /** The header that has the instance's id. */
  static final String ID = "monitor-id";

  /** The header that has the application whose instance it is. */
  static final String APPLICATION = "monitor-application";

  private Wake() {}

  /** Makes one; without an instant it is due at once. */
  static OutboxMessage of(
      String queue, String application, String type, String id, @Nullable Instant due) {
    OutboxMessage.Builder message =
        OutboxMessage.to(queue)
            .type(type)
            .correlationId(type + "/" + id)
            .header(ID, id)
            .header(APPLICATION, application);
    return due == null ? message.build() : message.deliverAt(due).build();
  }
}
