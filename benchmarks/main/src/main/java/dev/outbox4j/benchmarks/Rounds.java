package dev.outbox4j.benchmarks;

/**
 * In which rounds something is measured: the less depends on it and the longer it takes, in fewer.
 */
enum Rounds {
  /** What a figure is drawn of. */
  ALL(Integer.MAX_VALUE),

  /** What a figure is drawn of, and what takes minutes. */
  FIRST_THREE(3),

  /** What only rounds off the picture. */
  FIRST(1);

  private final int count;

  Rounds(int count) {
    this.count = count;
  }

  /** Whoever is asked for by name takes part in each round. */
  boolean include(int round) {
    return round < count || Settings.given("contestants");
  }
}
