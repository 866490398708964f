package dev.outbox4j.poller.internal;

import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A transaction that is open in the source's database.
 *
 * @param id its virtual transaction id, or the id of a prepared one
 * @param process the server's process; 0 for a prepared one
 * @param application the application's name, where it may be seen
 * @param began when it began, where that may be seen
 */
record OpenTransaction(
    String id, int process, @Nullable String application, @Nullable Instant began) {}
