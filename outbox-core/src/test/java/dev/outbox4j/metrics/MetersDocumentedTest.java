package dev.outbox4j.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** The code, the registry, Prometheus and the documentation name the same meters. */
class MetersDocumentedTest {
  private static final Path DOCUMENT = Path.of("..", "docs", "metrics.md");
  private static final Pattern ENTRY =
      Pattern.compile(
          "- `(?<name>[a-z.]+)`: (?<meaning>.+)\\. \\*Kind:\\* (?<kind>[a-z]+)( in (?<unit>[a-z]+))?"
              + "\\. \\*Prometheus:\\* `(?<prometheus>[a-z_]+)`\\. \\*Tags:\\* (?<tags>.+)\\.");

  private static final FakeDelivery DELIVERY = new FakeDelivery("orders", "order.placed");

  /** A meter as one of the four sources tells it. */
  private record Told(String name, String kind, String unit, List<String> tags, String meaning) {}

  private record Documented(Told told, String prometheus) {}

  @Test
  void isDocumentedAsTheCodeDefinesIt() throws IOException {
    assertThat(documented().stream().map(Documented::told)).containsExactlyElementsOf(defined());
  }

  @Test
  void registersWhatTheCodeDefinesAndNothingElse() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    MicrometerMetrics metrics = MicrometerMetrics.on(registry);
    metrics.started("s", Events.FULL, Events::running);
    Events.all(metrics, "s", DELIVERY);

    Set<Told> registered =
        registry.getMeters().stream()
            .map(Meter::getId)
            .map(
                id ->
                    new Told(
                        id.getName(),
                        id.getType() == Meter.Type.DISTRIBUTION_SUMMARY
                            ? "summary"
                            : id.getType().name().toLowerCase(Locale.ROOT),
                        id.getBaseUnit() == null ? "" : id.getBaseUnit(),
                        id.getTags().stream().map(Tag::getKey).sorted().toList(),
                        String.valueOf(id.getDescription())))
            .collect(Collectors.toSet());

    assertThat(registered)
        .containsExactlyInAnyOrderElementsOf(
            defined().stream()
                .map(
                    told ->
                        new Told(
                            told.name(),
                            told.kind(),
                            told.unit(),
                            told.tags().stream().sorted().toList(),
                            told.meaning()))
                .toList());
  }

  @Test
  void isScrapedByPrometheusUnderTheNameInTheDocument() throws IOException {
    PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    MicrometerMetrics metrics = MicrometerMetrics.on(registry);
    metrics.started("s", Events.FULL, Events::running);
    Events.all(metrics, "s", DELIVERY);

    Map<String, String> scraped =
        registry
            .scrape()
            .lines()
            .filter(line -> line.startsWith("# TYPE "))
            .map(line -> line.split(" "))
            .filter(words -> !words[2].endsWith("_max"))
            .collect(Collectors.toMap(words -> words[2], words -> words[3]));

    assertThat(scraped)
        .containsExactlyInAnyOrderEntriesOf(
            documented().stream()
                .collect(
                    Collectors.toMap(
                        Documented::prometheus,
                        row -> row.told().kind().equals("timer") ? "summary" : row.told().kind())));
    assertThat(scraped)
        .containsKeys(
            "outbox_acked_total", "outbox_nacked_retried_total", "outbox_handler_seconds");
  }

  @Test
  void usesNoNameInTheDocumentThatPrometheusDoesNotKnow() throws IOException {
    Set<String> known =
        documented().stream()
            .map(Documented::prometheus)
            .flatMap(
                name ->
                    List.of(name, name + "_count", name + "_sum", name + "_max", name + "_bucket")
                        .stream())
            .collect(Collectors.toSet());

    Set<String> used = new LinkedHashSet<>();
    Matcher names = Pattern.compile("\\boutbox_[a-z_]+").matcher(Files.readString(DOCUMENT));
    while (names.find()) {
      if (!names
          .group()
          .matches("outbox_(depth|timer|lock|monitor|poller)_.*")) { // other modules have those
        used.add(names.group());
      }
    }

    assertThat(used).isNotEmpty().isSubsetOf(known);
  }

  private static List<Told> defined() {
    return Arrays.stream(Meters.values())
        .map(
            meter ->
                new Told(
                    meter.id(),
                    meter.kind().word(),
                    meter.kind().unit() == null ? "" : meter.kind().unit(),
                    meter.tags(),
                    meter.description()))
        .toList();
  }

  /** Reads the entries of the list that begin with a meter's name. */
  private static List<Documented> documented() throws IOException {
    // an entry goes on in lines that are indented
    String text = Files.readString(DOCUMENT).replaceAll("\n  (?=\\S)", " ");
    return text.lines()
        .filter(line -> line.matches("- `outbox\\.[a-z.]+`: .*"))
        .map(
            line -> {
              Matcher entry = ENTRY.matcher(line);
              assertThat(entry.matches()).as(line).isTrue();
              return new Documented(
                  new Told(
                      entry.group("name"),
                      entry.group("kind"),
                      entry.group("unit") == null ? "" : entry.group("unit"),
                      List.of(entry.group("tags").replace("`", "").split(", ")),
                      entry.group("meaning")),
                  entry.group("prometheus"));
            })
        .toList();
  }
}
