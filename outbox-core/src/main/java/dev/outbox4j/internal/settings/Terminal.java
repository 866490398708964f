package dev.outbox4j.internal.settings;

/**
 * Marks what a handler of the library's own throws so that its message fails for good: no retry
 * policy is asked, whoever has set it.
 */
public interface Terminal {}
