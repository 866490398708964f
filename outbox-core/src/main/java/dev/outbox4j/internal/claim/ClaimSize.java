package dev.outbox4j.internal.claim;

/** How many rows a claim asks for, by the size of those before. Confined to the fetcher. */
final class ClaimSize {
  /** How far an answer moves the average. */
  private static final double SMOOTHING = 0.25;

  /** More rows than fit by their average: the claim itself ends where the bytes do. */
  private static final double GENEROUS = 1.5;

  private double averageBytes;

  /** Returns how many rows to ask for, of so many and of so many bytes that there is room for. */
  int rows(int room, long bytes) {
    return (int) Math.min(room, 1 + GENEROUS * bytes / averageBytes); // all, if nothing has a size
  }

  /** Learns from an answer that has rows. */
  void learn(int rows, long bytes) {
    double average = (double) bytes / rows;
    averageBytes =
        averageBytes == 0 ? average : averageBytes + SMOOTHING * (average - averageBytes);
  }
}
