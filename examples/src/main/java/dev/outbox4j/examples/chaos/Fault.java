package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.FaultyProxy.Way;
import dev.outbox4j.examples.chaos.FaultyProxy.Weather;
import java.time.Duration;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** What the harness does to the processes, the server and the network, one at a time. */
enum Fault {
  KILL_SUBSCRIBER(Hits.ONE),
  KILL_PUBLISHER(Hits.NOBODY),
  FREEZE_SUBSCRIBER(Hits.ONE),
  ROLLING_RESTART(Hits.NOBODY),
  SLOW_HANDLERS(Hits.NOBODY),
  DEAD_POOL(Hits.ALL),
  TERMINATE_CONNECTIONS(Hits.ALL),
  CRASH_SERVER(Hits.ALL),
  KILL_BACKEND(Hits.ALL),
  LOCK_TABLES(Hits.ALL),
  EXHAUST_SLOTS(Hits.ALL),
  MOVE_SERVER(Hits.ALL),
  /** A synchronous one, while the former primary goes on, read-only. */
  PROMOTE_REPLICA(Hits.ALL),
  FILL_DISK(Hits.ALL),
  SERVER_TIMEOUTS(Hits.ALL),
  JUMP_CLOCK(Hits.ALL),
  HOLD_HORIZON(Hits.NOBODY),
  PAUSE_POOLER(Hits.ALL),
  RESTART_POOLER(Hits.ALL),
  CUT_NETWORK(Weather.CUT, Way.BOTH, Length.BRIEF),
  CUT_TO_SERVER(Weather.CUT, Way.TO_SERVER, Length.BRIEF),
  CUT_FROM_SERVER(Weather.CUT, Way.FROM_SERVER, Length.BRIEF),
  LONG_CUT(Weather.CUT, Way.BOTH, Length.LONG),
  BLACK_HOLE_NETWORK(Weather.BLACK_HOLE, Way.BOTH, Length.LONG),
  BLACK_HOLE_TO_SERVER(Weather.BLACK_HOLE, Way.TO_SERVER, Length.LONG),
  BLACK_HOLE_FROM_SERVER(Weather.BLACK_HOLE, Way.FROM_SERVER, Length.LONG),
  SLOW_NETWORK(Weather.SLOW, Way.BOTH, Length.USUAL),
  SLOW_TO_SERVER(Weather.SLOW, Way.TO_SERVER, Length.USUAL),
  SLOW_FROM_SERVER(Weather.SLOW, Way.FROM_SERVER, Length.USUAL),
  CUT_LISTEN(Hits.NOBODY),
  BLACK_HOLE_LISTEN(Hits.NOBODY),
  /** For so long that only polls bring what comes to those who sleep. */
  LONG_CUT_LISTEN(Hits.NOBODY),
  DROP_DEAD_LETTERS(Hits.NOBODY),
  ALTER_DEAD_LETTERS(Hits.NOBODY),
  BROKEN_DEAD_LETTERS(Hits.NOBODY),
  DROP_COLUMN(Hits.ALL),
  TWO_AT_ONCE(Hits.ALL),
  /** Nothing is done: what sleeps must be woken in time. */
  CALM(Hits.NOBODY);

  /** Whose messages may have a second effect by it. */
  enum Hits {
    NOBODY,
    ONE,
    ALL
  }

  /** How long it lasts, beside a lease of 5 s that is renewed at its half. */
  enum Length {
    BRIEF(Duration.ofMillis(1_500)),
    USUAL(Duration.ofSeconds(4)),
    LONG(Duration.ofSeconds(8)),
    CALM(Duration.ofSeconds(20));

    private final Duration time;

    Length(Duration time) {
      this.time = time;
    }

    Duration time() {
      return time;
    }
  }

  /** What happens to the network between the processes and the server, and for how long. */
  record Disturbance(Weather weather, Way way, Duration time) {}

  /** What no lease that is renewed in time can run out by. */
  private static final Set<Fault> BRIEF =
      EnumSet.of(
          DEAD_POOL,
          TERMINATE_CONNECTIONS,
          CUT_NETWORK,
          CUT_TO_SERVER,
          CUT_FROM_SERVER,
          SLOW_NETWORK,
          SLOW_TO_SERVER,
          SLOW_FROM_SERVER);

  private final Hits hits;
  private final Weather weather;
  private final Way way;
  private final Length length;

  Fault(Hits hits) {
    this(hits, Weather.FINE, Way.BOTH, Length.USUAL);
  }

  Fault(Weather weather, Way way, Length length) {
    this(Hits.ALL, weather, way, length);
  }

  Fault(Hits hits, Weather weather, Way way, Length length) {
    this.hits = hits;
    this.weather = weather;
    this.way = way;
    this.length = length;
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

  /** Tells whether no lease that is renewed in time can run out by it. */
  boolean brief() {
    return BRIEF.contains(this);
  }

  /** The brief ones, as an array of SQL. */
  static String briefOnes() {
    return BRIEF.stream().map(Fault::label).collect(Collectors.joining(",", "{", "}"));
  }

  /**
   * All that leases may run out by, a machine that stands still and a pooler that is silent
   * included, as an array of SQL.
   */
  static String thatLeasesMayEndBy() {
    return Stream.concat(
            Arrays.stream(values()).filter(fault -> !fault.brief()).map(Fault::label),
            Stream.of(Pulse.FAULT, PoolerPulse.FAULT))
        .collect(Collectors.joining(",", "{", "}"));
  }

  /** The network's part in it, if that is all there is to it. */
  Optional<Disturbance> network() {
    return weather == Weather.FINE
        ? Optional.empty()
        : Optional.of(new Disturbance(weather, way, length.time()));
  }
}
