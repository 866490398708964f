package dev.outbox4j.postgres.internal.schema;

import dev.outbox4j.postgres.SchemaFault;
import java.util.List;

/** Looks at the server and at what holds for sessions of this data source. */
final class SessionComparison {
  private static final int OLDEST = 130_000;

  private final List<SchemaFault> faults;

  SessionComparison(List<SchemaFault> faults) {
    this.faults = faults;
  }

  void compare(Live.Session session) {
    if (session.serverVersion() < OLDEST) {
      faults.add(
          new SchemaFault(
              "server",
              "PostgreSQL 13 or later",
              "version " + session.serverVersion() / 10_000,
              "upgrade the server"));
    }
    if (session.inRecovery()) {
      faults.add(
          new SchemaFault(
              "server",
              "a server that can be written to",
              "a standby in recovery",
              "connect to the primary; after a switchover, let the pool open new connections"));
    } else if (session.readOnly()) {
      faults.add(
          new SchemaFault(
              "session",
              "transactions that may write",
              "read-only transactions",
              "set default_transaction_read_only to off for the database and the role, and read-only to false in the pool"));
    }
  }
}
