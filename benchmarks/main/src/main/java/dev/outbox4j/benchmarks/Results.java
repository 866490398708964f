package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** All numbers of a run: by cell (a lane at one size), contestant and round. Thread-safe. */
final class Results {
  private final Map<String, Map<String, List<Numbers>>> cells = new LinkedHashMap<>();

  synchronized void add(String cell, String label, Numbers numbers) {
    cells
        .computeIfAbsent(cell, key -> new LinkedHashMap<>())
        .computeIfAbsent(label, key -> new ArrayList<>())
        .add(numbers);
  }

  synchronized Map<String, Map<String, List<Numbers>>> cells() {
    Map<String, Map<String, List<Numbers>>> copy = new LinkedHashMap<>();
    cells.forEach(
        (cell, labels) -> {
          Map<String, List<Numbers>> inner = new LinkedHashMap<>();
          labels.forEach((label, rounds) -> inner.put(label, List.copyOf(rounds)));
          copy.put(cell, inner);
        });
    return copy;
  }

  /** The median over the rounds. */
  synchronized Optional<Double> median(String cell, String label, String metric) {
    return spread(cell, label, metric).map(Spread::median);
  }

  /** The greatest of the rounds. */
  synchronized Optional<Double> max(String cell, String label, String metric) {
    return spread(cell, label, metric).map(Spread::max);
  }

  private Optional<Spread> spread(String cell, String label, String metric) {
    return Spread.of(cells.getOrDefault(cell, Map.of()).getOrDefault(label, List.of()), metric);
  }

  /** The quotient of two contestants' medians. */
  Optional<Double> ratio(String cell, String label, String baseCell, String base, String metric) {
    return median(cell, label, metric)
        .flatMap(value -> median(baseCell, base, metric).map(baseline -> value / baseline));
  }

  /** The median of the quotients of each round, for two that were measured at the same time. */
  Optional<Double> ratioOfRounds(String cell, String label, String base, String metric) {
    return ratiosOfRounds(cell, label, base, metric).map(Spread::median);
  }

  /** The quotients of each round. */
  synchronized Optional<Spread> ratiosOfRounds(
      String cell, String label, String base, String metric) {
    Map<String, List<Numbers>> labels = cells.getOrDefault(cell, Map.of());
    List<Numbers> values = labels.getOrDefault(label, List.of());
    List<Numbers> baselines = labels.getOrDefault(base, List.of());
    List<Numbers> quotients = new ArrayList<>();
    for (int round = 0; round < Math.min(values.size(), baselines.size()); round++) {
      double value = values.get(round).values().getOrDefault(metric, Double.NaN);
      double baseline = baselines.get(round).values().getOrDefault(metric, Double.NaN);
      quotients.add(new Numbers().with(metric, value / baseline));
    }
    return Spread.of(quotients, metric);
  }
}
