package dev.outbox4j.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.xml.sax.InputSource;
import org.xml.sax.SAXException;

/** What can be seen in the pictures, and that the page shows them. */
class ChartsTest {
  private static final String DRAIN = "drain 1000000 x 256 B, 1 process";
  private static final String IDLE = "idle latency, one message every 20 to 60 ms";

  private final ObjectNode root = new ObjectMapper().createObjectNode();

  @Test
  void barsAreAsLongAsTheirValuesAndTheGreatestEndIsAtTheEdge() throws Exception {
    rate("outbox4j", 60_000, 50_000, 80_000);
    rate("raw-lease-twin", 40_000, 40_000, 40_000);
    rate("jobrunr", 2_000, 1_000, 3_000);

    Document svg = drawn("images/benchmarks-drain.svg");

    assertThat(texts(svg, "label")).containsExactly("outbox4j", "raw-lease-twin", "jobrunr");
    assertThat(texts(svg, "value"))
        .containsExactly(
            "60,000 (50,000 to 80,000)", "40,000 (40,000 to 40,000)", "2,000 (1,000 to 3,000)");
    List<Double> bars = numbers(svg, "rect", "bar", "width");
    double pixel = BarChart.PLOT / 80_000.0;
    assertThat(bars.get(0)).isCloseTo(60_000 * pixel, within(0.06));
    assertThat(bars.get(1)).isCloseTo(40_000 * pixel, within(0.06));
    assertThat(bars.get(2)).isCloseTo(2_000 * pixel, within(0.06));
    double zero = numbers(svg, "rect", "bar", "x").get(0);
    List<double[]> ranges = ranges(svg);
    assertThat(ranges).hasSize(2); // the twin's rounds were all the same
    assertThat(ranges.get(0)[0]).isCloseTo(zero + 50_000 * pixel, within(0.06));
    assertThat(ranges.get(0)[1]).isCloseTo(zero + BarChart.PLOT, within(0.06));
  }

  @Test
  void colourTellsWhoseBarItIsAndTheLegendWhichColour() throws Exception {
    rate("outbox4j", 3, 3, 3);
    rate("raw-best, claims of 2000, 1 at a time", 2, 2, 2);
    rate("jobrunr", 1, 1, 1);

    Document svg = drawn("images/benchmarks-drain.svg");

    List<String> bars = attributes(svg, "rect", "bar", "fill");
    assertThat(bars).doesNotHaveDuplicates().isEqualTo(attributes(svg, "rect", "legend", "fill"));
    assertThat(texts(svg, "note")).endsWith("Outbox4j", "SQL by hand", "another library");
  }

  @Test
  void onlyWhoPromisesTheSameWithTheSameMemoryIsCompared() throws Exception {
    rate("outbox4j", 4, 4, 4);
    rate("outbox4j-heap-128m", 3, 3, 3);
    rate("raw-bare-delete", 9, 9, 9);
    rate("raw-indexed-lease", 1, 1, 1);

    assertThat(texts(drawn("images/benchmarks-drain.svg"), "label")).containsExactly("outbox4j");
  }

  @Test
  void ratiosHaveTheirIntervalsAndAMarkWhereBothAreAsFast() throws Exception {
    root.put("drain_1m_vs_twin", 0.9).put("failures_vs_twin", 0.66666);
    root.putObject("intervals").putObject("drain_1m_vs_twin").put("low", 0.8).put("high", 1.25);

    Document svg = drawn("images/benchmarks-ratios.svg");

    assertThat(texts(svg, "value")).containsExactly("0.9 (0.8 to 1.25)", "0.67");
    assertThat(texts(svg, "note"))
        .contains("Those without a line are of one run, and have no interval.");
    double pixel = BarChart.PLOT / 1.25;
    double zero = numbers(svg, "rect", "bar", "x").get(0);
    assertThat(numbers(svg, "rect", "bar", "width").get(0)).isCloseTo(0.9 * pixel, within(0.06));
    assertThat(ranges(svg)).hasSize(1);
    assertThat(ranges(svg).get(0)[0]).isCloseTo(zero + 0.8 * pixel, within(0.06));
    assertThat(attributes(svg, "path", "reference", "d"))
        .hasSize(2)
        .allMatch(mark -> mark.startsWith("M%.1f ".formatted(zero + pixel)));
  }

  @Test
  void latencyHasTwoBarsForEachSource() throws Exception {
    ObjectNode source =
        root.withObjectProperty("cells").withObjectProperty(IDLE).putObject("outbox4j by r2dbc");
    metric(source, "latency_p50_ms", 2, 1, 3);
    metric(source, "latency_p99_ms", 6, 5, 9);

    Document svg = drawn("images/benchmarks-idle.svg");

    assertThat(texts(svg, "label"))
        .containsExactly("outbox4j by r2dbc: 50 %", "outbox4j by r2dbc: 99 %");
    assertThat(texts(svg, "value"))
        .containsExactly("2.00 ms (1.00 to 3.00)", "6.00 ms (5.00 to 9.00)");
  }

  @Test
  void pictureSaysOfWhichCommitItIsAndThatTheRunWasNotFull() throws Exception {
    rate("outbox4j", 1, 1, 1);
    root.putObject("about")
        .putObject("drain")
        .put("date", "2026-01-02")
        .put("commit", "abc")
        .put("amiss", "ended before its last round");

    assertThat(texts(drawn("images/benchmarks-drain.svg"), "note"))
        .contains(
            "Measured 2026-01-02 at commit abc.",
            "Not all of it in a full run; the page says why.");
  }

  @Test
  void namesWithSignsOfMarkupAreShownAsTheyAre() throws Exception {
    rate("a < b & c > d", 1, 1, 1);

    assertThat(texts(drawn("images/benchmarks-drain.svg"), "label"))
        .containsExactly("a < b & c > d");
  }

  @Test
  void backgroundIsItsOwnAndCoversAllThatIsDrawn() throws Exception {
    rate("outbox4j", 1, 1, 1);
    rate("jobrunr", 1, 1, 1);

    Document svg = drawn("images/benchmarks-drain.svg");

    double height = Double.parseDouble(svg.getDocumentElement().getAttribute("height"));
    assertThat(numbers(svg, "rect", "background", "height").get(0)).isEqualTo(height - 1);
    assertThat(texts(svg, "text", "y")).allMatch(y -> Double.parseDouble(y) < height);
  }

  @Test
  void pageShowsEachPictureAboveItsTableAndNoneWithoutResults(@TempDir Path folder)
      throws IOException {
    Path file = folder.resolve("benchmarks.json");
    rate("outbox4j", 1, 1, 1);
    Json.MAPPER.writeValue(file.toFile(), root);

    Report.writePage(file);

    assertThat(Files.readString(folder.resolve("benchmarks.md")))
        .containsPattern(
            "### " + DRAIN + "\n\n!\\[.*]\\(images/benchmarks-drain\\.svg\\)\n\n\\| contestant")
        .doesNotContain("benchmarks-ratios.svg", "benchmarks-idle.svg");
    try (var pictures = Files.list(folder.resolve("images"))) {
      assertThat(pictures).containsExactly(folder.resolve("images/benchmarks-drain.svg"));
    }
  }

  @Test
  void wideTablesAreShownInPartsThatLoseNothing() throws IOException {
    List<String> header = IntStream.rangeClosed(0, 12).mapToObj(i -> "column number " + i).toList();
    List<String> line = IntStream.rangeClosed(0, 12).mapToObj(i -> "value " + i).toList();

    String text = Tables.render(List.of(header, line));

    assertThat(text.lines()).allMatch(row -> row.length() <= Tables.WIDEST);
    String[] parts = text.split("\n\n");
    assertThat(parts).hasSizeGreaterThan(1);
    assertThat(parts).allMatch(part -> part.startsWith("| column number 0 |"));
    for (int i = 1; i <= 12; i++) {
      assertThat(text).containsOnlyOnce("| column number " + i + " |");
      assertThat(text).containsPattern("\\| +value " + i + " \\|");
    }
  }

  @Test
  void fewContestantsHaveAColumnEachAndManyALineEach() {
    List<String> header = List.of("contestant", "rate", "rounds");
    List<String> line = List.of("a contestant with a long name", "5", "3");

    assertThat(Tables.renderUpright(List.of(header, line)))
        .contains("| contestant | a contestant with a long name |\n")
        .containsPattern("\\| rate +\\| +5 \\|\n\\| rounds +\\| +3 \\|\n");
    assertThat(Tables.renderUpright(List.of(header, line, line, line, line)))
        .contains("| contestant                    | rate | rounds |\n");
  }

  private void rate(String label, double median, double min, double max) {
    metric(
        root.withObjectProperty("cells").withObjectProperty(DRAIN).putObject(label),
        "rate",
        median,
        min,
        max);
  }

  private static void metric(
      ObjectNode contestant, String name, double median, double min, double max) {
    contestant
        .putObject(name)
        .put("median", median)
        .put("min", min)
        .put("max", max)
        .put("rounds", 3);
  }

  private Document drawn(String file)
      throws IOException, SAXException, ParserConfigurationException {
    String svg =
        Charts.of(root).stream()
            .filter(picture -> picture.file().equals(file))
            .findFirst()
            .orElseThrow()
            .chart()
            .svg();
    return DocumentBuilderFactory.newInstance()
        .newDocumentBuilder()
        .parse(new InputSource(new StringReader(svg)));
  }

  private static List<Element> elements(Document svg, String tag) {
    return IntStream.range(0, svg.getElementsByTagName(tag).getLength())
        .mapToObj(i -> (Element) svg.getElementsByTagName(tag).item(i))
        .toList();
  }

  private static List<String> attributes(Document svg, String tag, String type, String name) {
    return elements(svg, tag).stream()
        .filter(element -> element.getAttribute("class").equals(type))
        .map(element -> element.getAttribute(name))
        .toList();
  }

  private static List<Double> numbers(Document svg, String tag, String type, String name) {
    return attributes(svg, tag, type, name).stream().map(Double::valueOf).toList();
  }

  private static List<String> texts(Document svg, String type) {
    return elements(svg, "text").stream()
        .filter(element -> element.getAttribute("class").equals(type))
        .map(Element::getTextContent)
        .toList();
  }

  private static List<String> texts(Document svg, String tag, String name) {
    return elements(svg, tag).stream().map(element -> element.getAttribute(name)).toList();
  }

  /** From where to where the lines on the bars go. */
  private static List<double[]> ranges(Document svg) {
    Pattern line = Pattern.compile("M([0-9.]+) [0-9]+H([0-9.]+)M");
    return attributes(svg, "path", "range", "d").stream()
        .map(
            path -> {
              Matcher matcher = line.matcher(path);
              assertThat(matcher.find()).as(path).isTrue();
              return new double[] {
                Double.parseDouble(matcher.group(1)), Double.parseDouble(matcher.group(2))
              };
            })
        .toList();
  }
}
