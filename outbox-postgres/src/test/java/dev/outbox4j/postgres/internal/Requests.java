package dev.outbox4j.postgres.internal;

import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.Range;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import java.time.Duration;
import java.util.List;

/** Claims as tests make them. */
final class Requests {
  static final Duration LEASE = Duration.ofSeconds(60);
  static final long MAX_BYTES = 1L << 30;

  private Requests() {}

  static ClaimRequest claim(String queue, int limit, Idle idle) {
    return claim("me", queue, Range.ALL, limit, idle);
  }

  static ClaimRequest claim(String owner, String queue, Range range, int limit, Idle idle) {
    return new ClaimRequest(queue, range, limit, MAX_BYTES, LEASE, owner, idle, null);
  }

  /** Claims from queue orders. */
  static List<LeaseRef> claim(OutboxStore store, int limit) {
    return leases(store, claim("orders", limit, Idle.UNCHANGED));
  }

  static List<LeaseRef> leases(OutboxStore store, ClaimRequest request) {
    return store.claim(request).rows().stream().map(ClaimedRow::lease).toList();
  }
}
