/** Retry policies from resilience4j's configuration. Needs {@code resilience4j-retry}. */
@NullMarked
package dev.outbox4j.resilience4j;

import org.jspecify.annotations.NullMarked;
