package dev.outbox4j.poller.internal;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.poller.RowChange;
import dev.outbox4j.postgres.OutboxPublisher;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Makes messages of rows. */
public final class Publishing {
  private Publishing() {}

  /** Publishes what a mapping makes of rows, in their order. */
  public static void publish(
      OutboxPublisher publisher,
      Function<RowChange, Optional<OutboxMessage>> mapping,
      List<RowChange> rows,
      Connection connection) {
    List<OutboxMessage> messages = rows.stream().map(mapping).flatMap(Optional::stream).toList();
    if (!messages.isEmpty()) {
      publisher.publish(connection, messages);
    }
  }

  /** {@return the message of a row, for a queue} */
  public static OutboxMessage message(String queue, RowChange row) {
    Map<String, @Nullable Object> body = new LinkedHashMap<>();
    String operation = row.operation().name().toLowerCase(Locale.ROOT);
    body.put("eventId", row.eventId());
    body.put("operation", operation);
    body.put("source", row.source());
    body.put("cursor", row.cursor());
    body.put("key", row.key());
    body.put("after", row.after());
    return OutboxMessage.to(queue)
        .type(operation)
        .orderingKey(orderingKey(row))
        .contentType("application/json")
        .body(Json.object(body).getBytes(StandardCharsets.UTF_8))
        .build();
  }

  private static String orderingKey(RowChange row) {
    String key = row.key().values().stream().map(Object::toString).collect(Collectors.joining("/"));
    boolean fits =
        !key.isBlank()
            && key.getBytes(StandardCharsets.UTF_8).length <= OutboxMessage.MAX_NAME_BYTES
            && key.chars().noneMatch(Character::isISOControl);
    return fits ? key : Hashes.of(List.of(key));
  }
}
