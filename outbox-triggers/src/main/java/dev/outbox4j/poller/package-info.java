/**
 * Table pollers: they call a handler with each row of a table that was inserted or changed. {@link
 * dev.outbox4j.poller.Poller} defines one, {@link dev.outbox4j.poller.Pollers} runs them, and
 * {@link dev.outbox4j.poller.PollerControl} shows and controls them.
 */
@NullMarked
package dev.outbox4j.poller;

import org.jspecify.annotations.NullMarked;
