package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.util.List;
import java.util.Optional;

/**
 * A metric over the rounds.
 *
 * @param median the median
 * @param min the least
 * @param max the greatest
 * @param rounds how many rounds
 */
record Spread(double median, double min, double max, int rounds) {

  static Optional<Spread> of(List<Numbers> rounds, String metric) {
    double[] sorted =
        rounds.stream()
            .mapToDouble(numbers -> numbers.values().getOrDefault(metric, Double.NaN))
            .filter(value -> !Double.isNaN(value))
            .sorted()
            .toArray();
    if (sorted.length == 0) {
      return Optional.empty();
    }
    return Optional.of(
        new Spread(Figure.middle(sorted), sorted[0], sorted[sorted.length - 1], sorted.length));
  }
}
