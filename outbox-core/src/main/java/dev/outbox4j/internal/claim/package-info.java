/** Finds and leases rows: where to look, how much to take, when to sleep. Owned by the fetcher. */
@NullMarked
package dev.outbox4j.internal.claim;

import org.jspecify.annotations.NullMarked;
