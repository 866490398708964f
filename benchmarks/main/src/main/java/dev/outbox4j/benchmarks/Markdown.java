package dev.outbox4j.benchmarks;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** The kept results as a fragment of the documentation. */
final class Markdown {
  private static final List<String> COLUMNS =
      List.of(
          "rate",
          "transactions_per_second",
          "latency_p50_ms",
          "latency_p95_ms",
          "latency_p99_ms",
          "lateness_p50_ms",
          "lateness_p99_ms",
          "transaction_p99_ms",
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
          "heap_peak_mib");

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
    JsonNode about = root.path("about");
    text.append("Measured on ").append(about.path("date").asText());
    text.append(" at commit ").append(about.path("commit").asText());
    text.append(" (lanes: ").append(about.path("lanes").asText()).append("): ");
    text.append(joined(about.path("machine"))).append(".\n\nServer: ");
    text.append(joined(about.path("server"))).append(".\n\n");
    List<List<String>> figures = new ArrayList<>();
    figures.add(List.of("figure", "value"));
    root.properties()
        .forEach(
            entry -> {
              if (entry.getValue().isNumber()) {
                figures.add(
                    List.of(
                        "`" + entry.getKey() + "`", Tables.format(entry.getValue().asDouble())));
              }
            });
    text.append(Tables.render(figures)).append('\n');
    List<List<String>> contracts = new ArrayList<>();
    contracts.add(List.of("contestant", "contract"));
    root.path("contracts")
        .properties()
        .forEach(entry -> contracts.add(List.of(entry.getKey(), entry.getValue().asText())));
    text.append(Tables.render(contracts)).append('\n');
    root.path("cells")
        .properties()
        .forEach(
            cell ->
                text.append("### ")
                    .append(cell.getKey())
                    .append("\n\n")
                    .append(table(cell.getValue()))
                    .append('\n'));
    return text.toString();
  }

  private static String joined(JsonNode object) {
    List<String> parts = new ArrayList<>();
    object
        .properties()
        .forEach(entry -> parts.add(entry.getKey() + " " + entry.getValue().asText()));
    return String.join(", ", parts);
  }

  private static String table(JsonNode cell) {
    Set<String> present = new LinkedHashSet<>();
    for (String column : COLUMNS) {
      cell.properties()
          .forEach(
              contestant -> {
                if (contestant.getValue().has(column)) {
                  present.add(column);
                }
              });
    }
    List<List<String>> lines = new ArrayList<>();
    List<String> header = new ArrayList<>();
    header.add("contestant");
    header.addAll(present);
    lines.add(header);
    cell.properties()
        .forEach(
            contestant -> {
              List<String> line = new ArrayList<>();
              line.add(contestant.getKey());
              for (String column : present) {
                JsonNode value = contestant.getValue().path(column);
                line.add(
                    value.isMissingNode()
                        ? ""
                        : Tables.format(value.path("median").asDouble())
                            + (column.equals("rate")
                                ? " ("
                                    + Tables.format(value.path("min").asDouble())
                                    + " .. "
                                    + Tables.format(value.path("max").asDouble())
                                    + ")"
                                : ""));
              }
              lines.add(line);
            });
    return Tables.render(lines);
  }
}
