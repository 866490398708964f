/** What PostgreSQL can do without any library: the limits, and the shapes of other queues. */
@NullMarked
package dev.outbox4j.benchmarks.raw;

import org.jspecify.annotations.NullMarked;
