package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Timers of a second each: how late their runs begin, beside other schedulers; and timers of a
 * minute each: how much of a core they keep busy, in the client and the server together, and how
 * much of that the client and its sessions are busy with ticks.
 *
 * <p>Of those of a second each timer has a millisecond of its own, as all contestants can have
 * that. A run ends long before the next instant of its timer, so nothing depends on what a
 * contestant does with an instant that comes while a run lasts.
 */
final class TimersLane implements Lane {
  private static final int FIGURE_RATE = 1000;
  private static final int FIGURE_TIMERS = 10_000;

  private static final int SECOND = 1000;
  private static final int MINUTE = 60 * SECOND;
  private static final int DAY = 24 * 60 * MINUTE;

  /** For so long the compiler takes a processor, of the two that there may be. */
  private static final int WARM_UP_SECONDS = 30;

  private static final int SECONDS = 30;

  /** Whole minutes, so that each timer has as many runs in each round. */
  private static final int MINUTE_IN_SECONDS = 60;

  private static final int MINUTES_TO_WARM_UP = 3;

  @Override
  public String name() {
    return "timers";
  }

  static String cell(int rate) {
    return "timers, %d of one a second, each with its own millisecond".formatted(rate);
  }

  static String minuteCell(int timers, boolean spread) {
    return "timers, %d of one a minute, %s"
        .formatted(timers, spread ? "spread evenly over it" : "all at once");
  }

  /** What they cost beside what is there without them: that of timers of which few are due. */
  static String ticksCell(int timers, boolean due) {
    return "timers, %d of one a %s, spread evenly over it, runs ended each second by one statement"
        .formatted(timers, due ? "minute" : "day");
  }

  @Override
  public void run(Run run) throws SQLException {
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      List<Entrant> all = new ArrayList<>(List.of(Roster.TIMERS, Roster.TIMERS_OF_20_WORKERS));
      if (Rounds.FIRST_THREE.include(round)) {
        all.addAll(Roster.TIMER_PEERS);
      }
      for (int rate : Settings.numbers("rates", "1k")) {
        run.turn(
            cell(rate),
            round,
            Roster.asked(all),
            (entrant, database) ->
                timers(
                    run,
                    entrant,
                    database,
                    "timers %d %d spread".formatted(rate, SECOND),
                    warmUp(entrant, WARM_UP_SECONDS),
                    Settings.number("seconds", SECONDS)));
      }
      if (Rounds.FIRST_THREE.include(round)) {
        for (int timers : Settings.numbers("timers", "10k")) {
          for (boolean spread : new boolean[] {true, false}) {
            run.turn(
                minuteCell(timers, spread),
                round,
                Roster.asked(List.of(Roster.TIMERS)),
                (entrant, database) ->
                    timers(
                        run,
                        entrant,
                        database,
                        "timers %d %d %s".formatted(timers, MINUTE, spread ? "spread" : "at-once"),
                        warmUp(entrant, MINUTES_TO_WARM_UP * MINUTE_IN_SECONDS),
                        Settings.number("seconds", MINUTE_IN_SECONDS)));
          }
          for (int interval : new int[] {MINUTE, DAY}) {
            run.turn(
                ticksCell(timers, interval == MINUTE),
                round,
                Roster.asked(List.of(Roster.TICKS)),
                (entrant, database) ->
                    sharesAlone(
                        timers(
                            run,
                            entrant,
                            database,
                            "timers %d %d spread".formatted(timers, interval),
                            warmUp(entrant, MINUTES_TO_WARM_UP * MINUTE_IN_SECONDS),
                            Settings.number("seconds", MINUTE_IN_SECONDS))));
          }
        }
      }
    }
  }

  private static int warmUp(Entrant entrant, int seconds) {
    return Settings.number(
        Roster.isPeer(entrant) ? "peer.warmup.seconds" : "warmup.seconds", seconds);
  }

  private static Numbers timers(
      Run run, Entrant entrant, String database, String task, int warmUpSeconds, int seconds)
      throws IOException, SQLException {
    try (ContestantJvm jvm = run.start(entrant, database)) {
      jvm.perform("prepare");
      jvm.perform(task);
      jvm.perform("look " + warmUpSeconds);
      try (Watch watch = new Watch(run.server(), database)) {
        Numbers numbers = jvm.perform("look " + seconds);
        // while they run: what it takes to stop is not what they cost
        watch.readSessions(numbers, Parts.value(numbers, "messages"));
        watch.read(numbers, Parts.value(numbers, "messages"));
        jvm.perform("still");
        return withShare(numbers);
      }
    }
  }

  /** Adds how much of one core the client and the server have used, if the server tells. */
  static Numbers withShare(Numbers numbers) {
    Double server = numbers.values().get("server_cpu_us_per_message");
    if (server == null) {
      return numbers;
    }
    double ofClient = share(numbers, Parts.value(numbers, "cpu_us_per_message"));
    return numbers.with("core_share", ofClient + share(numbers, server));
  }

  private static double share(Numbers numbers, double microsEach) {
    double messages = Math.max(1, Parts.value(numbers, "messages")); // as they were divided
    return microsEach * messages / Parts.value(numbers, "seconds") / 1e6;
  }

  /** Without runs there is nothing else: the client, and its sessions on the server. */
  private static Numbers sharesAlone(Numbers numbers) {
    double ofClient = share(numbers, Parts.value(numbers, "cpu_us_per_message"));
    Double sessions = numbers.values().get("sessions_cpu_us_per_message");
    Numbers alone = new Numbers().with("client_core_share", ofClient);
    return sessions == null ? alone : alone.with("core_share", ofClient + share(numbers, sessions));
  }

  @Override
  public void figures(Results results, Map<String, Figure> figures) {
    String label = Roster.TIMERS.label();
    results // with as many workers as db-scheduler has threads
        .median(cell(FIGURE_RATE), Roster.TIMERS_OF_20_WORKERS.label(), "lateness_p99_ms")
        .ifPresent(value -> figures.put("timer_lateness_p99_ms", value));
    results
        .median(cell(FIGURE_RATE), label, "lateness_p99_ms")
        .ifPresent(value -> figures.put("timer_lateness_p99_ms_of_4_workers", value));
    results
        .median(minuteCell(FIGURE_TIMERS, true), label, "core_share")
        .ifPresent(value -> figures.put("timers_10000_core_share", value));
    results
        .median(minuteCell(FIGURE_TIMERS, false), label, "core_share")
        .ifPresent(value -> figures.put("timers_10000_at_once_core_share", value));
    Figure.median(
            results.paired(
                new Results.Place(
                    ticksCell(FIGURE_TIMERS, true), Roster.TICKS.label(), "core_share"),
                new Results.Place(
                    ticksCell(FIGURE_TIMERS, false), Roster.TICKS.label(), "core_share"),
                (due, few) -> due - few))
        .ifPresent(value -> figures.put("timers_10000_tick_core_share", value));
  }
}
