package dev.outbox4j.postgres;

import java.util.OptionalLong;

/**
 * What became of a message that was published. It lives only if the caller's transaction commits.
 *
 * @param rowId the new row's id; empty if a live row of the same queue and timer id, or a message
 *     of the same queue and dedup key, made it unnecessary
 */
public record Published(OptionalLong rowId) {

  /** Tells whether a message of the same timer id or dedup key made this one unnecessary. */
  public boolean deduplicated() {
    return rowId.isEmpty();
  }
}
