package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.ours.Outbox4j;
import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Several subscribers of one queue, each with a pool and a LISTEN of its own, at an even pace of
 * single messages. They share one process with the writers: 16 JVMs on two processors would measure
 * the JVMs, and commit and handler would not be on one clock.
 */
final class HerdLane implements Lane {
  /** Figures are drawn of so many subscribers. */
  private static final int FIGURE = 8;

  private static final int FIGURE_RATE = 250;
  private static final int FAST = 1000;

  @Override
  public String name() {
    return "herd";
  }

  @Override
  public void run(Run run) throws SQLException {
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      for (int rate : Settings.numbers("rates", "50,250,1k")) {
        for (int subscribers : Settings.numbers("subscribers", "1,2,4,8,16")) {
          if (hasFigure(subscribers, rate) || Rounds.FIRST.include(round)) {
            run.turn(
                cell(subscribers, rate),
                round,
                Roster.asked(List.of(Roster.OURS)),
                (entrant, database) -> herd(run, entrant, database, subscribers, rate));
          }
        }
      }
    }
  }

  private static boolean hasFigure(int subscribers, int rate) {
    return subscribers == FIGURE && (rate == FIGURE_RATE || rate == FAST);
  }

  static String cell(int subscribers, int rate) {
    return "herd of %d subscriber%s, %d x 256 B a second, singly"
        .formatted(subscribers, subscribers == 1 ? "" : "s", rate);
  }

  private static Numbers herd(Run run, Entrant entrant, String database, int subscribers, int rate)
      throws IOException, SQLException {
    try (ContestantJvm jvm = run.start(entrant, database)) {
      jvm.perform("prepare");
      try (Watch watch = new Watch(run.server(), database)) {
        Numbers numbers =
            jvm.perform(
                "herd 256 %d %d 6 %d %d %s"
                    .formatted(
                        subscribers,
                        rate,
                        Settings.number("seconds", 20),
                        Settings.number("writers", 8),
                        Outbox4j.CHANNEL));
        return Completeness.left(jvm, watch.read(numbers, Parts.value(numbers, "messages")));
      }
    }
  }

  @Override
  public void figures(Results results, Map<String, Figure> figures) {
    String label = Roster.OURS.label();
    List<String> costs = List.of("notifications_per_message", "claims_per_message");
    for (int rate : List.of(FIGURE_RATE, FAST)) {
      String name = "herd_8_" + (rate == FIGURE_RATE ? "" : "at_" + rate + "_");
      List<String> metrics = new ArrayList<>(costs);
      if (rate == FIGURE_RATE) {
        metrics.add("latency_p99_ms");
      }
      for (String metric : metrics) {
        results
            .median(cell(FIGURE, rate), label, metric)
            .ifPresent(value -> figures.put(name + metric.replace("latency_", ""), value));
      }
    }
  }
}
