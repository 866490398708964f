package dev.outbox4j.poller.internal;

import dev.outbox4j.postgres.OutboxTable;
import java.util.List;

/**
 * What the sessions of a poller's transactional handlers are called while they have a transaction
 * open: so that whoever takes the poller over from a node that stands still finds what that has
 * left open, and so that people know whose it is. Immutable.
 */
final class HandlerSessions {
  /** What PostgreSQL keeps of a name. */
  private static final int MOST_BYTES = 63;

  private static final int HASH_DIGITS = 16;

  private final String prefix;
  private final String poller;

  HandlerSessions(OutboxTable table, String application, String poller) {
    String hash = Hashes.of(List.of(table.toString(), application, poller));
    this.prefix = "poller " + hash.substring(0, HASH_DIGITS) + " ";
    this.poller = poller;
  }

  /** The name by a token, of characters that PostgreSQL keeps. */
  String name(long token) {
    String name = prefix + token + " " + poller.replaceAll("[^A-Za-z0-9._/:-]", "_");
    return name.length() <= MOST_BYTES ? name : name.substring(0, MOST_BYTES);
  }

  /** A regular expression that such names match, by any token, which is their third word. */
  String pattern() {
    return "^" + prefix + "[0-9]{1,18} ";
  }
}
