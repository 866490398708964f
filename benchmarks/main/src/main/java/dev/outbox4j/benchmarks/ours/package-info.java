/** Outbox4j itself as a contestant. */
@NullMarked
package dev.outbox4j.benchmarks.ours;

import org.jspecify.annotations.NullMarked;
