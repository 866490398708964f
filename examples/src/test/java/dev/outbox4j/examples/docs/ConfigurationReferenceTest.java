package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.postgres.metrics.OutboxDepthMetrics;
import dev.outbox4j.spi.NotificationSource;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Holds {@code docs/configuration.md} to the code, so that it cannot rot. */
class ConfigurationReferenceTest {
  private static final Pattern CLASS = Pattern.compile("<!-- knobs: (\\S+) -->");
  private static final Pattern SETTING = Pattern.compile("`(\\w+)\\(");

  /** What is public there and no setting. */
  private static final Map<String, Set<String>> NO_SETTINGS =
      Map.of(
          "dev.outbox4j.OutboxSubscriber$Builder",
          Set.of("build"),
          "dev.outbox4j.RetryPolicy",
          Set.of("maxAttempts", "givesUp", "delayAfter"),
          "dev.outbox4j.postgres.PostgresOutbox$PublisherBuilder",
          Set.of("build", "buildReactive"),
          "dev.outbox4j.postgres.metrics.OutboxDepthMetrics$Builder",
          Set.of("build"),
          "dev.outbox4j.postgres.OutboxTable",
          Set.of(
              "requireIdentifier",
              "schema",
              "name",
              "channel",
              "claimIndex",
              "timerIndex",
              "sleepersTable",
              "publishFunction",
              "qualifiedName",
              "qualifiedSleepers"),
          "dev.outbox4j.dlq.DeadLetterQueue",
          Set.of("table", "schema", "bind"),
          "dev.outbox4j.migrations.OutboxMigrations",
          Set.of("migrate", "configure", "sql", "grantsSql", "timerCancellationGrantsSql"),
          "dev.outbox4j.postgres.SchemaValidator",
          Set.of("validateSchema"));

  /** A table of settings: the class it is about, and the rows by setting. */
  record Table(String type, Map<String, String> rows) {
    @Override
    public String toString() {
      return type;
    }
  }

  @ParameterizedTest
  @MethodSource("tables")
  void listsEachSettingOfTheCodeAndNoOther(Table table) throws ClassNotFoundException {
    Class<?> type = Class.forName(table.type());
    Set<String> settings =
        Arrays.stream(type.getDeclaredMethods())
            .filter(method -> Modifier.isPublic(method.getModifiers()) && !method.isSynthetic())
            .filter(method -> !inherited(method))
            .map(Method::getName)
            .collect(Collectors.toCollection(TreeSet::new));
    settings.removeAll(NO_SETTINGS.getOrDefault(table.type(), Set.of()));

    assertThat(table.rows().keySet()).containsExactlyInAnyOrderElementsOf(settings);
  }

  @Test
  void coversEachKindOfSetting() throws IOException {
    assertThat(tables().map(Table::type)).containsAll(NO_SETTINGS.keySet());
  }

  @Test
  void givesTheDefaultsOfTheCode() throws IOException {
    Map<String, String> rows =
        tables()
            .filter(table -> table.type().equals(OutboxSubscriber.Builder.class.getName()))
            .findFirst()
            .orElseThrow()
            .rows();

    assertThat(defaultOf(rows, "workers")).isEqualTo("" + OutboxSubscriber.Builder.DEFAULT_WORKERS);
    assertThat(defaultOf(rows, "batchSize"))
        .isEqualTo("" + OutboxSubscriber.Builder.DEFAULT_BATCH_SIZE);
    assertThat(defaultOf(rows, "lease")).isEqualTo(text(OutboxSubscriber.Builder.DEFAULT_LEASE));
    assertThat(defaultOf(rows, "poll"))
        .isEqualTo(
            text(OutboxSubscriber.Builder.DEFAULT_MIN_POLL)
                + ", "
                + text(OutboxSubscriber.Builder.DEFAULT_MAX_POLL));
    assertThat(defaultOf(rows, "pollWithoutListener"))
        .isEqualTo(text(OutboxSubscriber.Builder.DEFAULT_MAX_POLL_UNHEARD));
    assertThat(defaultOf(rows, "gracefulTimeout"))
        .isEqualTo(text(OutboxSubscriber.Builder.DEFAULT_GRACEFUL_TIMEOUT));
    assertThat(OutboxSubscriber.Builder.DEFAULT_HANDLER_TIMEOUT).isEqualTo(Duration.ofMinutes(5));
    assertThat(defaultOf(rows, "handlerTimeout")).isEqualTo("5 min");
    assertThat(defaultOf(rows, "maxDeliveries"))
        .isEqualTo(
            "the attempts of the retry policy, and "
                + OutboxSubscriber.Builder.DEFAULT_SPARE_DELIVERIES);
    assertThat(defaultOf(rows, "maxExceptionBytes").replace(",", ""))
        .isEqualTo("" + OutboxSubscriber.Builder.DEFAULT_MAX_EXCEPTION_BYTES);
  }

  @Test
  void givesTheDefaultIntervalOfDepthMetrics() throws IOException {
    Map<String, String> rows =
        tables()
            .filter(table -> table.type().equals(OutboxDepthMetrics.Builder.class.getName()))
            .findFirst()
            .orElseThrow()
            .rows();

    assertThat(defaultOf(rows, "interval")).isEqualTo(text(OutboxDepthMetrics.DEFAULT_INTERVAL));
  }

  /** Methods of interfaces that every implementation has are no settings. */
  private static boolean inherited(Method method) {
    return Stream.of(Object.class, NotificationSource.class)
        .flatMap(parent -> Arrays.stream(parent.getDeclaredMethods()))
        .anyMatch(
            known ->
                known.getName().equals(method.getName())
                    && Arrays.equals(known.getParameterTypes(), method.getParameterTypes()));
  }

  private static String defaultOf(Map<String, String> rows, String setting) {
    return rows.get(setting).split("\\|", -1)[3].strip();
  }

  private static String text(Duration duration) {
    return duration.toMillis() % 1000 == 0
        ? duration.toSeconds() + " s"
        : duration.toMillis() + " ms";
  }

  static Stream<Table> tables() throws IOException {
    List<Table> tables = new ArrayList<>();
    List<String> types = new ArrayList<>();
    Map<String, String> rows = new LinkedHashMap<>();
    for (String line : Files.readAllLines(Path.of("..", "docs", "configuration.md"))) {
      Matcher type = CLASS.matcher(line);
      if (type.matches()) {
        types.add(type.group(1));
      } else if (line.startsWith("|") && !types.isEmpty()) {
        Matcher setting = SETTING.matcher(line.split("\\|", -1)[1]);
        while (setting.find()) {
          rows.put(setting.group(1), line);
        }
      } else if (!rows.isEmpty()) {
        Map<String, String> complete = Map.copyOf(rows);
        types.forEach(name -> tables.add(new Table(name, complete)));
        types.clear();
        rows.clear();
      }
    }
    return tables.stream();
  }
}
