package dev.outbox4j.poller.internal;

import dev.outbox4j.internal.OneLine;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;

/** Refuses values where they are set: the value, the rule, and what to do. */
public final class Checks {
  /** What PostgreSQL keeps of an identifier. */
  private static final int MAX_IDENTIFIER_BYTES = 63;

  private static final Set<Class<?>> PARAMETERS =
      Set.of(
          String.class,
          Integer.class,
          Long.class,
          BigDecimal.class,
          Boolean.class,
          UUID.class,
          Instant.class,
          LocalDateTime.class,
          LocalDate.class);

  private Checks() {}

  /** Refuses what cannot be the name of a table or a column. */
  public static String identifier(String what, String name) {
    if (name.isBlank() || name.indexOf('\0') >= 0) {
      throw new IllegalArgumentException(
          "%s '%s' is blank or has a NUL; name it as the catalog does"
              .formatted(what, OneLine.of(name)));
    }
    if (bytes(name) > MAX_IDENTIFIER_BYTES) {
      throw new IllegalArgumentException(
          "%s '%s' has %d bytes; PostgreSQL keeps %d, so name it as the catalog does"
              .formatted(what, OneLine.of(name), bytes(name), MAX_IDENTIFIER_BYTES));
    }
    return name;
  }

  /** Refuses no name at all, and one twice. */
  public static List<String> identifiers(String what, List<String> names) {
    if (names.isEmpty()) {
      throw new IllegalArgumentException(what + " has no column; name at least one");
    }
    Set<String> seen = new HashSet<>();
    for (String name : names) {
      if (!seen.add(identifier("column", name))) {
        throw new IllegalArgumentException(
            "%s has column '%s' twice; name each once".formatted(what, OneLine.of(name)));
      }
    }
    return List.copyOf(names);
  }

  /** Refuses a text that no statement can have as a part. */
  public static String sql(String what, String sql) {
    if (sql.isBlank() || sql.indexOf('\0') >= 0) {
      throw new IllegalArgumentException(what + " is blank or has a NUL; say it in SQL");
    }
    return sql;
  }

  /** Refuses what no name can be. */
  public static String name(String what, String name, int maxBytes) {
    if (name.isBlank() || name.chars().anyMatch(Character::isISOControl)) {
      throw new IllegalArgumentException(
          "%s '%s' is blank or has control characters; name it by what it does"
              .formatted(what, OneLine.of(name)));
    }
    return bounded(what, name, maxBytes);
  }

  /** Refuses what says nothing. */
  public static String words(String what, String text, int maxBytes) {
    if (text.isBlank() || text.indexOf('\0') >= 0) {
      throw new IllegalArgumentException(
          "%s '%s' is blank or has a NUL; say it in words".formatted(what, OneLine.of(text)));
    }
    return bounded(what, text, maxBytes);
  }

  private static String bounded(String what, String text, int maxBytes) {
    if (bytes(text) > maxBytes) {
      throw new IllegalArgumentException(
          "%s has %d bytes; it may have %d, so shorten it".formatted(what, bytes(text), maxBytes));
    }
    return text;
  }

  /** Refuses a value of a condition that cannot be bound. */
  public static void parameter(Object value) {
    if (!PARAMETERS.contains(value.getClass())) {
      throw new IllegalArgumentException(
          "a value of the condition is a %s; it may be one of %s"
              .formatted(
                  value.getClass().getName(),
                  PARAMETERS.stream().map(Class::getSimpleName).sorted().toList()));
    }
  }

  /** Refuses a number that is out of range. */
  public static int within(String what, int value, int least, int most) {
    if (value < least || value > most) {
      throw new IllegalArgumentException(
          "%s is %d; it must be from %d to %d".formatted(what, value, least, most));
    }
    return value;
  }

  /** Refuses a time that is out of range. */
  public static Duration within(String what, Duration value, Duration least, Duration most) {
    if (value.compareTo(least) < 0 || value.compareTo(most) > 0) {
      throw new IllegalArgumentException(
          "%s is %s; it must be from %s to %s".formatted(what, value, least, most));
    }
    return value;
  }

  private static int bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8).length;
  }
}
