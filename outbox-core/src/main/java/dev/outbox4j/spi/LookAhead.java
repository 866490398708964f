package dev.outbox4j.spi;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * What an idle claimer learns along with a claim.
 *
 * @param nextDueIn when the next row falls due, from now, or, if the claim looked at the whole
 *     queue, the next lease on a row that is due runs out; null if there is none. A hint: it may
 *     leave leases out
 * @param watch who is notified for this queue, after this claim
 * @param mark stands for the transactions that had begun when this claim looked; 0 unless {@link
 *     ClaimRequest.Idle#NEW_MARK} was asked for
 * @param settled true if a mark was given with the request and every transaction it stands for has
 *     ended, so that the claim has seen what they committed
 */
public record LookAhead(@Nullable Duration nextDueIn, Watch watch, long mark, boolean settled) {

  /** Who of a queue's subscribers is on watch: the one that publishers notify. */
  public enum Watch {
    /** The claimer. */
    MINE,
    /** Another subscriber. */
    TAKEN,
    /** Nobody. */
    VACANT
  }
}
