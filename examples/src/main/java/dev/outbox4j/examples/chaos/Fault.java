package dev.outbox4j.examples.chaos;

import java.util.Locale;

/** What the harness does to the processes, the server and the network, one at a time. */
enum Fault {
  KILL_SUBSCRIBER,
  KILL_PUBLISHER,
  FREEZE_SUBSCRIBER,
  TERMINATE_CONNECTIONS,
  CRASH_SERVER,
  CUT_NETWORK,
  BLACK_HOLE_NETWORK,
  SLOW_NETWORK,
  BLACK_HOLE_LISTEN,
  DROP_DEAD_LETTERS,
  ALTER_DEAD_LETTERS,
  DROP_COLUMN,
  ROLLING_RESTART;

  static Fault named(String name) {
    return valueOf(name.strip().toUpperCase(Locale.ROOT).replace('-', '_'));
  }

  String label() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
