package dev.outbox4j.postgres.internal;

import dev.outbox4j.Payload;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.History;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.StoredMessage;
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
      Comparator.<ClaimedRow, Instant>comparing(row -> row.message().availableAt())
          .thenComparingLong(row -> row.lease().id());

  private final String queue;
  private final Instant now;
  // one copy of what repeats within a batch
  private final Map<String, String> types = new HashMap<>();

  private RowReader(String queue, Instant now) {
    this.queue = queue;
    this.now = now;
  }

  /**
   * The rows of a claim.
   *
   * @param rows in the order of due instant and id
   * @param picked how many were found, also those that were not leased after all
   * @param slots how many slots were free, of as many as were asked for; negative if none is needed
   */
  record Rows(List<ClaimedRow> rows, int picked, int slots) {
    /**
     * Tells whether more rows might have been leased, had more slots been free; not if some were
     * left out for their size.
     */
    boolean outOfSlots(int asked) {
      boolean allTaken = rows.size() >= slots || rows.isEmpty();
      return slots >= 0 && slots < asked && picked >= slots && allTaken;
    }
  }

  /** Reads all rows of a queue; those of a measured claim say how many were picked. */
  static Rows read(ResultSet rows, String queue, Instant now, boolean measured)
      throws SQLException {
    RowReader reader = new RowReader(queue, now);
    List<ClaimedRow> claimed = new ArrayList<>();
    int picked = 0;
    while (rows.next()) {
      claimed.add(reader.row(rows));
      picked = measured ? rows.getInt(14) : claimed.size();
    }
    claimed.sort(DUE); // returning has no order of its own
    return new Rows(claimed, picked, -1);
  }

  /** Reads the rows of a claim in slots, which gives one row without values if it leased none. */
  static Rows readInSlots(ResultSet rows, String queue, Instant now) throws SQLException {
    RowReader reader = new RowReader(queue, now);
    List<ClaimedRow> claimed = new ArrayList<>();
    int picked = 0;
    int slots = 0;
    while (rows.next()) {
      picked = rows.getInt(14);
      slots = rows.getInt(15);
      if (rows.getObject(1) != null) {
        claimed.add(reader.row(rows));
      }
    }
    claimed.sort(DUE);
    return new Rows(claimed, picked, slots);
  }

  private ClaimedRow row(ResultSet row) throws SQLException {
    Instant createdAt = ServerTime.read(row, 8);
    Instant firstAttemptAt = ServerTime.readNullable(row, 12);
    return new ClaimedRow(
        new LeaseRef(queue, row.getLong(1), row.getLong(2)),
        new StoredMessage(
            shared(row.getString(3)),
            row.getString(4),
            row.getString(5),
            Payload.wrap(row.getBytes(6)),
            JsonHeaders.of(row.getString(7)),
            createdAt,
            ServerTime.read(row, 9),
            ServerTime.readNullable(row, 13)),
        new History(
            row.getInt(10),
            row.getInt(11),
            firstAttemptAt == null ? Duration.ZERO : ServerTime.between(firstAttemptAt, now),
            ServerTime.between(createdAt, now)));
  }

  private @Nullable String shared(@Nullable String type) {
    return type == null ? null : types.computeIfAbsent(type, same -> same);
  }
}
