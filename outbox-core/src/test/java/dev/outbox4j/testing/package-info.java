/**
 * Fixtures for tests of subscribers and stores: the store of {@code outbox-test} with faults, a
 * contract.
 */
@NullMarked
package dev.outbox4j.testing;

import org.jspecify.annotations.NullMarked;
