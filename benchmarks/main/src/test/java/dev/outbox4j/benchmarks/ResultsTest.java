package dev.outbox4j.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.outbox4j.benchmarks.spi.Numbers;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** From numbers to medians, ratios and the page. */
class ResultsTest {

  @Test
  void takesTheMedianOfTheRounds() {
    assertThat(Spread.of(rates(3, 1, 100), "rate")).contains(new Spread(3, 1, 100, 3));
    assertThat(Spread.of(rates(1, 2, 4, 8), "rate")).contains(new Spread(3, 1, 8, 4));
    assertThat(Spread.of(rates(1), "latency")).isEmpty();
  }

  @Test
  void ratiosAreOfMedians() {
    Results results = new Results();
    rates(50, 100, 150).forEach(numbers -> results.add("cell", "ours", numbers));
    rates(190, 200, 1_000).forEach(numbers -> results.add("cell", "twin", numbers));
    assertThat(results.ratio("cell", "ours", "cell", "twin", "rate")).contains(0.5);
    assertThat(results.ratio("cell", "ours", "cell", "absent", "rate")).isEmpty();
  }

  @Test
  void drainsFiguresAreThoseOfItsContestants() {
    Results results = new Results();
    String cell = "drain 1000000 x 256 B, 1 process";
    results.add(cell, "raw-lease-twin", rate(100));
    results.add(cell, "outbox4j", rate(60));
    results.add(cell, "outbox4j-tuned", rate(80));
    results.add(cell, "jobrunr", rate(5));
    results.add(cell, "dbos-transact", rate(10));
    results.add("drain 100000 x 256 B, 1 process", "outbox4j-tuned", rate(50));
    results.add("drain 10000000 x 256 B, 1 process", "outbox4j-tuned", rate(45));
    Map<String, Double> figures = new HashMap<>();
    new DrainLane().figures(results, figures);
    assertThat(figures)
        .containsEntry("drain_1m_vs_twin", 0.8)
        .containsEntry("drain_1m_vs_twin_default_settings", 0.6)
        .containsEntry("drain_1m_vs_best_peer", 8.0)
        .containsEntry("flat_10m_vs_100k", 0.9);
  }

  @Test
  void pageKeepsWhatIsAroundItsFigures() {
    ObjectNode root = new ObjectMapper().createObjectNode().put("drain_1m_vs_twin", 0.75);
    root.putObject("about").put("date", "2026-01-01");
    String first = Markdown.within("# Title\n\ntext\n", root);
    assertThat(first)
        .startsWith("# Title\n\ntext\n")
        .contains("`drain_1m_vs_twin`")
        .contains("0.75");
    String again = Markdown.within(first + "after\n", root.put("drain_1m_vs_twin", 0.5));
    assertThat(again).startsWith("# Title").endsWith("after\n").contains("0.5000");
    assertThat(again).doesNotContain("0.75");
  }

  private static List<Numbers> rates(double... rates) {
    return Arrays.stream(rates).mapToObj(ResultsTest::rate).toList();
  }

  private static Numbers rate(double rate) {
    return new Numbers().with("rate", rate);
  }
}
