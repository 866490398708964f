package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/** Results as text. */
final class Tables {
  /** What a lane is about, the first of these that it has: the metric that ratios are of. */
  private static final List<String> LEADING =
      List.of("latency_p50_ms", "lateness_p50_ms", "rate");

  private static final Set<String> HIDDEN =
      Set.of(
          "complete",
          "start_ns",
          "end_ns",
          "messages",
          "seconds",
          "handled",
          "missing",
          "early",
          "published_too_late_s",
          "repeated");

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

  /** A table of one cell in Markdown, which reads as text, too. */
  static String table(Map<String, List<Numbers>> contestants) {
    List<String> metrics = new ArrayList<>();
    contestants
        .values()
        .forEach(
            rounds ->
                rounds.forEach(
                    numbers ->
                        numbers.values().keySet().stream()
                            .filter(metric -> !HIDDEN.contains(metric))
                            .filter(metric -> !metrics.contains(metric))
                            .forEach(metrics::add)));
    List<String> labels = new ArrayList<>(new LinkedHashSet<>(contestants.keySet()));
    String lead = leading(metrics);
    metrics.remove(lead);
    metrics.add(0, lead);
    List<List<String>> lines = new ArrayList<>();
    List<String> header = new ArrayList<>(List.of("contestant", lead, "spread", "rounds", "ratio"));
    metrics.stream().skip(1).forEach(header::add);
    lines.add(header);
    double base =
        Spread.of(rounds(contestants, labels.get(0)), lead).map(Spread::median).orElse(Double.NaN);
    for (String label : labels) {
      List<String> line = new ArrayList<>();
      line.add(label);
      Spread spread =
          Spread.of(rounds(contestants, label), lead)
              .orElse(new Spread(Double.NaN, Double.NaN, Double.NaN, 0));
      line.add(format(spread.median()));
      line.add(format(spread.min()) + " .. " + format(spread.max()));
      line.add(Integer.toString(spread.rounds()));
      line.add(format(spread.median() / base));
      for (String metric : metrics.subList(1, metrics.size())) {
        line.add(
            Spread.of(rounds(contestants, label), metric).map(s -> format(s.median())).orElse(""));
      }
      lines.add(line);
    }
    return render(lines);
  }

  private static List<Numbers> rounds(Map<String, List<Numbers>> contestants, String label) {
    return contestants.getOrDefault(label, List.of());
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
