package dev.outbox4j.benchmarks;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.MathContext;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Collectors;

/** The kept results as a fragment of the documentation. */
final class Markdown {
  private static final List<String> COLUMNS =
      List.of(
          "rate",
          "rate_vs_asked",
          "slowest_10s_vs_asked",
          "fastest_10s_vs_asked",
          "transactions_per_second",
          "latency_p50_ms",
          "latency_p95_ms",
          "latency_p99_ms",
          "latency_max_ms",
          "scheduled_p50_ms",
          "scheduled_p99_ms",
          "scheduled_max_ms",
          "lateness_p50_ms",
          "lateness_p99_ms",
          "lag_mean_ms",
          "lag_error_share",
          "core_share",
          "age_after_commit_p50_ms",
          "age_after_commit_p99_ms",
          "age_after_commit_max_ms",
          "late_messages",
          "backlog_least",
          "p50_ms_1",
          "last_vs_first_p50_ms",
          "p99_ms_1",
          "last_vs_first_p99_ms",
          "heap_least_mib_1",
          "last_vs_first_heap_least_mib",
          "size_mib_1",
          "last_vs_first_size_mib",
          "autovacuums_10",
          "xid_age_10",
          "transaction_p99_ms",
          "notifications_per_message",
          "wakes_by_name_per_message",
          "claims_per_message",
          "empty_claims_per_message",
          "busiest_share",
          "seconds_to_drain",
          "out_of_memory_errors",
          "rows_leased",
          "restarted_rate",
          "late_row_s",
          "restarted_late_row_s",
          "full_sweep_ms",
          "sweep_limit_ms",
          "backlog_slope_per_s",
          "statements_per_message",
          "round_trips_per_message",
          "wal_bytes_per_message",
          "hot_share",
          "dead_tuples",
          "tables_mib",
          "indexes_mib",
          "connections_peak",
          "cpu_us_per_message",
          "server_cpu_us_per_message",
          "heap_peak_mib");

  private static final Set<String> SPREAD =
      Set.of(
          "rate",
          "rate_vs_asked",
          "slowest_10s_vs_asked",
          "fastest_10s_vs_asked",
          "latency_p50_ms",
          "latency_p99_ms",
          "latency_max_ms",
          "scheduled_p99_ms",
          "lateness_p50_ms",
          "lateness_p99_ms",
          "lag_error_share",
          "core_share",
          "age_after_commit_max_ms",
          "notifications_per_message",
          "claims_per_message",
          "restarted_rate",
          "late_row_s",
          "restarted_late_row_s");

  /** Worth a column only where it is not as it should be. */
  private static final Map<String, Double> UNUSUAL =
      new TreeMap<>(
          Map.of(
              "complete",
              1.0,
              "missing",
              0.0,
              "early",
              0.0,
              "repeated",
              0.0,
              "left_out",
              0.0,
              "rows_left",
              0.0));

  private static final String BEGIN = "<!-- figures: written by the run -->\n";
  private static final String END = "<!-- end of figures -->\n";

  private Markdown() {}

  /** Replaces the figures in a page, or adds them to one that has none. */
  static String within(String page, JsonNode root) {
    String figures = BEGIN + "\n" + of(root) + END;
    int begin = page.indexOf(BEGIN);
    int end = page.indexOf(END);
    if (begin < 0 || end < begin) {
      return page + figures;
    }
    return page.substring(0, begin) + figures + page.substring(end + END.length());
  }

  static String of(JsonNode root) {
    StringBuilder text = new StringBuilder();
    text.append(about(root.path("about"))).append('\n');
    List<Charts.Picture> pictures = Charts.of(root);
    text.append(pictures(pictures, ""));
    List<List<String>> figures = new ArrayList<>();
    figures.add(List.of("figure", "value", "interval", "rounds", "coverage"));
    root.properties()
        .forEach(
            entry -> {
              if (entry.getValue().isNumber()) {
                figures.add(figure(entry, root.path("intervals").path(entry.getKey())));
              }
            });
    if (figures.size() > 1) {
      text.append(Tables.render(figures)).append('\n');
      text.append(before(root.path("intervals")));
      text.append(ofExtremes(root.path("intervals")));
    }
    text.append(contestants(root)).append('\n');
    root.path("cells")
        .properties()
        .forEach(
            cell ->
                text.append("### ")
                    .append(cell.getKey())
                    .append("\n\n")
                    .append(pictures(pictures, cell.getKey()))
                    .append(table(cell.getValue()))
                    .append('\n'));
    return text.toString();
  }

  private static String pictures(List<Charts.Picture> pictures, String cell) {
    return pictures.stream()
        .filter(picture -> picture.cell().equals(cell))
        .map(picture -> picture.markdown() + "\n")
        .collect(Collectors.joining());
  }

  /** What was drawn before there were intervals may have none, and has hardly any digits then. */
  private static List<String> figure(Map.Entry<String, JsonNode> figure, JsonNode interval) {
    String name = "`" + figure.getKey() + "`";
    String rounded = rounded(figure.getValue(), interval);
    if (interval.isMissingNode()) {
      return List.of(name, rounded, "one run, no interval", "", "");
    }
    return List.of(
        name,
        rounded,
        interval.path("rounds").asInt() == 1 ? "one round, no interval" : ends(interval),
        interval.path("rounds").asText(),
        coverage(interval));
  }

  static String rounded(JsonNode figure, JsonNode interval) {
    return interval.isMissingNode()
        ? figure.decimalValue().round(new MathContext(2)).toPlainString()
        : plain(figure);
  }

  private static String coverage(JsonNode interval) {
    int percent = interval.path("coverage_percent").asInt();
    String least = isOfExtremes(interval) ? "at least " : "";
    return percent == 0 ? "none" : least + percent + " %";
  }

  /** The rounds were not kept, but the least and the greatest of what they measured. */
  private static boolean isOfExtremes(JsonNode interval) {
    return interval.path("of_extremes").asBoolean();
  }

  static String ends(JsonNode interval) {
    return interval.isMissingNode()
        ? ""
        : plain(interval.path("low")) + " to " + plain(interval.path("high"));
  }

  /** What the run before said of the figures that two runs have drawn, and how many agree. */
  private static String before(JsonNode intervals) {
    List<List<String>> lines = new ArrayList<>();
    lines.add(List.of("figure", "interval of the run before", "measured", "at commit"));
    intervals
        .properties()
        .forEach(
            figure -> {
              JsonNode before = figure.getValue().path("before");
              if (!before.isMissingNode()) {
                lines.add(
                    List.of(
                        "`" + figure.getKey() + "`",
                        ends(before),
                        before.path("date").asText("not kept"),
                        before.path("commit").asText("not kept")));
              }
            });
    return lines.size() == 1 ? "" : Tables.render(lines) + "\n" + agreement(intervals) + "\n";
  }

  /** Of the figures whose interval says something of more rounds. */
  private static String agreement(JsonNode intervals) {
    List<JsonNode> covered =
        intervals.valueStream().filter(node -> node.path("coverage_percent").asInt() > 0).toList();
    List<JsonNode> twice = covered.stream().filter(node -> node.has("before")).toList();
    long agree = twice.stream().filter(node -> overlap(node, node.path("before"))).count();
    return twice.isEmpty()
        ? ""
        : "Two runs have drawn %d of the %d figures with a coverage. %d of these agree: their intervals overlap.%n"
            .formatted(twice.size(), covered.size(), agree);
  }

  private static String ofExtremes(JsonNode intervals) {
    long count = intervals.valueStream().filter(Markdown::isOfExtremes).count();
    return count == 0
        ? ""
        : """
          Of %d of the figures not each round was kept, but the least and the greatest of what is in them. Their interval
          is the widest that any rounds between these would have.

          """
            .formatted(count);
  }

  private static boolean overlap(JsonNode one, JsonNode other) {
    return one.path("low").asDouble() <= other.path("high").asDouble()
        && other.path("low").asDouble() <= one.path("high").asDouble();
  }

  private static String plain(JsonNode number) {
    return number.decimalValue().toPlainString();
  }

  private static String about(JsonNode about) {
    StringBuilder text = new StringBuilder();
    text.append(
        folded(
            "Measured",
            about,
            lane -> lane.path("date").asText() + " at commit " + lane.path("commit").asText()));
    text.append(folded("No full run", about, lane -> lane.path("amiss").asText()));
    text.append(folded("Machine", about, lane -> joined(lane.path("machine"), " ")));
    text.append(folded("Server", about, lane -> joined(lane.path("server"), " ")));
    text.append(folded("Client heap", about, lane -> lane.path("client_heap").asText()));
    Set<String> modules = new LinkedHashSet<>();
    about.forEach(lane -> lane.path("versions").fieldNames().forEachRemaining(modules::add));
    for (String module : modules) {
      text.append(
          folded(
              "Versions in `" + module + "`",
              about,
              lane -> joined(lane.path("versions").path(module), " ")));
    }
    return text.toString();
  }

  /** A line for each value, with the lanes that have it. */
  private static String folded(String title, JsonNode about, Function<JsonNode, String> field) {
    Map<String, List<String>> lanes = new LinkedHashMap<>();
    about
        .properties()
        .forEach(
            lane ->
                lanes
                    .computeIfAbsent(field.apply(lane.getValue()), value -> new ArrayList<>())
                    .add(lane.getKey()));
    lanes.remove("");
    StringBuilder text = new StringBuilder();
    lanes.forEach(
        (value, names) ->
            text.append(
                Tables.item("%s (%s): %s.".formatted(title, String.join(", ", names), value))));
    return text.toString();
  }

  /** Those that are in a table, as a list: what they promise is too long for one. */
  private static String contestants(JsonNode root) {
    Set<String> labels = new LinkedHashSet<>();
    root.path("cells").forEach(cell -> cell.fieldNames().forEachRemaining(labels::add));
    StringBuilder text = new StringBuilder();
    for (String label : labels) {
      String settings = joined(root.path("settings").path(label), "=");
      text.append(
          Tables.item(
              "**%s**: %s.%s"
                  .formatted(
                      label,
                      root.path("contracts").path(label).asText(),
                      settings.isEmpty() ? "" : " *Settings:* " + settings + ".")));
    }
    return text.toString();
  }

  private static String joined(JsonNode object, String between) {
    List<String> parts = new ArrayList<>();
    object
        .properties()
        .forEach(entry -> parts.add(entry.getKey() + between + entry.getValue().asText()));
    return String.join(", ", parts);
  }

  /** A table of one cell, which reads as text, too. */
  static String table(JsonNode cell) {
    List<String> columns =
        COLUMNS.stream().filter(column -> cell.findValue(column) != null).toList();
    List<String> unusual =
        UNUSUAL.keySet().stream()
            .filter(column -> cell.valueStream().anyMatch(c -> isUnusual(c.path(column), column)))
            .toList();
    String leading = Tables.leading(columns);
    double base = median(cell.iterator().next().path(leading));
    List<List<String>> lines = new ArrayList<>();
    List<String> header = new ArrayList<>(List.of("contestant", "rounds", "ratio of " + leading));
    header.addAll(columns);
    header.addAll(unusual);
    lines.add(header);
    cell.properties()
        .forEach(
            contestant -> {
              JsonNode lead = contestant.getValue().path(leading);
              List<String> line = new ArrayList<>();
              line.add(contestant.getKey());
              line.add(lead.path("rounds").asText());
              line.add(Tables.format(median(lead) / base));
              for (String column : columns) {
                line.add(value(contestant.getValue().path(column), SPREAD.contains(column)));
              }
              for (String column : unusual) {
                line.add(value(contestant.getValue().path(column), false));
              }
              lines.add(line);
            });
    return Tables.renderUpright(lines);
  }

  private static boolean isUnusual(JsonNode metric, String name) {
    double usual = UNUSUAL.getOrDefault(name, Double.NaN);
    return metric.has("median")
        && (metric.path("min").asDouble() != usual || metric.path("max").asDouble() != usual);
  }

  private static double median(JsonNode metric) {
    return metric.path("median").asDouble(Double.NaN);
  }

  private static String value(JsonNode metric, boolean spread) {
    if (metric.isMissingNode()) {
      return "";
    }
    String median = Tables.format(median(metric));
    return spread
        ? "%s (%s .. %s)"
            .formatted(
                median,
                Tables.format(metric.path("min").asDouble()),
                Tables.format(metric.path("max").asDouble()))
        : median;
  }
}
