package dev.outbox4j.examples.monitor;

/**
 * What a check has seen.
 *
 * @param openIssues how many open issues there were
 */
record OpenIssues(int openIssues) {}
