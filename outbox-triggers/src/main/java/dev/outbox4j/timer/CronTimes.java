package dev.outbox4j.timer;

import com.cronutils.model.Cron;
import com.cronutils.model.definition.CronDefinition;
import com.cronutils.model.definition.CronDefinitionBuilder;
import com.cronutils.model.time.ExecutionTime;
import com.cronutils.parser.CronParser;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The times that match a cron expression of six fields. */
final class CronTimes implements CivilTimes {
  private static final int FIELDS = 6;
  private static final String EXAMPLE =
      "'0 30 9 * * MON-FRI' (second minute hour day month weekday) is half past nine on weekdays";

  /** Days and weekdays must both match; Sunday is 0 and 7; what is out of its range is refused. */
  private static final CronDefinition DIALECT =
      CronDefinitionBuilder.defineCron()
          .withSeconds()
          .withStrictRange()
          .and()
          .withMinutes()
          .withStrictRange()
          .and()
          .withHours()
          .withStrictRange()
          .and()
          .withDayOfMonth()
          .withStrictRange()
          .and()
          .withMonth()
          .withStrictRange()
          .and()
          .withDayOfWeek()
          .withValidRange(0, 7)
          .withMondayDoWValue(1)
          .withIntMapping(7, 0)
          .withStrictRange()
          .and()
          .matchDayOfWeekAndDayOfMonth()
          .instance();

  private static final Pattern OF_AN_INTERVAL = Pattern.compile("[*/-]");

  /** The parser takes its Sunday for the last day of a week, which begins no range. */
  private static final Pattern RANGE_FROM_SUNDAY = Pattern.compile("\\bSUN-(?!SUN)");

  /** Any instant: an expression that matches nothing after it matches nothing at all. */
  private static final LocalDateTime SOME_TIME = LocalDateTime.of(2000, 1, 1, 0, 0);

  private final String expression;
  private final List<String> fields;
  private final ExecutionTime times;

  private CronTimes(String expression, List<String> fields, Cron cron) {
    this.expression = expression;
    this.fields = fields;
    this.times = ExecutionTime.forCron(cron);
  }

  static CronTimes parse(String expression) {
    List<String> fields = fields(expression);
    String normal = String.join(" ", fields);
    Cron cron;
    try {
      String parsed = RANGE_FROM_SUNDAY.matcher(normal).replaceAll("0-");
      cron = new CronParser(DIALECT).parse(parsed).validate();
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(
          "cron expression '%s' is not valid: %s; %s"
              .formatted(expression, e.getMessage(), EXAMPLE),
          e);
    }
    CronTimes times = new CronTimes(normal, fields, cron);
    if (times.next(SOME_TIME).isEmpty()) {
      throw new IllegalArgumentException(
          "cron expression '%s' matches no day at all, so it would never be due; mend its day, month and weekday, which must all match"
              .formatted(expression));
    }
    return times;
  }

  private static List<String> fields(String expression) {
    List<String> fields = List.of(expression.strip().toUpperCase(Locale.ROOT).split("\\s+", -1));
    if (fields.size() == FIELDS - 1) {
      return Stream.concat(Stream.of("0"), fields.stream()).toList();
    }
    if (fields.size() != FIELDS) {
      throw new IllegalArgumentException(
          "cron expression '%s' has %d fields; it must have 6, or 5 without the second; %s"
              .formatted(expression, expression.isBlank() ? 0 : fields.size(), EXAMPLE));
    }
    return fields;
  }

  @Override
  public Optional<LocalDateTime> next(LocalDateTime after) {
    return times.nextExecution(after.atZone(ZoneOffset.UTC)).map(ZonedDateTime::toLocalDateTime);
  }

  @Override
  public boolean isInterval() {
    return fields.subList(0, 3).stream().anyMatch(field -> OF_AN_INTERVAL.matcher(field).find());
  }

  /** {@return whether more than one falls into each minute, and every minute has them} */
  boolean isOfSeconds() {
    return fields.subList(1, FIELDS).stream().allMatch("*"::equals) && isMoreThanOne();
  }

  private boolean isMoreThanOne() {
    Optional<LocalDateTime> first = next(SOME_TIME);
    Optional<LocalDateTime> second = first.flatMap(this::next);
    return second.isPresent() && second.get().isBefore(first.orElseThrow().plusMinutes(1));
  }

  @Override
  public String description() {
    return "cron " + expression;
  }
}
