package dev.outbox4j.postgres.internal;

import dev.outbox4j.Payload;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.LeaseRef;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Reads claimed rows. Nothing in a row's values can make it fail, whoever wrote them. */
final class RowReader {
  private static final Comparator<ClaimedRow> DUE =
      Comparator.comparing(ClaimedRow::availableAt).thenComparingLong(row -> row.lease().id());

  private RowReader() {}

  /** Reads all rows, in the order of their queues and then of due instant and id. */
  static List<ClaimedRow> read(ResultSet rows, List<String> queues, Instant now)
      throws SQLException {
    Shared shared = new Shared(queues);
    List<ClaimedRow> claimed = new ArrayList<>();
    while (rows.next()) {
      claimed.add(row(rows, now, shared));
    }
    // returning has no order of its own
    claimed.sort(
        queues.size() == 1
            ? DUE
            : Comparator.<ClaimedRow>comparingInt(row -> shared.place(row.lease().queue()))
                .thenComparing(DUE));
    return claimed;
  }

  private static ClaimedRow row(ResultSet row, Instant now, Shared shared) throws SQLException {
    Instant createdAt = ServerTime.read(row, 9);
    Instant firstAttemptAt = ServerTime.readNullable(row, 13);
    return new ClaimedRow(
        new LeaseRef(shared.text(row.getString(3)), row.getLong(1), row.getInt(2)),
        shared.nullable(row.getString(4)),
        row.getString(5),
        row.getString(6),
        Payload.wrap(row.getBytes(7)),
        JsonHeaders.of(row.getString(8)),
        createdAt,
        ServerTime.read(row, 10),
        row.getInt(11),
        row.getInt(12),
        firstAttemptAt == null ? Duration.ZERO : ServerTime.between(firstAttemptAt, now),
        ServerTime.between(createdAt, now));
  }

  /** Keeps one copy of the texts that repeat within a batch. */
  private static final class Shared {
    private final Map<String, Integer> places = new HashMap<>();
    private final Map<String, String> texts = new HashMap<>();

    Shared(List<String> queues) {
      queues.forEach(queue -> places.putIfAbsent(queue, places.size()));
      queues.forEach(queue -> texts.put(queue, queue));
    }

    int place(String queue) {
      return places.getOrDefault(queue, Integer.MAX_VALUE);
    }

    String text(String text) {
      String first = texts.putIfAbsent(text, text);
      return first == null ? text : first;
    }

    @Nullable String nullable(@Nullable String text) {
      return text == null ? null : text(text);
    }
  }
}
