package dev.outbox4j.benchmarks;

import com.fasterxml.jackson.databind.JsonNode;
import dev.outbox4j.benchmarks.BarChart.Bar;
import dev.outbox4j.benchmarks.BarChart.Kind;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

/** The kept results as pictures beside the page. */
final class Charts {
  private static final String DRAIN = "drain 1000000 x 256 B, 1 process";
  private static final String PEERS = PeersLane.cell(1_000_000);
  private static final String IDLE = "idle latency, one message every 20 to 60 ms";

  /** Figures that are a rate of ours by another one: the name, what it says, and the lane. */
  private static final List<List<String>> RATIOS =
      List.of(
          List.of("drain_1m_vs_twin", "drain of a million, against the twin", "drain"),
          List.of(
              "drain_1m_vs_twin_default_settings", "the same with default settings then", "drain"),
          List.of("drain_1m_vs_raw_best", "against the fastest by hand", "drain"),
          List.of("drain_1m_2_processes_vs_twin", "two processes, against the twin", "drain"),
          List.of("flat_10m_vs_100k", "backlog of 10 million, against 100,000", "drain"),
          List.of("xmin_held_vs_twin", "beside an open transaction, against twin", "xmin"),
          List.of("xmin_held_vs_free", "beside an open transaction, against none", "xmin"),
          List.of("failures_vs_twin", "drain with failures, against the twin", "failures"),
          List.of("sweep_running_vs_free", "above dead rows, against none", "sweep"),
          List.of("publish_100_vs_insert", "publishing batches, against inserts", "publish"),
          List.of("auto_vs_never_32_writers", "AUTO against NEVER, 32 writers", "publish"),
          List.of("auto_vs_never_8_subscribers", "AUTO against NEVER, 8 subscribers", "publish"));

  private Charts() {}

  /**
   * A picture of the page.
   *
   * @param file where it is, as seen from the page
   * @param cell the cell that it is about; empty if it is about the figures
   * @param alt what it shows, for whoever does not see it
   * @param chart what is drawn
   */
  record Picture(String file, String cell, String alt, BarChart chart) {
    String markdown() {
      return "![%s](%s)%n".formatted(alt, file);
    }
  }

  /** Those that there are results for. */
  static List<Picture> of(JsonNode root) {
    return Stream.of(ratios(root), throughput(root), latency(root))
        .flatMap(Optional::stream)
        .toList();
  }

  /** Writes them beside a page. */
  static void write(Path page, JsonNode root) throws IOException {
    for (Picture picture : of(root)) {
      Path file = page.resolveSibling(picture.file());
      Files.createDirectories(file.toAbsolutePath().getParent());
      Files.writeString(file, picture.chart().svg());
    }
  }

  private static Optional<Picture> ratios(JsonNode root) {
    List<Bar> bars = new ArrayList<>();
    Set<String> lanes = new LinkedHashSet<>();
    for (List<String> ratio : RATIOS) {
      JsonNode value = root.path(ratio.get(0));
      if (value.isNumber()) {
        JsonNode interval = root.path("intervals").path(ratio.get(0));
        bars.add(
            new Bar(
                ratio.get(1),
                Markdown.rounded(value, interval)
                    + (interval.isMissingNode() ? "" : " (" + Markdown.ends(interval) + ")"),
                value.asDouble(),
                interval.path("low").asDouble(),
                interval.path("high").asDouble(),
                Kind.OURS));
        lanes.add(ratio.get(2));
      }
    }
    List<String> notes = new ArrayList<>();
    notes.add("Quotients of rates: more is better, and at the red mark both are as fast.");
    notes.add("The twin: the statements of the library, sent by hand.");
    if (bars.stream().anyMatch(bar -> bar.high() > bar.low())) {
      notes.add("The line, and the brackets: the interval of the rounds.");
    }
    if (bars.stream().anyMatch(bar -> bar.high() <= bar.low())) {
      notes.add("Those without a line are of one run, and have no interval.");
    }
    notes.addAll(measured(root, lanes));
    return picture(
        "ratios",
        "",
        "Bars: rates of Outbox4j, divided by those of the same work by hand or undisturbed. The"
            + " table below has the numbers.",
        new BarChart("Beside SQL by hand, and beside itself undisturbed", notes, bars, 1));
  }

  private static Optional<Picture> throughput(JsonNode root) {
    boolean beside = root.path("cells").has(PEERS); // where they are not, they were of the drain
    String cell = beside ? PEERS : DRAIN;
    List<Bar> bars = new ArrayList<>();
    for (Map.Entry<String, JsonNode> contestant : root.path("cells").path(cell).properties()) {
      JsonNode rate = contestant.getValue().path("rate");
      if (rate.has("median") && isCompared(contestant.getKey())) {
        bars.add(bar(contestant.getKey(), rate, ""));
      }
    }
    bars.sort(Comparator.comparingDouble(Bar::value).reversed());
    List<String> notes = new ArrayList<>();
    notes.add("Messages a second, from a backlog of a million, in one process.");
    notes.add("The median of the rounds; the line, and the brackets: the extremes.");
    notes.addAll(measured(root, Set.of(beside ? "peers" : "drain")));
    return picture(
        "drain",
        cell,
        "Bars: messages a second of Outbox4j and of the same statements by hand"
            + (beside ? ", and of other libraries" : "")
            + ". The table below has the numbers.",
        new BarChart("Working off a backlog", notes, bars, 0));
  }

  /** Who does the same work under the same promise, with the memory of all others. */
  private static boolean isCompared(String label) {
    return label.startsWith("raw-")
        ? label.equals(Roster.TWIN.label()) || label.startsWith("raw-best")
        : !label.equals(Roster.SMALL_HEAP.label());
  }

  private static Optional<Picture> latency(JsonNode root) {
    List<Bar> bars = new ArrayList<>();
    for (Map.Entry<String, JsonNode> contestant : root.path("cells").path(IDLE).properties()) {
      for (String percent : List.of("50", "99")) {
        JsonNode latency = contestant.getValue().path("latency_p" + percent + "_ms");
        if (latency.has("median")) {
          bars.add(bar(contestant.getKey() + ": " + percent + " %", latency, " ms"));
        }
      }
    }
    List<String> notes = new ArrayList<>();
    notes.add("Of a single message now and then: 50 and 99 of a hundred come within.");
    notes.add("The median of the rounds; the line, and the brackets: the extremes.");
    notes.addAll(measured(root, Set.of("idle")));
    return picture(
        "idle",
        IDLE,
        "Bars: the latency of half of the messages and of 99 in a hundred, by LISTEN source. The"
            + " table below has the numbers.",
        new BarChart("From the commit to the handler, when idle", notes, bars, 0));
  }

  private static Bar bar(String label, JsonNode metric, String unit) {
    double value = metric.path("median").asDouble();
    double low = metric.path("min").asDouble();
    double high = metric.path("max").asDouble();
    return new Bar(
        label,
        Tables.interval(Tables.format(value) + unit, Tables.format(low), Tables.format(high)),
        value,
        low,
        high,
        kind(label));
  }

  private static Kind kind(String label) {
    if (label.startsWith("outbox4j")) {
      return Kind.OURS;
    }
    return label.startsWith("raw-") ? Kind.BY_HAND : Kind.PEER;
  }

  /** What the page says of the lanes, for whoever sees the picture elsewhere. */
  private static List<String> measured(JsonNode root, Set<String> lanes) {
    List<JsonNode> abouts = lanes.stream().map(lane -> root.path("about").path(lane)).toList();
    List<String> when =
        abouts.stream()
            .map(
                about ->
                    about.path("date").asText() + " at commit " + about.path("commit").asText())
            .distinct()
            .toList();
    List<String> notes = new ArrayList<>();
    notes.add(
        when.size() == 1
            ? "Measured " + when.get(0) + "."
            : "Measured at several commits, which the page names.");
    if (abouts.stream().anyMatch(about -> about.has("amiss"))) {
      notes.add("Not all of it in a full run; the page says why.");
    }
    return notes;
  }

  private static Optional<Picture> picture(String name, String cell, String alt, BarChart chart) {
    return chart.bars().isEmpty()
        ? Optional.empty()
        : Optional.of(new Picture("images/benchmarks-" + name + ".svg", cell, alt, chart));
  }
}
