/**
 * The store behind {@link dev.outbox4j.test.InMemoryOutbox}; needs the core alone, whose own tests
 * compile it too. Not API: anything here may change in any release.
 */
@NullMarked
package dev.outbox4j.test.internal;

import org.jspecify.annotations.NullMarked;
