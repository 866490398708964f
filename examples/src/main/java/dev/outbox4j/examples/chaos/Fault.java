package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.FaultyProxy.Way;
import dev.outbox4j.examples.chaos.FaultyProxy.Weather;
import java.util.Locale;
import java.util.Optional;

/** What the harness does to the processes, the server and the network, one at a time. */
enum Fault {
  KILL_SUBSCRIBER(Hits.ONE),
  KILL_PUBLISHER(Hits.NOBODY),
  FREEZE_SUBSCRIBER(Hits.ONE),
  ROLLING_RESTART(Hits.NOBODY),
  DEAD_POOL(Hits.ALL),
  TERMINATE_CONNECTIONS(Hits.ALL),
  CRASH_SERVER(Hits.ALL),
  CUT_NETWORK(Weather.CUT, Way.BOTH, 3),
  CUT_TO_SERVER(Weather.CUT, Way.TO_SERVER, 3),
  CUT_FROM_SERVER(Weather.CUT, Way.FROM_SERVER, 3),
  BLACK_HOLE_NETWORK(Weather.BLACK_HOLE, Way.BOTH, 8),
  BLACK_HOLE_TO_SERVER(Weather.BLACK_HOLE, Way.TO_SERVER, 8),
  BLACK_HOLE_FROM_SERVER(Weather.BLACK_HOLE, Way.FROM_SERVER, 8),
  SLOW_NETWORK(Weather.SLOW, Way.BOTH, 4),
  SLOW_TO_SERVER(Weather.SLOW, Way.TO_SERVER, 4),
  SLOW_FROM_SERVER(Weather.SLOW, Way.FROM_SERVER, 4),
  CUT_LISTEN(Hits.NOBODY),
  BLACK_HOLE_LISTEN(Hits.NOBODY),
  DROP_DEAD_LETTERS(Hits.NOBODY),
  ALTER_DEAD_LETTERS(Hits.NOBODY),
  BROKEN_DEAD_LETTERS(Hits.NOBODY),
  DROP_COLUMN(Hits.ALL);

  /** Whose messages may have a second effect by it. */
  enum Hits {
    NOBODY,
    ONE,
    ALL
  }

  /** What happens to the network between the processes and the server, and for how long. */
  record Disturbance(Weather weather, Way way, int seconds) {}

  private final Hits hits;
  private final Weather weather;
  private final Way way;
  private final int seconds;

  Fault(Hits hits) {
    this(hits, Weather.FINE, Way.BOTH, 0);
  }

  Fault(Weather weather, Way way, int seconds) {
    this(Hits.ALL, weather, way, seconds);
  }

  Fault(Hits hits, Weather weather, Way way, int seconds) {
    this.hits = hits;
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

  Hits hits() {
    return hits;
  }

  /** The network's part in it, if that is all there is to it. */
  Optional<Disturbance> network() {
    return weather == Weather.FINE
        ? Optional.empty()
        : Optional.of(new Disturbance(weather, way, seconds));
  }
}
