package dev.outbox4j.spi;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * What an idle claimer learns along with an empty claim.
 *
 * @param nextDueIn when the next row falls due, from now, or, if the claim was a sweep, the next
 *     lease on a row that is due runs out; null if there is none. A hint: it may leave leases out
 * @param oldestTransaction the oldest transaction that was still open before the claim looked; what
 *     older ones committed, the claim has seen
 * @param nextTransaction greater than the id of every transaction that had one when the claim
 *     began; once another claim tells an oldest transaction that is not below it, all of them are
 *     over
 */
public record LookAhead(
    @Nullable Duration nextDueIn, long oldestTransaction, long nextTransaction) {}
