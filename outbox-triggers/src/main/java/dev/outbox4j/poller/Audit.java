package dev.outbox4j.poller;

import dev.outbox4j.poller.internal.Checks;
import java.util.OptionalLong;

/**
 * Who does something to a poller, and why; it is kept in the poller's history.
 *
 * @param by who, not blank and at most 2,000 bytes in UTF-8
 * @param reason why, not blank and at most 2,000 bytes in UTF-8
 * @param expectedVersion the version that the poller must have; empty for any
 */
public record Audit(String by, String reason, OptionalLong expectedVersion) {
  private static final int MAX_BYTES = 2_000;

  /** Refuses what is blank or too long. */
  public Audit {
    Checks.words("by", by, MAX_BYTES);
    Checks.words("reason", reason, MAX_BYTES);
  }

  /**
   * Says who and why.
   *
   * @param by who
   * @param reason why
   * @return the same, for a poller of any version
   * @throws IllegalArgumentException if a text is blank, has a NUL or is too long
   */
  public static Audit of(String by, String reason) {
    return new Audit(by, reason, OptionalLong.empty());
  }

  /**
   * Says which version was looked at, so that nothing is done to a poller that somebody has changed
   * meanwhile.
   *
   * @param version {@link PollerStatus#version()}
   * @return one that differs in this
   */
  public Audit expecting(long version) {
    return new Audit(by, reason, OptionalLong.of(version));
  }
}
