package dev.outbox4j.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.entry;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** From numbers to medians, ratios and the page. */
class ResultsTest {

  @Test
  void takesTheMedianOfTheRounds() {
    assertThat(Spread.of(rates(3, 1, 100), "rate")).contains(new Spread(3, 1, 100, 3));
    assertThat(Spread.of(rates(1, 2, 4, 8), "rate")).contains(new Spread(3, 1, 8, 4));
    assertThat(Spread.of(rates(1), "latency")).isEmpty();
  }

  @Test
  void ratiosAreOfTheRoundsThatBothTookPartIn() {
    Results results = new Results();
    rates(90, 40, 300, 1).forEach(numbers -> results.add("cell", "ours", numbers));
    rates(100, 50, 300).forEach(numbers -> results.add("cell", "twin", numbers));
    assertThat(results.ratio("cell", "ours", "cell", "twin", "rate"))
        .contains(new Figure(0.9, 0.8, 1, 3));
    assertThat(results.ratio("cell", "ours", "cell", "absent", "rate")).isEmpty();
  }

  @Test
  void intervalOfFiveRoundsIsTheirRangeAndOfManyIsNarrower() {
    assertThat(Figure.median(new double[] {5, 1, 4, 2, 3})).contains(new Figure(3, 1, 5, 5));
    double[] many = IntStream.rangeClosed(1, 99).asDoubleStream().toArray();
    Figure figure = Figure.median(many).orElseThrow();
    assertThat(figure.value()).isEqualTo(50);
    assertThat(figure.low()).isBetween(37.0, 43.0);
    assertThat(figure.high()).isBetween(57.0, 63.0);
    assertThat(Figure.median(many)).contains(figure);
  }

  @Test
  void worstOfTheRoundsHasNothingAboveIt() {
    Figure figure = Figure.greatest(new double[] {30, 9_000, 40}).orElseThrow();
    assertThat(figure).isEqualTo(new Figure(9_000, 30, 9_000, 3, true));
  }

  @Test
  void figuresHaveNoMoreDigitsThanTheirIntervalsAllow() {
    assertThat(new Figure(0.94147, 0.8919, 1.0371, 5).text()).isEqualTo("0.94 (0.89 to 1.04)");
    assertThat(new Figure(15.14, 13.2, 21.1, 5).text()).isEqualTo("15 (13 to 22)");
    assertThat(new Figure(5892, 3879, 7968, 3).text()).isEqualTo("6000 (3000 to 8000)");
    assertThat(new Figure(0.004052, 0.0040519, 0.0040521, 5).text())
        .isEqualTo("0.00405 (0.00405 to 0.00406)");
    assertThat(new Figure(1, 1, 1, 5).text()).isEqualTo("1.00 (1.00 to 1.00)");
    assertThat(new Figure(0, -3, 4, 5).text()).isEqualTo("0 (-3 to 4)");
  }

  @Test
  void everyRoundOfEveryContestantIsKept(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("benchmarks.json");
    Report report = new Report(Map.of());
    Run run = new Run(RunTest.nowhere(), System.out, System.nanoTime());
    rates(79_123.4567, 0.1, 1e7).forEach(numbers -> run.results().add("cell", "ours", numbers));
    run.results().add("cell", "twin", rate(2).with("seconds", 4).with("start_ns", 5));
    report.write(file, "drain", run, Map.of());
    report.write(file, "idle", runWith("idle"), Map.of());
    Path samples = folder.resolve(Json.read(file).path("samples").asText());
    assertThat(Files.readString(samples)).contains("\"rate\" : [ 79123.5, 0.1, 10000000 ]");
    JsonNode kept = Json.read(samples);
    assertThat(kept.fieldNames()).toIterable().containsExactly("drain", "idle");
    assertThat(kept.at("/drain/commit")).isEqualTo(Json.read(file).at("/about/drain/commit"));
    assertThat(kept.at("/drain/cells/cell/twin").fieldNames())
        .toIterable()
        .containsExactly("rate", "seconds");
  }

  @Test
  void figuresAreWrittenWithTheirIntervalsAndOlderOnesStay(@TempDir Path folder)
      throws IOException {
    Path file = folder.resolve("benchmarks.json");
    Files.writeString(file, "{\"older\": 0.847}");
    Report report = new Report(Map.of());
    report.write(file, "drain", runWith("drain"), Map.of("gone", new Figure(1, 1, 1, 1)));
    report.write(
        file, "drain", runWith("drain"), Map.of("figure", new Figure(0.8967, 0.81, 0.952, 5)));
    report.write(file, "idle", runWith("idle"), Map.of());
    JsonNode written = Json.read(file);
    assertThat(written.path("figure").decimalValue()).isEqualTo("0.90");
    assertThat(written.at("/intervals/figure/low").asDouble()).isEqualTo(0.81);
    assertThat(written.at("/intervals/figure/high").asDouble()).isEqualTo(0.96);
    assertThat(written.path("older").asDouble()).isEqualTo(0.847);
    assertThat(written.has("gone")).isFalse();
    assertThat(written.at("/intervals").fieldNames()).toIterable().containsExactly("figure");
    assertThat(Files.readString(folder.resolve("benchmarks.md")))
        .containsPattern("`figure` +\\| +0\\.90 \\| +0\\.81 to 0\\.96 \\| +5 \\|")
        .containsPattern("`older` +\\| +0\\.85 \\| +one run, no interval \\|");
  }

  @Test
  void aFigureOfOneRoundHasNoInterval(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("benchmarks.json");
    new Report(Map.of())
        .write(file, "drain", runWith("drain"), Map.of("single", new Figure(2, 2, 2, 1)));
    assertThat(Files.readString(folder.resolve("benchmarks.md")))
        .containsPattern("`single` +\\| +2\\.00 \\| +one round, no interval \\| +1 \\| +none \\|");
  }

  @Test
  void figuresOfWhichOnlyTheExtremesWereKeptSaySo() {
    ObjectNode root = new ObjectMapper().createObjectNode();
    root.put("median", 5).put("greatest", 9);
    ObjectNode intervals = root.putObject("intervals");
    ofExtremes(intervals.putObject("median"), 94);
    ofExtremes(intervals.putObject("greatest"), 0);
    assertThat(Markdown.of(root))
        .containsPattern("`median` +\\| +5 \\| +4 to 9 \\| +5 \\| +at least 94 % \\|")
        .containsPattern("`greatest` +\\| +9 \\| +4 to 9 \\| +5 \\| +none \\|")
        .contains("Of 2 of the figures not each round was kept");
  }

  private static void ofExtremes(ObjectNode interval, int coverage) {
    interval
        .put("low", 4)
        .put("high", 9)
        .put("rounds", 5)
        .put("coverage_percent", coverage)
        .put("of_extremes", true);
  }

  @Test
  void pageTellsWhatTheRunBeforeSaidWhenAndHowManyFiguresAgree(@TempDir Path folder)
      throws IOException {
    Path file = folder.resolve("benchmarks.json");
    Report report = new Report(Map.of());
    for (double run : new double[] {1, 2}) {
      report.write(
          file,
          "drain",
          runWith("drain"),
          Map.of(
              "steady",
              new Figure(5, 4, 6 * run, 5),
              "moved",
              new Figure(run, run, run + 0.5, 5),
              "worst",
              new Figure(run, 1, run, 5, true),
              "only_" + (int) run,
              new Figure(1, 1, 1, 5)));
    }
    JsonNode about = Json.read(file).at("/about/drain");
    String date = about.path("date").asText();
    String commit = about.path("commit").asText();
    assertThat(Files.readString(folder.resolve("benchmarks.md")))
        .contains("Two runs have drawn 2 of the 3 figures with a coverage. 1 of these agree")
        .containsPattern("`moved` .* 2\\.0 to 2\\.5 \\| +5 \\| +94 % \\|")
        .containsPattern("`moved` +\\| +1\\.0 to 1\\.5 \\| +%s \\| +%s \\|".formatted(date, commit))
        .doesNotContainPattern("`only_2` .* %s".formatted(date));
    JsonNode before = Json.read(file).at("/intervals/moved/before");
    assertThat(before.fieldNames()).toIterable().containsExactly("low", "high", "date", "commit");
  }

  @Test
  void aRunBeforeOfWhichNoCommitWasKeptSaysSo() {
    ObjectNode root = new ObjectMapper().createObjectNode().put("figure", 5);
    ObjectNode interval = root.putObject("intervals").putObject("figure");
    interval.put("low", 4).put("high", 6).put("rounds", 5).put("coverage_percent", 94);
    interval.putObject("before").put("low", 3).put("high", 4);
    assertThat(Markdown.of(root))
        .containsPattern("`figure` +\\| +3 to 4 \\| +not kept \\| +not kept \\|")
        .contains("Two runs have drawn 1 of the 1 figures with a coverage. 1 of these agree");
  }

  @Test
  void drainsFiguresAreThoseOfItsContestants() {
    Results results = new Results();
    String cell = "drain 1000000 x 256 B, 1 process";
    results.add(cell, "raw-lease-twin", rate(100));
    results.add(cell, "outbox4j", rate(80));
    results.add(cell, Roster.BEST_RAW.get(0).label(), rate(120));
    results.add(cell, Roster.BEST_RAW.get(1).label(), rate(160));
    results.add("drain 100000 x 256 B, 1 process", "outbox4j", rate(50));
    results.add("drain 10000000 x 256 B, 1 process", "outbox4j", rate(45));
    assertThat(values(new DrainLane(), results))
        .containsEntry("drain_1m_vs_twin", 0.8)
        .containsEntry("drain_1m_vs_raw_best", 0.5)
        .containsEntry("flat_10m_vs_100k", 0.9);
  }

  @Test
  void theFastestPeerCounts() {
    Results results = new Results();
    String million = "peers, drain 1000000 x 256 B, 1 process";
    results.add(million, "raw-lease-twin", rate(1));
    results.add(million, "outbox4j", rate(80));
    results.add(million, "jobrunr", rate(5));
    results.add(million, "dbos-transact", rate(10));
    String small = "peers, drain 10000 x 256 B, 1 process";
    results.add(small, "outbox4j", rate(30));
    results.add(small, "jobrunr", rate(10));
    assertThat(values(new PeersLane(), results))
        .containsOnly(entry("drain_1m_vs_best_peer", 8.0), entry("drain_10k_vs_best_peer", 3.0));
  }

  @Test
  void slowestMessageOfAllRoundsIsTheSlowest() {
    Results results = new Results();
    for (double slowest : new double[] {30, 9_000, 40}) {
      results.add(
          "falling asleep, 0 to 250 ms after a burst",
          "outbox4j by r2dbc, claims of 2",
          new Numbers().with("latency_max_ms", slowest));
    }
    assertThat(values(new IdleLane(), results)).containsExactly(entry("wake_max_ms", 9_000.0));
  }

  @Test
  void anIntervalSaysHowOftenItHoldsTheTruth() {
    assertThat(new Figure(1, 1, 1, 1).coverage()).isZero();
    assertThat(new Figure(1, 0, 2, 3).coverage()).isEqualTo(75);
    assertThat(new Figure(1, 0, 2, 5).coverage()).isEqualTo(94);
    assertThat(new Figure(1, 0, 2, 20).coverage()).isEqualTo(95);
    assertThat(new Figure(1, 0, 2, 20, true).coverage()).isZero();
  }

  @Test
  void whatFiguresAreDrawnOfTakesPartInMoreRounds() {
    assertThat(List.of(Roster.TWIN, Roster.OURS))
        .extracting(Roster::rounds)
        .containsOnly(Rounds.ALL);
    assertThat(Roster.BEST_RAW).extracting(Roster::rounds).containsOnly(Rounds.ALL);
    assertThat(Roster.SHAPES).extracting(Roster::rounds).containsOnly(Rounds.FIRST);
    assertThat(Rounds.FIRST_THREE.include(2)).isTrue();
    assertThat(Rounds.FIRST_THREE.include(3)).isFalse();
    assertThat(Rounds.FIRST.include(1)).isFalse();
  }

  @Test
  void peerWithoutAChanceToBeTheFastestIsLeftOut() {
    Results results = new Results();
    Entrant fast = Roster.PEERS.get(0);
    Entrant middling = Roster.PEERS.get(1);
    Entrant slow = Roster.PEERS.get(2);
    assertThat(PeersLane.hasAChance(results, "cell", slow)).isTrue();
    results.add("cell", fast.label(), rate(300));
    results.add("cell", middling.label(), rate(101));
    results.add("cell", slow.label(), rate(99));
    results.add("cell", Roster.TWIN.label(), rate(1));
    assertThat(List.of(fast, middling, slow, Roster.TWIN))
        .filteredOn(entrant -> PeersLane.hasAChance(results, "cell", entrant))
        .containsExactly(fast, middling, Roster.TWIN);
  }

  @Test
  void processThatCameTooLateForAnyMessageDoesNotSlowDownTheOthers() {
    Numbers busy = new Numbers().with("messages", 500).with("start_ns", 2e9).with("end_ns", 4e9);
    Numbers late = new Numbers().with("messages", 0).with("start_ns", 0).with("end_ns", 9e9);
    assertThat(DrainLane.Drain.together(List.of(busy, late, busy), 1_000).values())
        .containsEntry("rate", 500.0)
        .containsEntry("complete", 1.0);
  }

  @Test
  void messageThatCameToTwoProcessesHidesNoneThatCameToNone() {
    Numbers numbers = new Numbers().with("repeated", 1);
    Completeness.merge(List.of(bits(0b0011), bits(0b1010)), 4, numbers);
    assertThat(numbers.values()).containsEntry("missing", 1.0).containsEntry("repeated", 2.0);
    Completeness.merge(List.of(bits(0b0011), bits(0b1100)), 4, numbers.with("repeated", 0));
    assertThat(numbers.values()).containsEntry("missing", 0.0).containsEntry("repeated", 0.0);
  }

  private static BitSet bits(long bits) {
    return BitSet.valueOf(new long[] {bits});
  }

  @Test
  void pageKeepsWhatIsAroundItsFigures() {
    ObjectNode root = new ObjectMapper().createObjectNode().put("drain_1m_vs_twin", 0.75);
    root.putObject("about").putObject("drain").put("date", "2026-01-01");
    String first = Markdown.within("# Title\n\ntext\n", root);
    assertThat(first)
        .startsWith("# Title\n\ntext\n")
        .contains("`drain_1m_vs_twin`")
        .contains("0.75");
    String again = Markdown.within(first + "after\n", root.put("drain_1m_vs_twin", 0.5));
    assertThat(again).startsWith("# Title").endsWith("after\n").contains("0.5");
    assertThat(again).doesNotContain("0.75");
  }

  @Test
  void pageTellsOfEachLaneWhenItWasMeasured() {
    ObjectNode root = new ObjectMapper().createObjectNode();
    ObjectNode about = root.putObject("about");
    for (String lane : List.of("drain", "idle", "life")) {
      String commit = lane.equals("idle") ? "bbb" : "aaa";
      about.putObject(lane).put("date", "2026-01-01").put("commit", commit);
    }
    about.withObject("/drain").putObject("versions").putObject("peers").put("jobrunr", "8.7.0");
    about.withObject("/idle").put("amiss", "ended before its last round");
    assertThat(Markdown.of(root))
        .contains("- Measured (drain, life): 2026-01-01 at commit aaa.\n")
        .contains("- Measured (idle): 2026-01-01 at commit bbb.\n")
        .contains("- No full run (idle): ended before its last round.\n")
        .contains("- Versions in `peers` (drain): jobrunr 8.7.0.\n");
  }

  @Test
  void writingALaneLeavesWhatIsSaidOfTheOthers(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("benchmarks.json");
    Files.writeString(
        file,
        "{\"about\": {\"date\": \"2026-01-01\", \"machine\": {},"
            + " \"idle\": {\"date\": \"2026-01-02\", \"commit\": \"aaa\"}}}");
    Server server = RunTest.nowhere();
    Run run = new Run(server, System.out, System.nanoTime());
    run.results().add("drain", "outbox4j", rate(1));
    new Report(Map.of("fsync", "on"))
        .write(file, "drain", run, Map.of("figure", new Figure(2, 2, 2, 3)));
    JsonNode written = new ObjectMapper().readTree(file.toFile());
    assertThat(written.path("about").fieldNames()).toIterable().containsExactly("idle", "drain");
    assertThat(written.at("/about/idle/commit").asText()).isEqualTo("aaa");
    assertThat(written.at("/about/drain/server/fsync").asText()).isEqualTo("on");
    assertThat(written.at("/figure").asDouble()).isEqualTo(2);
  }

  @Test
  void writingALaneDropsWhatItNoLongerMeasures(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("benchmarks.json");
    Report report = new Report(Map.of());
    report.write(file, "drain", runWith("drain 1m", "drain 10m"), Map.of());
    report.write(file, "idle", runWith("idle"), Map.of());
    report.write(file, "drain", runWith("drain 2m", "drain 10m"), Map.of());
    JsonNode written = new ObjectMapper().readTree(file.toFile());
    assertThat(written.path("cells").fieldNames())
        .toIterable()
        .containsExactlyInAnyOrder("idle", "drain 2m", "drain 10m");
  }

  private static Run runWith(String... cells) {
    Run run = new Run(RunTest.nowhere(), System.out, System.nanoTime());
    for (String cell : cells) {
      run.results().add(cell, "outbox4j", rate(1));
    }
    return run;
  }

  @Test
  void tableHasRatiosToItsFirstContestantAndSpreads() {
    ObjectNode root = new ObjectMapper().createObjectNode();
    ObjectNode cell = root.putObject("cells").putObject("idle");
    metric(metric(cell.putObject("raw-notify"), "rate", 9, 9), "latency_p50_ms", 1, 3);
    metric(metric(cell.putObject("outbox4j"), "rate", 9, 9), "latency_p50_ms", 2, 6);
    metric(cell.withObject("/outbox4j"), "repeated", 0, 10);
    metric(cell.withObject("/outbox4j"), "complete", 1, 1);
    root.putObject("settings").putObject("outbox4j").put("batchSize", "1000");
    String page = Markdown.of(root);
    assertThat(page)
        .containsPattern("\\| contestant +\\| +raw-notify \\| +outbox4j \\|\n")
        .containsPattern("\\| rounds +\\| +5 \\| +5 \\|\n")
        .containsPattern("\\| ratio of latency_p50_ms +\\| +1\\.00 \\| +2\\.00 \\|\n")
        .containsPattern(
            "\\| latency_p50_ms +\\| .*\\) \\| +4\\.00 \\(2\\.00 \\.\\. 6\\.00\\) \\|\n")
        .containsPattern("\\| repeated +\\| +\\| +5\\.00 \\|\n")
        .contains("- **outbox4j**: . *Settings:* batchSize=1000.\n")
        .doesNotContain("complete");
  }

  private static ObjectNode metric(ObjectNode contestant, String name, double min, double max) {
    contestant
        .putObject(name)
        .put("median", (min + max) / 2)
        .put("min", min)
        .put("max", max)
        .put("rounds", 5);
    return contestant;
  }

  @Test
  void versionsAreThoseOfTheClassPath() {
    String classPath =
        Stream.of("postgresql-42.7.14.jar", "transact-1.1.0-m6.jar", "slf4j-api-2.0.17.jar")
            .map(jar -> Path.of("repository", jar).toString())
            .collect(Collectors.joining(File.pathSeparator));
    assertThat(Versions.within(classPath))
        .containsExactly(entry("postgresql", "42.7.14"), entry("transact", "1.1.0-m6"));
  }

  private static Map<String, Double> values(Lane lane, Results results) {
    Map<String, Figure> figures = new HashMap<>();
    lane.figures(results, figures);
    Map<String, Double> values = new HashMap<>();
    figures.forEach((name, figure) -> values.put(name, figure.value()));
    return values;
  }

  private static List<Numbers> rates(double... rates) {
    return Arrays.stream(rates).mapToObj(ResultsTest::rate).toList();
  }

  private static Numbers rate(double rate) {
    return new Numbers().with("rate", rate);
  }
}
