/** DBOS Transact as a contestant. */
@NullMarked
package dev.outbox4j.benchmarks.dbos;

import org.jspecify.annotations.NullMarked;
