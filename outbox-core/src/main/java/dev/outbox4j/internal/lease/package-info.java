/** Keeps alive what is leased. Owned by the lease keeper. */
@NullMarked
package dev.outbox4j.internal.lease;

import org.jspecify.annotations.NullMarked;
