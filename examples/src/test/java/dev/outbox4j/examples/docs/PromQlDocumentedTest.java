package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Holds the PromQL of the documents to the meters: names, labels, and that only series with equal
 * labels are combined. That the lists of meters in {@code docs/metrics.md} are those of the code is
 * for the tests beside the code.
 */
class PromQlDocumentedTest {
  private static final Path DOCS = Path.of("..", "docs");
  private static final Pattern METER =
      Pattern.compile(
          "- `outbox\\.[a-z.]+`: .* \\*Prometheus:\\* `([a-z_]+)`\\. \\*Tags:\\* (.+)\\.");

  /** Of depths, which are gauges, and of triggers. */
  private static final Pattern SHORT =
      Pattern.compile(
          "- `outbox\\.[a-z.]+`, `([a-z_]+)`,(?: \\w+,)? tags? ((?:`\\w+`(?:, )?)+): .*");

  private static final Path RULES = DOCS.resolve("operations/job-queue-alerts.yml");
  private static final Pattern RULE =
      Pattern.compile("\\n {8}expr: >-\\n((?: {10}.*\\n)+)|\\n {8}expr: (?!>-)(.*)");
  private static final Pattern BLOCK = Pattern.compile("```promql\\n(.*?)```", Pattern.DOTALL);
  private static final Pattern ALERT =
      Pattern.compile("- \\*\\*[^*]+\\*\\*:\\s+`([^`]*outbox_[^`]*)`");
  private static final Pattern FURTHER = Pattern.compile("`(absent\\(outbox_[^`]*)`");

  private static final Map<String, Set<String>> TWO =
      Map.of("narrow", Set.of("queue"), "wide", new TreeSet<>(Set.of("queue", "reason")));

  static List<String> expressions() throws IOException {
    List<String> expressions = new ArrayList<>();
    for (String page : List.of("metrics.md", "operations/troubleshooting.md", "dead-letters.md")) {
      String text = Files.readString(DOCS.resolve(page));
      BLOCK
          .matcher(text)
          .results()
          .map(MatchResult::group)
          .map(block -> block.substring(block.indexOf('\n') + 1, block.length() - "```".length()))
          .forEach(block -> expressions.addAll(PromQl.expressions(block)));
      for (Pattern inline : List.of(ALERT, FURTHER)) {
        inline
            .matcher(text)
            .results()
            .map(found -> found.group(1).replaceAll("\\s+", " "))
            .filter(code -> code.contains(" ") || code.contains("("))
            .forEach(expressions::add);
      }
    }
    expressions.addAll(rules());
    return expressions;
  }

  /** Those of the rules that are shipped as a file for Prometheus. */
  private static List<String> rules() throws IOException {
    return RULE.matcher(Files.readString(RULES))
        .results()
        .map(found -> found.group(1) == null ? found.group(2) : found.group(1))
        .map(expression -> expression.strip().replaceAll("\\s+", " "))
        .toList();
  }

  @Test
  void findsTheRulesOfTheFile() throws IOException {
    assertThat(rules())
        .hasSize(
            (int)
                Files.readString(RULES).lines().filter(line -> line.contains("- alert: ")).count())
        .hasSize(4);
  }

  @ParameterizedTest
  @MethodSource("expressions")
  void namesMetersAndCombinesEqualLabels(String expression) throws IOException {
    Map<String, Set<String>> metrics = metrics();

    assertThatCode(() -> PromQl.labels(expression, metrics)).doesNotThrowAnyException();
  }

  @Test
  void findsThem() throws IOException {
    assertThat(expressions()).hasSizeGreaterThan(20);
    assertThat(metrics()).hasSizeGreaterThan(25);
  }

  @Test
  void refusesWhatHasNoResult() {
    assertThatThrownBy(() -> PromQl.labels("sum(rate(narrow[5m]) + rate(wide[5m]))", TWO))
        .hasMessageContaining("'+' is between series with [queue] and with");
    assertThatThrownBy(() -> PromQl.labels("sum by (reason) (narrow)", TWO))
        .hasMessageContaining("[reason] are not among the labels [queue]");
    assertThatThrownBy(() -> PromQl.labels("absent(narrow{reason=\"x\"})", TWO))
        .hasMessageContaining("narrow has no label reason");
    assertThatThrownBy(() -> PromQl.labels("wide > narrow offset 5m", TWO))
        .hasMessageContaining("'>' is between series with [queue, reason] and with [queue]");
    assertThatThrownBy(() -> PromQl.labels("rate(gone[5m])", TWO))
        .hasMessageContaining("there is no metric gone");
    assertThatThrownBy(() -> PromQl.labels("narrow grows faster than wide", TWO))
        .hasMessageContaining("goes on with grows");
  }

  @Test
  void acceptsWhatHasOne() {
    assertThat(PromQl.labels("(sum(narrow) + sum(wide)) / 2 > 10", TWO)).isEmpty();
    assertThat(PromQl.labels("narrow > 0 unless sum by (queue) (wide)", TWO))
        .containsExactly("queue");
  }

  private static Map<String, Set<String>> metrics() throws IOException {
    // an entry goes on in lines that are indented
    String text = Files.readString(DOCS.resolve("metrics.md")).replaceAll("\n  (?=\\S)", " ");
    Map<String, Set<String>> metrics = new TreeMap<>();
    for (String line : text.lines().toList()) {
      for (Pattern pattern : List.of(METER, SHORT)) {
        Matcher meter = pattern.matcher(line);
        if (meter.matches()) {
          Set<String> labels = PromQl.labelsOf(meter.group(2));
          for (String ending : List.of("", "_count", "_sum", "_max")) {
            metrics.put(meter.group(1) + ending, labels);
          }
        }
      }
    }
    return metrics;
  }
}
