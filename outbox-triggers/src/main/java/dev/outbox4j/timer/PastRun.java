package dev.outbox4j.timer;

import java.time.Instant;

/**
 * A run that has ended.
 *
 * @param instant the one it was for
 * @param status how it ended
 * @param started when its first attempt began
 * @param ended when it ended
 */
public record PastRun(Instant instant, RunStatus status, Instant started, Instant ended) {}
