package dev.outbox4j.internal.schema;

import java.time.DayOfWeek;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;
import java.time.temporal.TemporalAdjusters;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The time that one partition is for, in UTC. The comment on a partitioned table tells it. */
public enum Period {
  /** A calendar month. */
  MONTH(ChronoUnit.MONTHS),
  /** A week that begins on Monday, as {@code date_trunc} has it. */
  WEEK(ChronoUnit.WEEKS),
  /** A day. */
  DAY(ChronoUnit.DAYS);

  private static final DateTimeFormatter LITERAL =
      DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss.SSSSSSxxx").withZone(ZoneOffset.UTC);

  private static final String PHRASE = "partitioned by ";

  private final ChronoUnit unit;

  Period(ChronoUnit unit) {
    this.unit = unit;
  }

  /** {@return what {@code date_trunc} and a comment call it} */
  public String unit() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** {@return what the comment on a table says of it} */
  public String phrase() {
    return PHRASE + unit();
  }

  /** Reads it from the comment on a table. */
  public static Optional<Period> in(@Nullable String comment) {
    return Arrays.stream(values())
        .filter(period -> comment != null && comment.contains(period.phrase()))
        .findFirst();
  }

  /** Returns the first day of the one that an instant is in. */
  public LocalDate firstDay(Instant instant) {
    LocalDate day = LocalDate.ofInstant(instant, ZoneOffset.UTC);
    return switch (this) {
      case MONTH -> day.withDayOfMonth(1);
      case WEEK -> day.with(TemporalAdjusters.previousOrSame(DayOfWeek.MONDAY));
      case DAY -> day;
    };
  }

  /** Returns the first day of one that comes after the one that begins on a day. */
  public LocalDate after(LocalDate firstDay, int periods) {
    return firstDay.plus(periods, unit);
  }

  /** Returns when a day begins. */
  public static Instant midnight(LocalDate day) {
    return day.atStartOfDay(ZoneOffset.UTC).toInstant();
  }

  /** An instant as a constant for statements, whatever the time zone of the session. */
  public static String literal(Instant instant) {
    return "timestamptz '" + LITERAL.format(instant) + "'";
  }
}
