package dev.outbox4j.monitor;

import java.util.Optional;

/**
 * Why an instance has failed.
 *
 * @param type the class of what was thrown; empty if the check itself said so, or its message
 *     became a dead letter
 * @param message what was said of it
 * @param stack the head of the stack trace, if something was thrown
 * @param attempts how many attempts at the check there were
 */
public record MonitorFailure(
    Optional<String> type, String message, Optional<String> stack, int attempts) {}
