package dev.outbox4j.postgres.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.QueueDepth;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** The code, the registry, Prometheus and the documentation name the same gauges. */
class DepthMetersDocumentedTest {
  private static final List<Path> DOCUMENTS =
      Stream.of("metrics.md", "operations/troubleshooting.md")
          .map(Path.of("..", "docs")::resolve)
          .toList();

  /** A line such as: - `name`, `prometheus_name`, tags `a`, `b`: Meaning. */
  private static final Pattern LINE =
      Pattern.compile(
          "- `(outbox\\.depth\\.[a-z.]+)`, `([a-z_]+)`, tags? ((?:`\\w+`(?:, )?)+): (.*)");

  private record Told(String name, List<String> tags, String meaning) {}

  private record Documented(Told told, String prometheus) {}

  @Test
  void isDocumentedAsTheCodeDefinesIt() throws IOException {
    assertThat(documented().stream().map(Documented::told))
        .containsExactlyElementsOf(
            Arrays.stream(DepthMeters.values())
                .map(meter -> new Told(meter.id(), meter.tags(), meter.description()))
                .toList());
  }

  @Test
  void registersWhatTheCodeDefinesAndNothingElse() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    DepthGauges gauges = new DepthGauges(registry, "outbox", () -> 0);
    gauges.open();
    gauges.show(
        List.of(new QueueDepth("a", 1, 1, 1, false, Optional.empty(), Optional.empty())), 1);

    assertThat(registry.getMeters())
        .allMatch(meter -> meter.getId().getType() == Meter.Type.GAUGE)
        .extracting(Meter::getId)
        .extracting(
            id ->
                line(
                    id.getName(),
                    id.getBaseUnit(),
                    id.getDescription(),
                    id.getTags().stream().map(Tag::getKey)))
        .containsExactlyInAnyOrderElementsOf(
            Arrays.stream(DepthMeters.values())
                .map(
                    meter ->
                        line(meter.id(), meter.unit(), meter.description(), meter.tags().stream()))
                .toList());
  }

  private static String line(
      String name, @Nullable String unit, @Nullable String meaning, Stream<String> tags) {
    return name + ", " + unit + ", " + tags.sorted().toList() + ": " + meaning;
  }

  @Test
  void isScrapedByPrometheusUnderTheNameInTheDocument() throws IOException {
    PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    DepthGauges gauges = new DepthGauges(registry, "outbox", () -> 0);
    gauges.open();
    gauges.show(
        List.of(new QueueDepth("a", 1, 1, 1, false, Optional.empty(), Optional.empty())), 1);

    Set<String> scraped =
        registry
            .scrape()
            .lines()
            .filter(line -> line.startsWith("# TYPE ") && line.endsWith(" gauge"))
            .map(line -> line.split(" ", -1)[2])
            .collect(Collectors.toSet());

    assertThat(scraped)
        .containsExactlyInAnyOrderElementsOf(
            documented().stream().map(Documented::prometheus).toList())
        .contains("outbox_depth_oldest_ready_seconds");
  }

  @Test
  void usesNoNameInTheDocumentsThatPrometheusDoesNotKnow() throws IOException {
    Set<String> known =
        documented().stream().map(Documented::prometheus).collect(Collectors.toSet());
    for (Path document : DOCUMENTS) {
      Set<String> used =
          Pattern.compile("\\boutbox_depth_[a-z_]+")
              .matcher(Files.readString(document))
              .results()
              .map(MatchResult::group)
              .collect(Collectors.toSet());

      assertThat(used).as("%s", document).isNotEmpty().isSubsetOf(known);
    }
  }

  private static List<Documented> documented() throws IOException {
    // an entry goes on in lines that are indented
    String text = Files.readString(DOCUMENTS.get(0)).replaceAll("\n  (?=\\S)", " ");
    return text.lines()
        .map(LINE::matcher)
        .filter(Matcher::matches)
        .map(
            line ->
                new Documented(
                    new Told(
                        line.group(1),
                        List.of(line.group(3).replace("`", "").split(", ")),
                        line.group(4)),
                    line.group(2)))
        .toList();
  }
}
