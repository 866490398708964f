package dev.outbox4j.benchmarks;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.Arrays;
import java.util.Optional;
import java.util.Random;
import java.util.function.ToDoubleFunction;

/**
 * A figure drawn of rounds, with an interval: the percentiles of what resampled rounds would have
 * said. Of few rounds that of a median is the range from the least to the greatest, and {@link
 * #coverage} says how much that is worth.
 *
 * @param value of the rounds as they are
 * @param low the 2.5th percentile
 * @param high the 97.5th percentile
 * @param rounds how many rounds
 * @param extreme whether it is the greatest of the rounds
 */
record Figure(double value, double low, double high, int rounds, boolean extreme) {
  private static final int RESAMPLES = 10_000;
  private static final double TAIL = 0.025;
  private static final int MOST_DIGITS = 3;

  /** A median. */
  Figure(double value, double low, double high, int rounds) {
    this(value, low, high, rounds, false);
  }

  /** The median of the rounds. */
  static Optional<Figure> median(double[] rounds) {
    return of(rounds, Figure::middle, false);
  }

  /** The greatest of the rounds; nothing is known of what more rounds would have brought. */
  static Optional<Figure> greatest(double[] rounds) {
    return of(rounds, sorted -> sorted[sorted.length - 1], true);
  }

  private static Optional<Figure> of(
      double[] rounds, ToDoubleFunction<double[]> statistic, boolean extreme) {
    double[] values = Arrays.stream(rounds).filter(Double::isFinite).sorted().toArray();
    if (values.length == 0) {
      return Optional.empty();
    }
    Random random = new Random(42); // the same rounds say the same
    double[] resampled = new double[RESAMPLES];
    for (int i = 0; i < RESAMPLES; i++) {
      double[] sample =
          random.ints(values.length, 0, values.length).mapToDouble(at -> values[at]).toArray();
      Arrays.sort(sample);
      resampled[i] = statistic.applyAsDouble(sample);
    }
    Arrays.sort(resampled);
    int low = (int) (TAIL * RESAMPLES);
    return Optional.of(
        new Figure(
            statistic.applyAsDouble(values),
            resampled[low],
            resampled[RESAMPLES - 1 - low],
            values.length,
            extreme));
  }

  static double middle(double[] sorted) {
    int middle = sorted.length / 2;
    return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }

  /**
   * In how many of a hundred cases the interval holds the true median, if rounds are independent:
   * that all lie on one side of it has the odds of coins. Of the greatest nothing is known.
   */
  int coverage() {
    return extreme
        ? 0
        : (int) Math.round(100 * Math.min(1 - 2 * TAIL, 1 - Math.pow(2, 1 - rounds)));
  }

  /** With no more digits than the interval allows: the last is the first of its half width. */
  BigDecimal rounded() {
    return BigDecimal.valueOf(value).setScale(scale(), RoundingMode.HALF_UP);
  }

  /** The lower end, rounded down. */
  BigDecimal roundedLow() {
    return BigDecimal.valueOf(low).setScale(scale(), RoundingMode.FLOOR);
  }

  /** The upper end, rounded up. */
  BigDecimal roundedHigh() {
    return BigDecimal.valueOf(high).setScale(scale(), RoundingMode.CEILING);
  }

  private int scale() {
    int ofValue = MOST_DIGITS - 1 - magnitude(value);
    return high > low ? Math.min(ofValue, -magnitude((high - low) / 2)) : ofValue;
  }

  private static int magnitude(double number) {
    return number == 0 ? 0 : (int) Math.floor(Math.log10(Math.abs(number)));
  }

  /** For people. */
  String text() {
    return Tables.interval(
        rounded().toPlainString(), roundedLow().toPlainString(), roundedHigh().toPlainString());
  }
}
