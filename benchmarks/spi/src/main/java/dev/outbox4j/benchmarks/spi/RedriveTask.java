package dev.outbox4j.benchmarks.spi;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.stream.DoubleStream;

/** Puts dead letters back, and compares the rate with the one that was asked for. */
final class RedriveTask {
  private static final double WINDOW_SECONDS = 10;

  private RedriveTask() {}

  static Numbers run(Redriving contestant, Bench bench, long letters, int perSecond)
      throws Exception {
    ProcessMeter meter = new ProcessMeter();
    long done = contestant.redrive(bench, perSecond);
    Numbers numbers = meter.read(done);
    double[] arrivals = arrivals(bench, contestant.arrivals());
    numbers
        .with("rate_vs_asked", numbers.values().getOrDefault("rate", 0.0) / perSecond)
        .with("missing", letters - arrivals.length)
        .with("repeated", done - arrivals.length);
    return evenness(arrivals, WINDOW_SECONDS, perSecond, numbers);
  }

  private static double[] arrivals(Bench bench, String query) throws SQLException {
    try (Connection connection = bench.dataSource().getConnection();
        Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery(query)) {
      DoubleStream.Builder arrivals = DoubleStream.builder();
      while (row.next()) {
        arrivals.add(row.getDouble(1));
      }
      return arrivals.build().toArray();
    }
  }

  /** Adds the least and the greatest rate of whole windows, if there is one. */
  static Numbers evenness(double[] arrivals, double seconds, int perSecond, Numbers into) {
    if (arrivals.length == 0) {
      return into;
    }
    double first = arrivals[0];
    int windows = (int) ((arrivals[arrivals.length - 1] - first) / seconds);
    if (windows == 0) {
      return into;
    }
    double[] counts = new double[windows];
    for (double arrival : arrivals) {
      int window = (int) ((arrival - first) / seconds);
      if (window < windows) {
        counts[window]++;
      }
    }
    double asked = seconds * perSecond;
    return into.with("slowest_10s_vs_asked", DoubleStream.of(counts).min().orElseThrow() / asked)
        .with("fastest_10s_vs_asked", DoubleStream.of(counts).max().orElseThrow() / asked);
  }
}
