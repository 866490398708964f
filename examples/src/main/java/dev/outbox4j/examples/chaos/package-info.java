/**
 * A fault harness that anyone can run: processes that publish and subscribe, one PostgreSQL behind
 * a faulty network, faults by name at random, and a ledger that tells what was committed, handled
 * and dead-lettered. {@link dev.outbox4j.examples.chaos.Chaos} runs it and writes the report.
 */
@NullMarked
package dev.outbox4j.examples.chaos;

import org.jspecify.annotations.NullMarked;
