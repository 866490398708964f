/**
 * A queue of jobs: the taste of a user is analysed by what the user likes; made to be copied.
 * {@link dev.outbox4j.examples.jobs.TasteQueue} defines the queue, {@link
 * dev.outbox4j.examples.jobs.TasteService} enqueues, {@link
 * dev.outbox4j.examples.jobs.TasteHandler} does the work, {@link
 * dev.outbox4j.examples.jobs.DeadLetterConsumer} looks at what has failed for good, {@link
 * dev.outbox4j.examples.jobs.TasteApplication} puts all together. {@link
 * dev.outbox4j.examples.jobs.TasteExample} lets all go wrong that can, and accounts for each job.
 */
@NullMarked
package dev.outbox4j.examples.jobs;

import org.jspecify.annotations.NullMarked;
