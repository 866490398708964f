package dev.outbox4j.benchmarks;

import java.io.IOException;
import java.io.PrintStream;
import java.sql.SQLException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Runs lanes: {@code -Dlane=drain,idle} or all of them. Ctrl-C, or {@code -Dmax.seconds}, ends a
 * run early; what was measured until then is printed and written.
 */
public final class Benchmarks {
  private static final List<Lane> LANES =
      List.of(
          new DrainLane(),
          new XminLane(),
          new FailuresLane(),
          new LifeLane(),
          new PublishLane(),
          new IdleLane(),
          new SteadyLane(),
          new DelayedLane());

  private Benchmarks() {}

  /**
   * Runs the lanes.
   *
   * @param args none; see {@link Settings}
   * @throws IOException if results cannot be written
   * @throws SQLException if the server fails
   */
  public static void main(String[] args) throws IOException, SQLException {
    List<String> asked = Settings.lanes();
    List<Lane> lanes =
        LANES.stream()
            .filter(lane -> asked.contains("all") || asked.contains(lane.name()))
            .toList();
    if (lanes.isEmpty()) {
      throw new IllegalArgumentException(
          "no lane is called " + asked + "; there are " + LANES.stream().map(Lane::name).toList());
    }
    PrintStream out = System.out;
    try (Server server = Server.start()) {
      Run run = new Run(server, out);
      Map<String, String> settings = server.settings();
      run.progress("machine %s", Report.machine());
      run.progress("server %s", settings);
      Report report = new Report(run, settings);
      AtomicBoolean reported = new AtomicBoolean();
      Thread atExit =
          new Thread(
              () -> {
                run.cutShort();
                report(lanes, run, report, reported);
              },
              "report-when-cut-short");
      Runtime.getRuntime().addShutdownHook(atExit);
      for (Lane lane : lanes) {
        if (!run.over()) {
          runLane(lane, run);
        }
      }
      report(lanes, run, report, reported);
    }
  }

  private static void runLane(Lane lane, Run run) throws IOException, SQLException {
    try {
      lane.run(run);
    } catch (IOException | SQLException e) {
      // on the way out the server goes first
      if (!run.over()) {
        throw e;
      }
    }
  }

  private static void report(List<Lane> lanes, Run run, Report report, AtomicBoolean reported) {
    if (reported.getAndSet(true)) {
      return;
    }
    Map<String, Double> figures = new LinkedHashMap<>();
    lanes.forEach(lane -> lane.figures(run.results(), figures));
    report.print(figures);
    try {
      report.write(Settings.out(), figures);
    } catch (IOException e) {
      run.progress("not written: %s", e);
    }
  }
}
