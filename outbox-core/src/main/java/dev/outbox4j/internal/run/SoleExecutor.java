package dev.outbox4j.internal.run;

import java.util.concurrent.Executor;

/**
 * Runs all handlers, also those of a builder that asks for virtual threads: a test kit's, which
 * gets builders that a service has set up.
 */
@FunctionalInterface
public interface SoleExecutor extends Executor {}
