/**
 * What a contestant is, and the process that runs one. A contestant's process is told what to do
 * line by line on its standard input, and answers with numbers on its standard output.
 */
@NullMarked
package dev.outbox4j.benchmarks.spi;

import org.jspecify.annotations.NullMarked;
