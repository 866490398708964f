package dev.outbox4j.benchmarks.spi;

import java.util.List;
import java.util.stream.IntStream;

/**
 * What several subscribers of one queue have done up to an instant.
 *
 * @param handledByEach messages
 * @param notifications sent, of any kind
 * @param byName those of them that were for one subscriber
 * @param claims of all subscribers
 * @param emptyClaims those of them that brought no row
 */
record HerdCounts(
    List<Long> handledByEach, long notifications, long byName, long claims, long emptyClaims) {

  long handled() {
    return handledByEach.stream().mapToLong(Long::longValue).sum();
  }

  /** Adds what was done since, for each message that was handled since. */
  Numbers since(HerdCounts before, Numbers into) {
    double messages = Math.max(1, handled() - before.handled());
    long busiest =
        IntStream.range(0, handledByEach.size())
            .mapToLong(i -> handledByEach.get(i) - before.handledByEach.get(i))
            .max()
            .orElse(0);
    return into.with("notifications_per_message", (notifications - before.notifications) / messages)
        .with("wakes_by_name_per_message", (byName - before.byName) / messages)
        .with("claims_per_message", (claims - before.claims) / messages)
        .with("empty_claims_per_message", (emptyClaims - before.emptyClaims) / messages)
        .with("busiest_share", busiest / messages);
  }
}
