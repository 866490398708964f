package dev.outbox4j.postgres.internal;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.nio.charset.StandardCharsets;
import java.time.ZoneOffset;
import org.jooq.tools.json.JSONObject;

/** Puts rows into a test's outbox without a publisher. */
final class Rows {
  private Rows() {}

  /** Inserts a message whose body is a String or a Payload, and returns the row's id. */
  static long insert(TestDatabase database, OutboxMessage message) {
    return database.one(
        Long.class,
        """
        insert into outbox (queue, type, ordering_key, timer_id, payload, headers, available_at)
        values (?, ?, ?, ?, ?, ?::jsonb,
          coalesce(?, clock_timestamp() + make_interval(secs => ?)))
        returning id
        """,
        message.queue(),
        message.type().orElse(null),
        message.orderingKey().orElse(null),
        message.timerId().orElse(null),
        bytes(message.body()),
        JSONObject.toJSONString(message.headers()),
        message.deliverAt().map(at -> at.atOffset(ZoneOffset.UTC)).orElse(null),
        message.deliverIn().map(in -> in.toMillis() / 1000.0).orElse(0.0));
  }

  private static byte[] bytes(Object body) {
    return body instanceof Payload payload
        ? payload.bytes()
        : ((String) body).getBytes(StandardCharsets.UTF_8);
  }

  /** Inserts many rows that were due a moment ago, in order of id. */
  static void fill(TestDatabase database, String table, String queue, int count) {
    fill(database, table, queue, count, 256);
  }

  static void fill(TestDatabase database, String table, String queue, int count, int payload) {
    database.update(
        "insert into "
            + table
            + " (queue, type, payload, headers, available_at)"
            + " select ?, 'order.placed', decode(repeat('ab', ?), 'hex'),"
            + " '{\"content-type\": \"application/json\"}',"
            + " clock_timestamp() - interval '1 minute' from generate_series(1, ?)",
        queue,
        payload,
        count);
  }
}
