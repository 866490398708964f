/**
 * Locks: at most one holder at a time over all processes, each with a token that only grows.
 *
 * <p>{@link dev.outbox4j.lock.Locks} is the entry point.
 */
@NullMarked
package dev.outbox4j.lock;

import org.jspecify.annotations.NullMarked;
