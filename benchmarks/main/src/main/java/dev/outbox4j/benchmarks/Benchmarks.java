package dev.outbox4j.benchmarks;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Runs lanes: {@code -Dlane=drain,idle} or all of them; {@code -Dlane=page} measures nothing and
 * writes the page and its pictures anew from the figures that are kept. Ctrl-C, or {@code
 * -Dmax.seconds}, ends a run early; what was measured until then is printed and written. A run in
 * which something failed ends with an exception.
 */
public final class Benchmarks {
  private static final List<Lane> LANES =
      List.of(
          new DrainLane(),
          new PeersLane(),
          new XminLane(),
          new FailuresLane(),
          new OrderedLane(),
          new LifeLane(),
          new PublishLane(),
          new IdleLane(),
          new SteadyLane(),
          new DelayedLane(),
          new TimersLane(),
          new PollersLane(),
          new HerdLane(),
          new BytesLane(),
          new SweepLane(),
          new LateCommitsLane(),
          new RedriveLane(),
          new SoakLane(),
          new UnusedTablesLane(),
          new CompareLane());

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
    if (asked.equals(List.of("page"))) {
      Path file = Settings.out(false);
      Report.writePage(file);
      System.out.printf("written from %s%n", file);
      return;
    }
    List<Lane> lanes =
        LANES.stream()
            .filter(lane -> (lane.inAll() && asked.contains("all")) || asked.contains(lane.name()))
            .toList();
    if (lanes.isEmpty()) {
      throw new IllegalArgumentException(
          "no lane is called "
              + asked
              + "; there are "
              + LANES.stream().map(Lane::name).toList()
              + ", and page alone");
    }
    PrintStream out = System.out;
    long deadline =
        System.nanoTime() + Settings.number("max.seconds", 1_000_000_000) * 1_000_000_000L;
    try (Server server = Server.start()) {
      Map<Lane, Run> runs = new LinkedHashMap<>();
      lanes.forEach(lane -> runs.put(lane, new Run(server, out, deadline)));
      Map<String, String> settings = server.settings();
      out.printf("machine %s%nserver %s%n", Report.machine(), settings);
      Report report = new Report(settings);
      Thread atExit =
          new Thread(
              () -> {
                runs.values().forEach(Run::cutShort);
                runs.forEach((lane, run) -> report(lane, run, report));
              },
              "report-when-cut-short");
      Runtime.getRuntime().addShutdownHook(atExit);
      runs.forEach(
          (lane, run) -> {
            if (!run.over()) {
              run.run(lane);
            }
            report(lane, run, report);
          });
      List<String> failures =
          runs.values().stream().flatMap(run -> run.failures().keySet().stream()).toList();
      if (!failures.isEmpty()) {
        throw new IllegalStateException("failed: " + String.join("; ", failures));
      }
    }
  }

  /** Once: as soon as the lane ends, or when the run is cut short. */
  private static synchronized void report(Lane lane, Run run, Report report) {
    if (!run.beginReport()) {
      return;
    }
    Map<String, Figure> figures = new LinkedHashMap<>();
    lane.figures(run.results(), figures);
    report.print(run, figures);
    if (!run.results().cells().isEmpty()) {
      write(lane, run, report, figures);
    }
  }

  private static void write(Lane lane, Run run, Report report, Map<String, Figure> figures) {
    List<String> amiss = run.amiss();
    Path file = Settings.out(!amiss.isEmpty());
    try {
      report.write(file, lane.name(), run, figures);
      run.progress(
          "lane %s: written to %s%s",
          lane.name(),
          file.toAbsolutePath(),
          amiss.isEmpty() ? "" : ", as it was no full run: " + String.join("; ", amiss));
      if (lane instanceof CompareLane && !figures.isEmpty()) {
        Comparison.of(report, figures).write(Settings.comparison(!run.isWhole()));
      }
    } catch (IOException e) {
      run.progress("lane %s: not written: %s", lane.name(), e);
    }
  }
}
