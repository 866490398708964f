package dev.outbox4j.postgres.internal;

import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimedRow;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The largest payload that each queue has brought lately, so that payloads are measured on the
 * server only where they may be too many: that costs a claim some percent. Thread-safe.
 */
final class PayloadSizes {
  /** How many times larger the next payloads may be without being noticed. */
  private static final long MARGIN = 4;

  private final Map<String, Long> largest = new ConcurrentHashMap<>();

  /** Tells whether a claim may bring more bytes than it asks for. */
  boolean mayExceed(ClaimRequest request) {
    Long size = largest.get(request.queue());
    return size == null || size > request.maxBytes() / MARGIN / request.limit();
  }

  /** What was seen before counts a little less with each claim. */
  void saw(String queue, List<ClaimedRow> rows) {
    if (rows.isEmpty()) {
      return;
    }
    long size = rows.stream().mapToLong(row -> row.message().payload().size()).max().orElse(0);
    largest.merge(queue, size, (before, now) -> Math.max(now, before - before / 8));
  }
}
