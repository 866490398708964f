package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.util.Collection;
import java.util.List;
import java.util.Locale;

/** Results as text. */
final class Tables {
  /** What a lane is about, the first of these that it has: the metric that ratios are of. */
  private static final List<String> LEADING =
      List.of("latency_p50_ms", "lateness_p50_ms", "age_after_commit_max_ms", "rate");

  private Tables() {}

  static String leading(Collection<String> metrics) {
    return LEADING.stream()
        .filter(metrics::contains)
        .findFirst()
        .orElseGet(() -> metrics.iterator().next());
  }

  static String headline(Numbers numbers) {
    String metric = leading(numbers.values().keySet());
    String warning =
        numbers.values().getOrDefault("complete", 1.0) < 1 ? ", cut short at its time limit" : "";
    String repeated =
        numbers.values().getOrDefault("repeated", 0.0) > 0
            ? ", repeated " + format(numbers.values().getOrDefault("repeated", 0.0))
            : "";
    return metric + " " + format(numbers.values().getOrDefault(metric, 0.0)) + warning + repeated;
  }

  static String interval(String value, String low, String high) {
    return "%s (%s to %s)".formatted(value, low, high);
  }

  static String render(List<List<String>> lines) {
    int columns = lines.get(0).size();
    int[] widths = new int[columns];
    lines.forEach(
        line -> {
          for (int i = 0; i < columns; i++) {
            widths[i] = Math.max(widths[i], line.get(i).length());
          }
        });
    StringBuilder text = new StringBuilder();
    for (int row = 0; row < lines.size(); row++) {
      text.append('|');
      for (int i = 0; i < columns; i++) {
        String cell = lines.get(row).get(i);
        String padding = " ".repeat(widths[i] - cell.length());
        text.append(' ').append(i == 0 ? cell + padding : padding + cell).append(" |");
      }
      text.append('\n');
      if (row == 0) {
        text.append('|');
        for (int i = 0; i < columns; i++) {
          text.append(i == 0 ? "---" : "---:").append('|');
        }
        text.append('\n');
      }
    }
    return text.toString();
  }

  static String format(double value) {
    if (Double.isNaN(value)) {
      return "-";
    }
    double size = Math.abs(value);
    String pattern = size >= 1000 ? "%,.0f" : size >= 100 ? "%.0f" : size >= 1 ? "%.2f" : "%.4f";
    return String.format(Locale.ROOT, pattern, value);
  }
}
