package dev.outbox4j.benchmarks.spi;

/** The slope of a backlog over time, by least squares. Not thread-safe. */
final class BacklogSlope {
  private double count;
  private double sumX;
  private double sumY;
  private double sumXx;
  private double sumXy;
  private double max;

  void sample(double seconds, double backlog) {
    count++;
    sumX += seconds;
    sumY += backlog;
    sumXx += seconds * seconds;
    sumXy += seconds * backlog;
    max = Math.max(max, backlog);
  }

  double perSecond() {
    double spread = count * sumXx - sumX * sumX;
    return spread == 0 ? 0 : (count * sumXy - sumX * sumY) / spread;
  }

  double max() {
    return max;
  }
}
