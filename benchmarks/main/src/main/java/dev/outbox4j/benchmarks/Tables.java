package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Results as text. */
final class Tables {
  /** What a lane is about, the first of these that it has: the metric that ratios are of. */
  private static final List<String> LEADING =
      List.of("latency_p50_ms", "lateness_p50_ms", "age_after_commit_max_ms", "rate");

  /** So that a line of the page can be read without scrolling. */
  static final int WIDEST = 120;

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

  /** An entry of a list, in lines that are not too long. */
  static String item(String text) {
    StringBuilder item = new StringBuilder("-");
    int length = 1;
    for (String word : text.split(" ", -1)) {
      if (length + 1 + word.length() > WIDEST && length > 1) {
        item.append("\n ");
        length = 1;
      }
      item.append(' ').append(word);
      length += 1 + word.length();
    }
    return item.append('\n').toString();
  }

  /**
   * A table of a few contestants and many metrics: with a column for each contestant, if that is
   * not too wide.
   */
  static String renderUpright(List<List<String>> lines) {
    List<List<String>> upright =
        IntStream.range(0, lines.get(0).size())
            .mapToObj(i -> lines.stream().map(line -> line.get(i)).toList())
            .toList();
    boolean narrow = Arrays.stream(widths(upright)).map(width -> width + 3).sum() < WIDEST;
    return render(narrow ? upright : lines);
  }

  /** A table; if it is too wide, several of some columns each, and each with the first column. */
  static String render(List<List<String>> lines) {
    int[] widths = widths(lines);
    List<String> tables = new ArrayList<>();
    int from = 1;
    do {
      int to = from;
      int width = widths[0] + 4;
      while (to < widths.length && (to == from || width + widths[to] + 3 <= WIDEST)) {
        width += widths[to] + 3;
        to++;
      }
      tables.add(render(columns(lines, from, to), widths(columns(lines, from, to))));
      from = to;
    } while (from < widths.length);
    return String.join("\n", tables);
  }

  private static List<List<String>> columns(List<List<String>> lines, int from, int to) {
    return lines.stream()
        .map(
            line -> Stream.concat(Stream.of(line.get(0)), line.subList(from, to).stream()).toList())
        .toList();
  }

  private static int[] widths(List<List<String>> lines) {
    int[] widths = new int[lines.get(0).size()];
    lines.forEach(
        line -> {
          for (int i = 0; i < widths.length; i++) {
            widths[i] = Math.max(widths[i], line.get(i).length());
          }
        });
    return widths;
  }

  private static String render(List<List<String>> lines, int[] widths) {
    int columns = widths.length;
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
