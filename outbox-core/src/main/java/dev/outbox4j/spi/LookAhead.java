package dev.outbox4j.spi;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * What an idle claimer learns along with an empty claim.
 *
 * @param nextDueIn when the next row falls due, from now; null if none is waiting
 * @param oldestTransaction the oldest transaction that was still open (a snapshot's xmin)
 * @param nextTransaction the first transaction id not given out yet (a snapshot's xmax)
 */
public record LookAhead(
    @Nullable Duration nextDueIn, long oldestTransaction, long nextTransaction) {}
