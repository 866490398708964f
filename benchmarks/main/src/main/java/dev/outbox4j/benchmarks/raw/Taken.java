package dev.outbox4j.benchmarks.raw;

/**
 * Rows of one claim.
 *
 * @param ids their ids
 * @param tokens their fences; empty where there is none
 * @param payloads their payloads
 */
@SuppressWarnings("ArrayRecordComponent") // short-lived, never compared
record Taken(Long[] ids, Long[] tokens, byte[][] payloads) {}
