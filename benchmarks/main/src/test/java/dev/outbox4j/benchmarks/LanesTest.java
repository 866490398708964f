package dev.outbox4j.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.entry;

import com.fasterxml.jackson.databind.JsonNode;
import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What lanes draw their figures of. */
class LanesTest {
  private static final String OURS = "outbox4j";

  @AfterEach
  void clear() {
    System.clearProperty("baseline");
  }

  private static Map<String, Double> figures(Lane lane, Results results) {
    Map<String, Figure> figures = new LinkedHashMap<>();
    lane.figures(results, figures);
    Map<String, Double> values = new LinkedHashMap<>();
    figures.forEach((name, figure) -> values.put(name, figure.value()));
    return values;
  }

  @Test
  void timersFiguresAreTheirLatenessAndTheirShareOfACore() {
    Results results = new Results();
    for (double late : new double[] {20, 4, 7}) {
      results.add(
          TimersLane.cell(1000),
          Roster.TIMERS_OF_20_WORKERS.label(),
          new Numbers().with("lateness_p99_ms", late).with("core_share", 0.9));
      results.add(
          TimersLane.cell(1000),
          Roster.TIMERS.label(),
          new Numbers().with("lateness_p99_ms", 10 * late));
    }
    results.add(
        TimersLane.cell(1000),
        Roster.TIMER_PEERS.get(0).label(),
        new Numbers().with("lateness_p99_ms", 1));
    results.add(
        TimersLane.minuteCell(10_000, true),
        Roster.TIMERS.label(),
        TimersLane.withShare(timers(200, 100, 150)));
    results.add(
        TimersLane.minuteCell(10_000, false),
        Roster.TIMERS.label(),
        new Numbers().with("core_share", 0.02));
    results.add(
        TimersLane.ticksCell(10_000, true),
        Roster.TICKS.label(),
        TimersLane.withShare(timers(0, 1_750_000, 2_000_000)));
    results.add(
        TimersLane.ticksCell(10_000, false),
        Roster.TICKS.label(),
        TimersLane.withShare(timers(0, 250_000, 1_000_000)));
    assertThat(figures(new TimersLane(), results))
        .containsOnly(
            entry("timer_lateness_p99_ms", 7.0),
            entry("timer_lateness_p99_ms_of_4_workers", 70.0),
            entry("timers_10000_core_share", 0.05),
            entry("timers_10000_at_once_core_share", 0.02),
            entry("timers_10000_tick_core_share", 0.5));
  }

  @Test
  void pollersFiguresAreThoseOfASequence() {
    Results results = new Results();
    for (double late : new double[] {200, 40, 70}) {
      results.add(
          PollersLane.cell(5000),
          Roster.POLLERS.label(),
          new Numbers().with("latency_p99_ms", late).with("lag_error_share", late / 1_000));
    }
    results.add(
        PollersLane.cell(5000),
        Roster.OTHER_POLLERS.get(0).label(),
        new Numbers().with("latency_p99_ms", 1).with("lag_error_share", 1));
    assertThat(figures(new PollersLane(), results))
        .containsOnly(entry("poller_5k_p99_ms", 70.0), entry("poller_5k_lag_error_share", 0.07));
  }

  @Test
  void redrivesFiguresAreOfTheRateThatWasAskedForAndWithAPool() {
    Results results = new Results();
    for (double share : new double[] {0.99, 1, 0.97}) {
      results.add(RedriveLane.cell(100_000, 1_000), Roster.REDRIVE.label(), redrive(share));
    }
    results.add(
        RedriveLane.cell(100_000, 1_000), Roster.REDRIVE_WITHOUT_POOL.label(), redrive(0.5));
    results.add(RedriveLane.cell(100_000, 10_000), Roster.REDRIVE.label(), redrive(0.1));
    assertThat(figures(new RedriveLane(), results))
        .containsOnly(
            entry("redrive_rate_vs_asked", 0.99),
            entry("redrive_slowest_10s_vs_asked", 0.99 / 2),
            entry("redrive_fastest_10s_vs_asked", 2.0));
  }

  private static Numbers redrive(double share) {
    return new Numbers()
        .with("rate_vs_asked", share)
        .with("slowest_10s_vs_asked", share / 2)
        .with("fastest_10s_vs_asked", share * 2);
  }

  private static Numbers timers(double rate, double client, double server) {
    return new Numbers()
        .with("messages", rate * 5)
        .with("seconds", 5)
        .with("rate", rate)
        .with("cpu_us_per_message", client)
        .with("server_cpu_us_per_message", server);
  }

  @Test
  void serverThatDoesNotTellItsTimeHasNoShare() {
    assertThat(TimersLane.withShare(new Numbers().with("rate", 9)).values())
        .doesNotContainKey("core_share");
  }

  @Test
  void herdsFiguresAreThoseOfEightSubscribers() {
    Results results = new Results();
    results.add(HerdLane.cell(1, 250), OURS, herd(9, 9, 9));
    results.add(HerdLane.cell(8, 50), OURS, herd(9, 9, 9));
    for (double round : new double[] {0, 1, 50}) {
      results.add(HerdLane.cell(8, 250), OURS, herd(0.4 + round, 1.2 + round, 11 + round));
      results.add(HerdLane.cell(8, 1000), OURS, herd(0.1 + round, 0.3 + round, 5));
    }
    assertThat(figures(new HerdLane(), results))
        .containsOnly(
            entry("herd_8_notifications_per_message", 1.4),
            entry("herd_8_claims_per_message", 2.2),
            entry("herd_8_p99_ms", 12.0),
            entry("herd_8_at_1000_notifications_per_message", 1.1),
            entry("herd_8_at_1000_claims_per_message", 1.3));
  }

  private static Numbers herd(double notifications, double claims, double p99) {
    return new Numbers()
        .with("notifications_per_message", notifications)
        .with("claims_per_message", claims)
        .with("latency_p99_ms", p99);
  }

  @Test
  void latencyAtASteadyRateIsFromTheInstantThatWasScheduled() {
    Results results = new Results();
    results.add(
        SteadyLane.cell(5000),
        OURS,
        new Numbers()
            .with("latency_p99_ms", 9)
            .with("scheduled_p99_ms", 30)
            .with("backlog_slope_per_s", 0.5));
    results.add(SteadyLane.cell(10_000), OURS, new Numbers().with("scheduled_p99_ms", 300));
    assertThat(figures(new SteadyLane(), results))
        .containsOnly(
            entry("steady_10k_p99_ms", 300.0),
            entry("steady_5k_p99_ms", 30.0),
            entry("steady_5k_p99_from_commit_ms", 9.0),
            entry("steady_5k_backlog_slope_per_s", 0.5));
  }

  @Test
  void publishersBesideOneSubscriberAndBesideEightHaveFiguresApart() {
    Results results = new Results();
    publishers(results, "commit_delay 0", 90, 100);
    publishers(results, "8 subscribers", 40, 80);
    assertThat(figures(new PublishLane(), results))
        .containsOnly(
            entry("auto_vs_never_32_writers", 0.9), entry("auto_vs_never_8_subscribers", 0.5));
  }

  private static void publishers(Results results, String beside, double auto, double never) {
    String cell =
        "publish business transactions, 32 writers, alternating every half second, " + beside;
    results.add(cell, "outbox4j AUTO awake", new Numbers().with("rate", auto));
    results.add(cell, "outbox4j NEVER", new Numbers().with("rate", never));
  }

  @Test
  void sweepsFiguresAreOfTheRateWithoutDeadRowsAndOfTheSlowestLateRow() {
    Results results = new Results();
    String cell = "sweep, 1000000 x 256 B above dead rows";
    results.add(cell, "outbox4j, no dead rows", sweep(100, 50, 0, 0));
    results.add(cell, "outbox4j, above dead rows", sweep(80, 70, 3, 5));
    results.add(cell, "outbox4j, above dead rows", sweep(80, 70, 9, 1));
    assertThat(figures(new SweepLane(), results))
        .containsOnly(
            entry("sweep_running_vs_free", 0.8),
            entry("sweep_restarted_vs_free", 0.7),
            entry("sweep_late_row_s", 9.0));
  }

  private static Numbers sweep(double rate, double restarted, double late, double lateAfter) {
    return new Numbers()
        .with("rate", rate)
        .with("restarted_rate", restarted)
        .with("late_row_s", late)
        .with("restarted_late_row_s", lateAfter);
  }

  @Test
  void lateCommitsFigureIsTheOldestMessageOfAllRounds() throws IOException {
    Results results = new Results();
    for (double oldest : new double[] {900, 4_000, 1_000}) {
      results.add(
          LateCommitsLane.cell(30, 20_000),
          OURS,
          new Numbers().with("age_after_commit_max_ms", oldest));
    }
    assertThat(figures(new LateCommitsLane(), results))
        .containsOnly(entry("late_commit_worst_age_ms", 4_000.0));
  }

  @Test
  void backlogThatDoesNotLastIsAFailure() throws IOException {
    Numbers lasting = new Numbers().with("backlog_least", 10_000);
    assertThat(LateCommitsLane.sound(lasting, 20_000)).isSameAs(lasting);
    Numbers gone = new Numbers().with("backlog_least", 9_999);
    assertThatThrownBy(() -> LateCommitsLane.sound(gone, 20_000)).isInstanceOf(IOException.class);
  }

  @Test
  void soakComparesItsLastTenthWithItsFirst() {
    Numbers numbers = new Numbers().with("p99_ms_1", 4).with("p99_ms_9", 8).with("p99_ms_10", 6);
    assertThat(SoakLane.drift(numbers).values()).containsEntry("last_vs_first_p99_ms", 1.5);
    assertThat(new SoakLane().inAll()).isFalse();
  }

  @Test
  void buildsAreComparedByTheirPairs() {
    Results results = new Results();
    for (double speedOfTheMachine : new double[] {100, 300, 200}) {
      // the medians of each alone would say 1.5
      double better = speedOfTheMachine == 100 ? 3 : 1.1;
      results.add("compare drain", OURS, new Numbers().with("rate", better * speedOfTheMachine));
      results.add(
          "compare drain",
          OURS + " of the baseline",
          new Numbers().with("rate", speedOfTheMachine));
    }
    Map<String, Figure> figures = new LinkedHashMap<>();
    new CompareLane().figures(results, figures);
    assertThat(figures).containsOnlyKeys("new_vs_old_drain_rate");
    Figure figure = figures.get("new_vs_old_drain_rate");
    assertThat(figure.value()).isBetween(1.0999, 1.1001);
    assertThat(figure.high()).isEqualTo(3);
    assertThat(figure.rounds()).isEqualTo(3);
  }

  @Test
  void buildsAreComparedByWhatAMessageCostsThemAndTheServerInEachPart() {
    Results results = new Results();
    for (String part : List.of("drain", "steady", "idle", "wake")) {
      results.add("compare " + part, OURS, cpu(30, 50));
      results.add("compare " + part, OURS + " of the baseline", cpu(20, 100));
    }
    assertThat(figures(new CompareLane(), results))
        .containsOnly(
            entry("new_vs_old_drain_cpu_us_per_message", 1.5),
            entry("new_vs_old_drain_server_cpu_us_per_message", 0.5),
            entry("new_vs_old_steady_cpu_us_per_message", 1.5),
            entry("new_vs_old_steady_server_cpu_us_per_message", 0.5),
            entry("new_vs_old_idle_cpu_us_per_message", 1.5),
            entry("new_vs_old_idle_server_cpu_us_per_message", 0.5),
            entry("new_vs_old_wake_cpu_us_per_message", 1.5),
            entry("new_vs_old_wake_server_cpu_us_per_message", 0.5));
  }

  private static Numbers cpu(double client, double server) {
    return new Numbers()
        .with("cpu_us_per_message", client)
        .with("server_cpu_us_per_message", server);
  }

  @Test
  void comparisonIsKeptWithItsIntervalsAndBothCommits(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("docs/compare.json");
    Figure figure = Figure.median(new double[] {0.98, 1.01, 1.02}).orElseThrow();
    new Comparison("new", "old", Map.of("fsync", "on"), Map.of("new_vs_old_drain_rate", figure))
        .write(file);
    JsonNode written = Json.read(file);
    assertThat(written.get("commit").asText()).isEqualTo("new");
    assertThat(written.get("baseline").asText()).isEqualTo("old");
    JsonNode kept = written.at("/figures/new_vs_old_drain_rate");
    assertThat(kept.get("value").asDouble()).isEqualTo(1.01);
    assertThat(kept.get("low").asDouble()).isEqualTo(0.98);
    assertThat(kept.get("high").asDouble()).isEqualTo(1.02);
    assertThat(kept.get("rounds").asInt()).isEqualTo(3);
  }

  @Test
  void comparisonOfOtherSizesIsKeptOutOfTheDocumentation() {
    System.setProperty("baseline", "elsewhere");
    assertThat(Settings.changesComparison()).isFalse();
    for (Map.Entry<String, String> other : Map.of("rows", "10k", "rounds", "4").entrySet()) {
      System.setProperty(other.getKey(), other.getValue());
      try {
        assertThat(Settings.changesComparison()).as(other.getKey()).isTrue();
      } finally {
        System.clearProperty(other.getKey());
      }
    }
    assertThat(Settings.comparison(true)).endsWithRaw(Path.of("target/compare.json"));
    assertThat(Settings.comparison(false)).endsWithRaw(Path.of("docs/compare.json"));
  }

  @Test
  void unusedTablesAreMeasuredByPairs() {
    Results results = new Results();
    for (double speedOfTheMachine : new double[] {100, 300, 200}) {
      results.add("unused tables, drain", OURS, unused(speedOfTheMachine));
      results.add(
          "unused tables, drain",
          Roster.BESIDE_UNUSED_TABLES.label(),
          unused(0.5 * speedOfTheMachine));
    }
    assertThat(figures(new UnusedTablesLane(), results))
        .containsOnly(
            entry("unused_tables_drain_rate", 0.5),
            entry("unused_tables_drain_cpu_us_per_message", 1.0),
            entry("unused_tables_drain_server_cpu_us_per_message", 1.0));
    assertThat(Roster.isPeer(Roster.BESIDE_UNUSED_TABLES)).isFalse();
    assertThat(new UnusedTablesLane().inAll()).isFalse();
  }

  private static Numbers unused(double rate) {
    return cpu(30, 50).with("rate", rate);
  }

  @Test
  void baselineBringsItsLibraryAndIsMeasuredByUs(@TempDir Path checkout) throws IOException {
    System.setProperty("baseline", checkout.toString());
    assertThat(ClassPath.exists(ClassPath.BASELINE)).isFalse();
    Path target = Files.createDirectories(checkout.resolve("benchmarks/main/target"));
    Files.writeString(
        target.resolve("class-path.txt"), "old-spi.jar" + File.pathSeparator + "x.jar\n");
    assertThat(ClassPath.exists(ClassPath.BASELINE)).isTrue();
    assertThat(ClassPath.of(ClassPath.BASELINE).split(File.pathSeparator, -1))
        .containsExactly(
            Settings.home().resolve("spi/target/classes").toString(),
            target.resolve("classes").toString(),
            "old-spi.jar",
            "x.jar");
  }

  @Test
  void baselineIsNoPeerAndKeepsARunOutOfTheDocumentation() {
    Entrant baseline = new Entrant("other", ClassPath.BASELINE, OURS, Map.of());
    assertThat(Roster.mayBeStopped(baseline)).isFalse();
    System.setProperty("baseline", "elsewhere");
    assertThat(Settings.shrunk()).isTrue();
    assertThat(new CompareLane().inAll()).isFalse();
  }

  @Test
  void timeOfAServerIsThatOfItsProcessesAndOfThoseThatHaveEnded(@TempDir Path processes)
      throws IOException {
    stat(processes, 10, "postgres", 1, "5 6 100 200");
    stat(processes, 11, "postgres", 10, "30 1 7 7");
    stat(processes, 12, "a (strange) name", 10, "40 2 0 0");
    stat(processes, 13, "postgres", 99, "1000 1000 0 0");
    assertThat(ServerCpu.of(processes, 11).seconds()).isEqualTo(3.84);
    assertThat(ServerCpu.of(processes, 12).seconds()).isNaN();
    assertThat(ServerCpu.of(processes, 4711).seconds()).isNaN();
  }

  private static void stat(Path processes, int id, String name, int parent, String ticks)
      throws IOException {
    Path process = Files.createDirectories(processes.resolve(Integer.toString(id)));
    Files.writeString(
        process.resolve("stat"),
        "%d (%s) S %d 0 0 0 0 0 0 0 0 0 %s 20 0\n".formatted(id, name, parent, ticks));
  }

  @Test
  void memoryThatRanOutIsCountedOnceHoweverFarTheErrorWent() {
    String error = "Exception <a 'java/lang/OutOfMemoryError'{0x00000000fe0440a8}";
    assertThat(
            OutOfMemory.count(
                Stream.of(
                    error + "> (0x00000000fe0440a8) ",
                    "thrown [memAllocator.cpp, line 134]",
                    "for thread 0x00007f0c6c018570",
                    error + ": Java heap space>",
                    " thrown in interpreter method <{method} 'main' in 'X'>",
                    " at bci 32 for thread 0x00007f0c6c018570 (main)",
                    "Exception <a 'java/net/SocketException'{0x1}> (0x1) ",
                    error + "> (0x00000000fe0440a8) ")))
        .isEqualTo(2);
  }

  @Test
  void jvmTellsOfMemoryThatRanOut(@TempDir Path folder) throws Exception {
    Path log = folder.resolve("exceptions.log");
    Path source = folder.resolve("Full.java");
    Files.writeString(
        source,
        """
        class Full {
          public static void main(String[] args) {
            for (int i = 0; i < 3; i++) {
              try {
                long[] more = new long[100_000_000];
              } catch (OutOfMemoryError e) {
                // again
              }
            }
          }
        }
        """);
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx64m",
                OutOfMemory.option(log),
                source.toString())
            .inheritIO()
            .start();
    assertThat(process.waitFor()).isZero();
    assertThat(OutOfMemory.count(log)).isEqualTo(3);
  }

  @Test
  void rowsThatAreLeftAndMemoryThatRanOutAreFailures() throws IOException {
    Numbers well = new Numbers().with("rows_left", 0).with("out_of_memory_errors", 0);
    assertThat(BytesLane.sound(well)).isSameAs(well);
    for (String metric : List.of("rows_left", "out_of_memory_errors")) {
      assertThatThrownBy(() -> BytesLane.sound(new Numbers().with(metric, 1)))
          .isInstanceOf(IOException.class)
          .hasMessageContaining(metric + "=1");
    }
  }
}
