package dev.outbox4j.postgres.internal.publish;

import dev.outbox4j.DedupWindow;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.chrono.IsoEra;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.format.SignStyle;
import java.time.temporal.ChronoField;
import java.time.temporal.ChronoUnit;
import java.util.Locale;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Delays and instants as PostgreSQL takes them: in microseconds, rounded up so that no message is
 * due or expires early.
 */
final class PublishTimes {
  /** Some 273,000 years: a delay that no server clock of this age can make overflow. */
  static final Duration MAX_DELAY = Duration.ofDays(100_000_000);

  // the range of timestamptz: https://www.postgresql.org/docs/current/datatype-datetime.html
  private static final Instant MIN = Instant.parse("-4713-11-24T00:00:00Z");
  private static final Instant MAX = Instant.parse("+294276-12-31T23:59:59.999999Z");

  /** In the form that PostgreSQL reads whatever its DateStyle is. */
  private static final DateTimeFormatter FORMAT =
      new DateTimeFormatterBuilder()
          .appendValue(ChronoField.YEAR_OF_ERA, 4, 9, SignStyle.NEVER)
          .appendPattern("-MM-dd HH:mm:ss")
          .appendFraction(ChronoField.NANO_OF_SECOND, 6, 6, true)
          .appendLiteral("+00")
          .toFormatter(Locale.ROOT)
          .withZone(ZoneOffset.UTC);

  private PublishTimes() {}

  static @Nullable Long delayMicros(OutboxMessage message) {
    return micros("deliverIn", message.deliverIn().orElse(null), message);
  }

  static @Nullable Long expiryMicros(OutboxMessage message) {
    return micros("expiresIn", message.expiresIn().orElse(null), message);
  }

  static @Nullable Long windowMicros(OutboxMessage message, Function<DedupWindow, Duration> part) {
    return micros("dedupKey", message.dedupWindow().map(part).orElse(null), message);
  }

  private static @Nullable Long micros(
      String what, @Nullable Duration delay, OutboxMessage message) {
    if (delay == null) {
      return null;
    }
    if (delay.compareTo(MAX_DELAY) > 0) {
      throw new OutboxException(
          what
              + " of "
              + message
              + " is "
              + delay
              + "; PostgreSQL cannot store so late an instant, at most "
              + MAX_DELAY
              + " is allowed");
    }
    return delay.getSeconds() * 1_000_000 + (delay.getNano() + 999) / 1_000;
  }

  static @Nullable String deliverAt(OutboxMessage message) {
    return text("deliverAt", message.deliverAt().orElse(null), message);
  }

  static @Nullable String expiresAt(OutboxMessage message) {
    return text("expiresAt", message.expiresAt().orElse(null), message);
  }

  private static @Nullable String text(
      String what, @Nullable Instant instant, OutboxMessage message) {
    if (instant == null) {
      return null;
    }
    if (instant.isBefore(MIN) || instant.isAfter(MAX)) {
      throw new OutboxException(
          what
              + " of "
              + message
              + " is "
              + instant
              + "; PostgreSQL stores instants from "
              + MIN
              + " to "
              + MAX);
    }
    Instant micros = instant.truncatedTo(ChronoUnit.MICROS);
    Instant rounded = micros.isBefore(instant) ? micros.plus(1, ChronoUnit.MICROS) : micros;
    boolean beforeChrist = rounded.atZone(ZoneOffset.UTC).toLocalDate().getEra() == IsoEra.BCE;
    return FORMAT.format(rounded) + (beforeChrist ? " BC" : "");
  }
}
