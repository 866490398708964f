package dev.outbox4j.spi;

import java.time.Instant;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What a claim gave.
 *
 * @param rows the rows now leased to the claimer, in order of due instant and id
 * @param full true if the claim ended at its limit of rows or bytes, so that more may be due
 * @param lookAhead what comes next; null unless the request asked for it
 * @param at the server's time when it looked
 * @param refused ids of due rows whose lease the server refuses to write, such as by a trigger that
 *     raises; they are left alone
 * @param refusedUpTo the highest place of them, so that the next claim goes on behind it; null if
 *     there is none
 * @param outOfSlots true if it ended where all {@link ClaimRequest#slots()} were taken, so that
 *     more may be due; it is {@code full} then, too
 */
public record ClaimResult(
    List<ClaimedRow> rows,
    boolean full,
    @Nullable LookAhead lookAhead,
    Instant at,
    Set<Long> refused,
    @Nullable ScanBound refusedUpTo,
    boolean outOfSlots) {

  /** Copies the collections. */
  public ClaimResult {
    rows = List.copyOf(rows);
    refused = Set.copyOf(refused);
  }

  /**
   * A claim in which no row was refused.
   *
   * @param rows the rows now leased to the claimer, in order of due instant and id
   * @param full true if the claim ended at its limit of rows or bytes
   * @param lookAhead what comes next; null unless the request asked for it
   * @param at the server's time when it looked
   */
  public ClaimResult(
      List<ClaimedRow> rows, boolean full, @Nullable LookAhead lookAhead, Instant at) {
    this(rows, full, lookAhead, at, Set.of(), null, false);
  }
}
