/**
 * Fixtures for tests of subscribers and stores: an in-memory store, a settable clock, a contract.
 */
@NullMarked
package dev.outbox4j.testing;

import org.jspecify.annotations.NullMarked;
