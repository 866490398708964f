package dev.outbox4j.timer.internal;

import dev.outbox4j.timer.RunStatus;

/**
 * A run that a tick has ended.
 *
 * @param timer the name of its timer
 * @param status how it has ended
 */
public record EndedRun(String timer, RunStatus status) {}
