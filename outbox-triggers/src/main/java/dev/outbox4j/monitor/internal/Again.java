package dev.outbox4j.monitor.internal;

import org.jspecify.annotations.Nullable;

/**
 * What a check writes that says nothing but when to look again, and leaves what it has found: a row
 * of a group.
 *
 * @param instance the instance as the check was given it
 * @param result what the check has said
 * @param trims whether its history is trimmed
 */
record Again(Instance instance, CheckResult result, boolean trims) {
  /** One that has more to say goes by itself, so that a group is sent soon. */
  private static final int MOST_CHARS = 16 * 1024;

  /** {@return whether it may be one of a group} */
  boolean fits() {
    return result.messages().isEmpty()
        && instance.unseen() == 0
        && !instance.hasExpiredSince() // it ends by that
        && instance.attempts() == 0 // its values may be what is at fault, for all of a group
        && length(result.state()) + length(result.customStatus()) <= MOST_CHARS;
  }

  private static int length(@Nullable String text) {
    return text == null ? 0 : text.length();
  }
}
