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
  private static final Pattern SETTING = Pattern.compile("`(\\w+)\\([^`]*`");
  private static final Pattern DEFAULT = Pattern.compile("\\*Default:\\* (.+)\\.$");

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
          "dev.outbox4j.dlq.DeadLetterRetention$Builder",
          Set.of("build"),
          "dev.outbox4j.dlq.DeadLetterQueue",
          Set.of("table", "schema", "bind"),
          "dev.outbox4j.migrations.OutboxMigrations",
          Set.of(
              "migrate",
              "configure",
              "sql",
              "grantsSql",
              "timerCancellationGrantsSql",
              "timerReplacementGrantsSql"),
          "dev.outbox4j.postgres.SchemaValidator",
          Set.of("validateSchema"));

  /** A list of settings: the class it is about, and the entries by setting. */
  record Settings(String type, Map<String, String> entries) {
    @Override
    public String toString() {
      return type;
    }
  }

  @ParameterizedTest
  @MethodSource("documented")
  void listsEachSettingOfTheCodeAndNoOther(Settings documented) throws ClassNotFoundException {
    Class<?> type = Class.forName(documented.type());
    Set<String> settings =
        Arrays.stream(type.getDeclaredMethods())
            .filter(method -> Modifier.isPublic(method.getModifiers()) && !method.isSynthetic())
            .filter(method -> !inherited(method))
            .map(Method::getName)
            .collect(Collectors.toCollection(TreeSet::new));
    settings.removeAll(NO_SETTINGS.getOrDefault(documented.type(), Set.of()));

    assertThat(documented.entries().keySet()).containsExactlyInAnyOrderElementsOf(settings);
  }

  @Test
  void coversEachKindOfSetting() throws IOException {
    assertThat(documented().map(Settings::type)).containsAll(NO_SETTINGS.keySet());
  }

  @Test
  void givesTheDefaultsOfTheCode() throws IOException {
    Map<String, String> entries =
        documented()
            .filter(list -> list.type().equals(OutboxSubscriber.Builder.class.getName()))
            .findFirst()
            .orElseThrow()
            .entries();

    assertThat(defaultOf(entries, "workers"))
        .isEqualTo("" + OutboxSubscriber.Builder.DEFAULT_WORKERS);
    assertThat(defaultOf(entries, "batchSize"))
        .isEqualTo("" + OutboxSubscriber.Builder.DEFAULT_BATCH_SIZE);
    assertThat(defaultOf(entries, "lease")).isEqualTo(text(OutboxSubscriber.Builder.DEFAULT_LEASE));
    assertThat(defaultOf(entries, "poll"))
        .isEqualTo(
            text(OutboxSubscriber.Builder.DEFAULT_MIN_POLL)
                + ", "
                + text(OutboxSubscriber.Builder.DEFAULT_MAX_POLL));
    assertThat(defaultOf(entries, "pollWithoutListener"))
        .isEqualTo(text(OutboxSubscriber.Builder.DEFAULT_MAX_POLL_UNHEARD));
    assertThat(defaultOf(entries, "gracefulTimeout"))
        .isEqualTo(text(OutboxSubscriber.Builder.DEFAULT_GRACEFUL_TIMEOUT));
    assertThat(OutboxSubscriber.Builder.DEFAULT_HANDLER_TIMEOUT).isEqualTo(Duration.ofMinutes(5));
    assertThat(defaultOf(entries, "handlerTimeout")).isEqualTo("5 min");
    assertThat(defaultOf(entries, "maxDeliveries"))
        .isEqualTo(
            "the attempts of the retry policy, and "
                + OutboxSubscriber.Builder.DEFAULT_SPARE_DELIVERIES);
    assertThat(defaultOf(entries, "maxExceptionBytes").replace(",", ""))
        .isEqualTo("" + OutboxSubscriber.Builder.DEFAULT_MAX_EXCEPTION_BYTES);
  }

  @Test
  void givesTheDefaultIntervalOfDepthMetrics() throws IOException {
    Map<String, String> entries =
        documented()
            .filter(list -> list.type().equals(OutboxDepthMetrics.Builder.class.getName()))
            .findFirst()
            .orElseThrow()
            .entries();

    assertThat(defaultOf(entries, "interval")).isEqualTo(text(OutboxDepthMetrics.DEFAULT_INTERVAL));
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

  private static String defaultOf(Map<String, String> entries, String setting) {
    Matcher matcher = DEFAULT.matcher(entries.get(setting));
    assertThat(matcher.find()).as("%s has a default", setting).isTrue();
    return matcher.group(1);
  }

  private static String text(Duration duration) {
    return duration.toMillis() % 1000 == 0
        ? duration.toSeconds() + " s"
        : duration.toMillis() + " ms";
  }

  /** The lists that come after a marker; an entry may be of several settings of one type. */
  static Stream<Settings> documented() throws IOException {
    List<Settings> lists = new ArrayList<>();
    List<String> types = new ArrayList<>();
    Map<String, String> entries = new LinkedHashMap<>();
    for (String block : blocks(Files.readAllLines(Path.of("..", "docs", "configuration.md")))) {
      Matcher type = CLASS.matcher(block);
      if (type.matches()) {
        types.add(type.group(1));
      } else if (block.startsWith("- ") && !types.isEmpty()) {
        // what comes before the colon is code, and commas between it
        Matcher setting = SETTING.matcher(block);
        int end = 2;
        while (setting.find(end) && setting.start() - end <= ", ".length()) {
          entries.put(setting.group(1), block);
          end = setting.end();
        }
      } else if (!entries.isEmpty()) {
        Map<String, String> complete = Map.copyOf(entries);
        types.forEach(name -> lists.add(new Settings(name, complete)));
        types.clear();
        entries.clear();
      }
    }
    return lists.stream();
  }

  /** The lines of a document, those of a list's entry as one. */
  private static List<String> blocks(List<String> lines) {
    List<String> blocks = new ArrayList<>();
    for (String line : lines) {
      int last = blocks.size() - 1;
      if (line.startsWith("  ") && last >= 0 && blocks.get(last).startsWith("- ")) {
        blocks.set(last, blocks.get(last) + " " + line.strip());
      } else {
        blocks.add(line);
      }
    }
    return blocks;
  }
}
