package dev.outbox4j.postgres;

import java.util.OptionalLong;

/**
 * What became of a message that was published. It lives only if the caller's transaction commits.
 *
 * @param rowId the new row's id; empty if a live row of the same queue and timer id made it
 *     unnecessary
 */
public record Published(OptionalLong rowId) {

  /** Tells whether a live row of the same queue and timer id made the message unnecessary. */
  public boolean deduplicated() {
    return rowId.isEmpty();
  }
}
