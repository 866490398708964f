/**
 * Job queues: each job is enqueued once within a time, retried with a budget, kept if it fails for
 * good, and its state can be asked for. {@link dev.outbox4j.job.JobQueue} is the entry point.
 *
 * <p>Everything here is immutable unless it says otherwise.
 */
@NullMarked
package dev.outbox4j.job;

import org.jspecify.annotations.NullMarked;
