package dev.outbox4j.spi;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a claim gave.
 *
 * @param rows the rows now leased to the claimer, in order of due instant and id within their queue
 * @param lookAhead what comes next; null unless the request asked for it
 */
public record ClaimResult(List<ClaimedRow> rows, @Nullable LookAhead lookAhead) {}
