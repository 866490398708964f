package dev.outbox4j.monitor.http;

import dev.outbox4j.internal.OneLine;
import dev.outbox4j.monitor.MonitorStatus;
import java.math.BigDecimal;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;

/**
 * What the query of a request says. A parameter that is not known is refused: a filter that is
 * misspelt would otherwise choose all instances.
 */
final class QueryParameters {
  private static final Pattern SECONDS = Pattern.compile("[0-9]{1,8}(\\.[0-9]{1,3})?");
  private static final Pattern NUMBER = Pattern.compile("[0-9]{1,8}");

  private final Map<String, String> values;

  private QueryParameters(Map<String, String> values) {
    this.values = values;
  }

  static QueryParameters parse(String query, Set<String> known) {
    Map<String, String> values = new HashMap<>();
    for (String part : query.split("&", -1)) {
      if (part.isEmpty()) {
        continue;
      }
      int equals = part.indexOf('=');
      String name = Percent.decodeForm(equals < 0 ? part : part.substring(0, equals));
      if (!known.contains(name)) {
        throw new IllegalArgumentException(
            "there is no parameter '%s' here; leave it out, or take one of %s"
                .formatted(OneLine.of(name), new TreeSet<>(known)));
      }
      String value = equals < 0 ? "" : Percent.decodeForm(part.substring(equals + 1));
      if (values.put(name, value) != null) {
        throw new IllegalArgumentException(name + " is there twice; say it once");
      }
    }
    return new QueryParameters(values);
  }

  Optional<String> text(String name) {
    return Optional.ofNullable(values.get(name));
  }

  boolean flag(String name, boolean otherwise) {
    String value = values.get(name);
    if (value == null) {
      return otherwise;
    }
    return switch (value.toLowerCase(Locale.ROOT)) {
      case "true" -> true;
      case "false" -> false;
      default -> throw refused(name, value, "true or false");
    };
  }

  Optional<Integer> number(String name) {
    return text(name)
        .map(
            value -> {
              if (!NUMBER.matcher(value).matches()) {
                throw refused(name, value, "a whole number");
              }
              return Integer.valueOf(value);
            });
  }

  Optional<Duration> seconds(String name, Duration least, Duration most) {
    return text(name)
        .map(
            value -> {
              if (!SECONDS.matcher(value).matches()) {
                throw refused(name, value, "a number of seconds, such as 30 or 0.5");
              }
              Duration time =
                  Duration.ofMillis(new BigDecimal(value).movePointRight(3).longValueExact());
              if (time.compareTo(least) < 0 || time.compareTo(most) > 0) {
                throw refused(name, value, inSeconds(least) + " to " + inSeconds(most));
              }
              return time;
            });
  }

  private static String inSeconds(Duration time) {
    return BigDecimal.valueOf(time.toMillis(), 3).stripTrailingZeros().toPlainString();
  }

  Optional<Instant> instant(String name) {
    return text(name)
        .map(
            value -> {
              try {
                return OffsetDateTime.parse(value).toInstant();
              } catch (DateTimeException e) {
                throw refused(name, value, "a time with its offset, such as 2026-11-30T09:00:00Z");
              }
            });
  }

  /** Of names with commas between; none for all. */
  Set<MonitorStatus> statuses(String name) {
    Set<MonitorStatus> statuses = EnumSet.noneOf(MonitorStatus.class);
    text(name)
        .ifPresent(
            value ->
                List.of(value.split(",", -1))
                    .forEach(status -> statuses.add(status(name, status.strip()))));
    return statuses;
  }

  private static MonitorStatus status(String name, String value) {
    for (MonitorStatus status : MonitorStatus.values()) {
      if (status.name().equalsIgnoreCase(value)) {
        return status;
      }
    }
    throw refused(name, value, "of " + List.of(MonitorStatus.values()) + ", with commas between");
  }

  private static IllegalArgumentException refused(String name, String value, String rule) {
    return new IllegalArgumentException(
        "%s is '%s'; it must be %s".formatted(name, OneLine.of(value), rule));
  }
}
