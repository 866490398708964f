package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.FaultyProxy.Way;
import dev.outbox4j.examples.chaos.FaultyProxy.Weather;
import java.util.Locale;
import java.util.Optional;

/** What the harness does to the processes, the server and the network, one at a time. */
enum Fault {
  KILL_SUBSCRIBER,
  KILL_PUBLISHER,
  FREEZE_SUBSCRIBER,
  ROLLING_RESTART,
  DEAD_POOL,
  TERMINATE_CONNECTIONS,
  CRASH_SERVER,
  CUT_NETWORK(Weather.CUT, Way.BOTH, 3),
  CUT_TO_SERVER(Weather.CUT, Way.TO_SERVER, 3),
  CUT_FROM_SERVER(Weather.CUT, Way.FROM_SERVER, 3),
  BLACK_HOLE_NETWORK(Weather.BLACK_HOLE, Way.BOTH, 8),
  BLACK_HOLE_TO_SERVER(Weather.BLACK_HOLE, Way.TO_SERVER, 8),
  BLACK_HOLE_FROM_SERVER(Weather.BLACK_HOLE, Way.FROM_SERVER, 8),
  SLOW_NETWORK(Weather.SLOW, Way.BOTH, 4),
  SLOW_TO_SERVER(Weather.SLOW, Way.TO_SERVER, 4),
  SLOW_FROM_SERVER(Weather.SLOW, Way.FROM_SERVER, 4),
  CUT_LISTEN,
  BLACK_HOLE_LISTEN,
  DROP_DEAD_LETTERS,
  ALTER_DEAD_LETTERS,
  BROKEN_DEAD_LETTERS,
  DROP_COLUMN;

  /** What happens to the network between the processes and the server, and for how long. */
  record Disturbance(Weather weather, Way way, int seconds) {}

  private final Weather weather;
  private final Way way;
  private final int seconds;

  Fault() {
    this(Weather.FINE, Way.BOTH, 0);
  }

  Fault(Weather weather, Way way, int seconds) {
    this.weather = weather;
    this.way = way;
    this.seconds = seconds;
  }

  static Fault named(String name) {
    return valueOf(name.strip().toUpperCase(Locale.ROOT).replace('-', '_'));
  }

  String label() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  /** The network's part in it, if that is all there is to it. */
  Optional<Disturbance> network() {
    return weather == Weather.FINE
        ? Optional.empty()
        : Optional.of(new Disturbance(weather, way, seconds));
  }
}
