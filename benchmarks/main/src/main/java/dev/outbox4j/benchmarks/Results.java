package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.DoubleBinaryOperator;

/**
 * All numbers of a run: by cell (a lane at one size), contestant and round. Whoever takes part does
 * so from the first round on, until it is left out: so what is at one place was measured in one
 * round. Thread-safe.
 */
final class Results {
  private final Map<String, Map<String, List<Numbers>>> cells = new LinkedHashMap<>();

  /** Where numbers are found. */
  record Place(String cell, String label, String metric) {}

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

  /** The numbers of each round, not a number where one has none. */
  synchronized double[] rounds(Place place) {
    return cells
        .getOrDefault(place.cell(), Map.of())
        .getOrDefault(place.label(), List.of())
        .stream()
        .mapToDouble(numbers -> numbers.values().getOrDefault(place.metric(), Double.NaN))
        .toArray();
  }

  /** The median over the rounds. */
  Optional<Figure> median(String cell, String label, String metric) {
    return Figure.median(rounds(new Place(cell, label, metric)));
  }

  /** The greatest of the rounds. */
  Optional<Figure> greatest(String cell, String label, String metric) {
    return Figure.greatest(rounds(new Place(cell, label, metric)));
  }

  /**
   * The median of the quotients of each round. What drifts from round to round concerns both alike.
   */
  Optional<Figure> ratio(String cell, String label, String baseCell, String base, String metric) {
    return ratio(new Place(cell, label, metric), new Place(baseCell, base, metric));
  }

  /** The same of any two metrics. */
  Optional<Figure> ratio(Place place, Place base) {
    return Figure.median(paired(place, base, (value, baseline) -> value / baseline));
  }

  /** What is made of two numbers of the same round, of as many rounds as have both. */
  double[] paired(Place one, Place other, DoubleBinaryOperator operator) {
    double[] ones = rounds(one);
    double[] others = rounds(other);
    double[] pairs = new double[Math.min(ones.length, others.length)];
    for (int round = 0; round < pairs.length; round++) {
      pairs[round] = operator.applyAsDouble(ones[round], others[round]);
    }
    return pairs;
  }
}
