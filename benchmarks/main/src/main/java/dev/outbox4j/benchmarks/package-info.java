/** The lanes: {@link dev.outbox4j.benchmarks.Benchmarks} runs them. */
@NullMarked
package dev.outbox4j.benchmarks;

import org.jspecify.annotations.NullMarked;
