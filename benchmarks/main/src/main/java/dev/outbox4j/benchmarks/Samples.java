package dev.outbox4j.benchmarks;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.MathContext;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The numbers of each round, for whoever wants to draw figures anew: by lane, cell, contestant and
 * metric, a line each, in the order of the rounds. What a run did not measure stays as an earlier
 * run left it.
 */
final class Samples {
  private static final MathContext PRECISION = new MathContext(6);

  /** Instants of a clock that has no meaning elsewhere. */
  static final Set<String> LEFT_OUT = Set.of("start_ns", "end_ns");

  private Samples() {}

  /** Where they are, beside the figures. */
  static Path beside(Path figures) {
    return Report.sibling(figures, "-samples.json");
  }

  static void write(Path file, String lane, JsonNode about, Results results) throws IOException {
    ObjectNode root = Json.read(file);
    ObjectNode own = root.putObject(lane);
    own.set("date", about.path("date"));
    own.set("commit", about.path("commit"));
    ObjectNode cells = own.putObject("cells");
    results
        .cells()
        .forEach(
            (cell, labels) -> {
              ObjectNode contestants = cells.putObject(cell);
              labels.forEach((label, rounds) -> write(contestants.putObject(label), rounds));
            });
    Json.MAPPER.writeValue(file.toFile(), root);
  }

  private static void write(ObjectNode metrics, List<Numbers> rounds) {
    for (String metric : metrics(rounds)) {
      ArrayNode samples = metrics.putArray(metric);
      for (Numbers round : rounds) {
        double value = round.values().getOrDefault(metric, Double.NaN);
        if (Double.isFinite(value)) {
          samples.add(BigDecimal.valueOf(value).round(PRECISION).stripTrailingZeros());
        } else {
          samples.addNull();
        }
      }
    }
  }

  /** All that were measured in any round. */
  static Set<String> metrics(List<Numbers> rounds) {
    Set<String> metrics = new LinkedHashSet<>();
    rounds.stream().map(Numbers::values).map(Map::keySet).forEach(metrics::addAll);
    metrics.removeAll(LEFT_OUT);
    return metrics;
  }
}
