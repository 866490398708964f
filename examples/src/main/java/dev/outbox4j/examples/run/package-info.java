/**
 * What the programs of the examples share: a {@linkplain dev.outbox4j.examples.run.ExampleDatabase
 * database} to run on, a way to {@linkplain dev.outbox4j.examples.run.Waits wait}, and the
 * {@linkplain dev.outbox4j.examples.run.Report report} of what was reconciled.
 */
@NullMarked
package dev.outbox4j.examples.run;

import org.jspecify.annotations.NullMarked;
