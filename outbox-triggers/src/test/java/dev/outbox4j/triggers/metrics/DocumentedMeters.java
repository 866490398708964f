package dev.outbox4j.triggers.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Meters as the code defines them, beside what a registry has and what the document says. */
final class DocumentedMeters {
  private static final Pattern LINE =
      Pattern.compile(
          "- `(outbox\\.[a-z.]+)`, `([a-z_]+)`, (\\w+), tags? ((?:`\\w+`(?:, )?)+): (.*)");

  private DocumentedMeters() {}

  private record Documented(
      String name, String prometheus, String kind, List<String> tags, String meaning) {
    static Documented of(Matcher line) {
      return new Documented(
          line.group(1),
          line.group(2),
          line.group(3),
          List.of(line.group(4).replace("`", "").split(", ", -1)),
          line.group(5));
    }
  }

  private static List<Documented> documented(String prefix) throws IOException {
    // an entry goes on in lines that are indented
    String text =
        Files.readString(Path.of("..", "docs", "metrics.md")).replaceAll("\n  (?=\\S)", " ");
    return text.lines()
        .map(LINE::matcher)
        .filter(Matcher::matches)
        .map(Documented::of)
        .filter(entry -> entry.name().startsWith(prefix))
        .toList();
  }

  /** The document has these meters of the prefix, in this order, and no others. */
  static void assertDocumented(String prefix, Described... meters) throws IOException {
    assertThat(documented(prefix))
        .map(entry -> List.of(entry.name(), entry.kind(), entry.tags(), entry.meaning()))
        .containsExactlyElementsOf(
            Arrays.stream(meters)
                .map(Described::facts)
                .map(facts -> List.of(facts.id(), facts.kind(), facts.tags(), facts.description()))
                .toList());
  }

  private static String kind(Meter.Type type) {
    return type == Meter.Type.DISTRIBUTION_SUMMARY
        ? "summary"
        : type.name().toLowerCase(Locale.ROOT);
  }

  /** The registry has these meters, and no others. */
  static void assertRegistered(MeterRegistry registry, Described... meters) {
    assertThat(
            registry.getMeters().stream()
                .map(Meter::getId)
                .map(
                    id ->
                        List.of(
                            id.getName(),
                            kind(id.getType()),
                            String.valueOf(id.getBaseUnit()),
                            id.getTags().stream().map(Tag::getKey).collect(Collectors.toSet()),
                            String.valueOf(id.getDescription())))
                .collect(Collectors.toSet()))
        .isEqualTo(
            Arrays.stream(meters)
                .map(Described::facts)
                .map(
                    facts ->
                        List.of(
                            facts.id(),
                            facts.kind(),
                            String.valueOf(facts.unit()),
                            facts.tags().stream().collect(Collectors.toSet()),
                            facts.description()))
                .collect(Collectors.toSet()));
  }

  /** Prometheus has the meters of the prefix by the names in the document. */
  static void assertScraped(PrometheusMeterRegistry registry, String prefix) throws IOException {
    assertThat(
            registry
                .scrape()
                .lines()
                .filter(line -> line.startsWith("# TYPE " + prefix.replace('.', '_')))
                .map(line -> line.split(" ", -1)[2])
                .filter(name -> !name.endsWith("_max"))
                .collect(Collectors.toSet()))
        .isEqualTo(
            documented(prefix).stream().map(Documented::prometheus).collect(Collectors.toSet()));
  }
}
