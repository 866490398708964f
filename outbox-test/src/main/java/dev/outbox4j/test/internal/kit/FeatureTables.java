package dev.outbox4j.test.internal.kit;

import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.internal.schema.Place;
import java.util.List;
import java.util.stream.Stream;

/** The tables beside an outbox, of features that a service may use or not, and that tests fill. */
public final class FeatureTables {
  private static final List<Place> OF_WORK =
      List.of(
          Place.DEDUP,
          Place.PAUSES,
          Place.TIMER_RUNS,
          Place.MONITORS,
          Place.MONITOR_EVENTS,
          Place.JOBS,
          Place.JOB_ENDS,
          Place.POLLER_HISTORY,
          Place.POLLER_QUARANTINE);

  private static final List<Place> OF_PROCESSES =
      List.of(Place.SLEEPERS, Place.TIMERS, Place.LOCKS, Place.POLLERS);

  private FeatureTables() {}

  /**
   * Returns those that hold what was done and what is to be done.
   *
   * @param schema the outbox's
   * @param outbox its table
   * @return their names, for statements
   */
  public static Stream<String> ofWork(String schema, String outbox) {
    return named(OF_WORK, schema, outbox);
  }

  /**
   * Returns those in which processes are noted that run: one that is forgotten does not go on.
   *
   * @param schema the outbox's
   * @param outbox its table
   * @return their names, for statements
   */
  public static Stream<String> ofProcesses(String schema, String outbox) {
    return named(OF_PROCESSES, schema, outbox);
  }

  /**
   * Returns the dead letters, and what is beside them.
   *
   * @param schema where they are
   * @param deadLetters their table
   * @return the names, for statements
   */
  public static Stream<String> ofDeadLetters(String schema, String deadLetters) {
    return Stream.of(Place.DEAD_LETTERS, Place.DEAD_LETTER_TRIPS, Place.DEAD_LETTER_AUDIT)
        .map(place -> Names.qualified(schema, Names.ofDeadLetters(place, deadLetters)));
  }

  private static Stream<String> named(List<Place> places, String schema, String outbox) {
    return places.stream().map(place -> Names.qualified(schema, Names.of(place, outbox)));
  }
}
