package dev.outbox4j.examples.quickstart;

import java.util.Locale;
import java.util.Properties;
import org.jspecify.annotations.Nullable;

/**
 * What the user may choose, as {@code -Dquickstart.orders=1000} and so on. An empty value is the
 * default.
 *
 * @param url the user's own database, or null for an embedded one
 * @param user its user
 * @param password the user's password; may be empty
 * @param orders how many orders to place
 * @param port the HTTP port; 0 for any that is free
 * @param keepServing whether to serve on until the process is ended
 */
record Options(
    @Nullable String url, String user, String password, int orders, int port, boolean keepServing) {
  static final int DEFAULT_ORDERS = 20_000;
  static final int DEFAULT_PORT = 8080;

  private static final int MAX_ORDERS = 10_000_000;
  private static final int MAX_PORT = 65_535;

  static Options of(Properties properties, @Nullable String password) {
    String url = text(properties, "url", "");
    if (!url.isEmpty() && !url.startsWith("jdbc:postgresql://")) {
      throw new IllegalArgumentException(
          "quickstart.url must begin with jdbc:postgresql://, such as jdbc:postgresql://localhost:5432/shop");
    }
    return new Options(
        url.isEmpty() ? null : url,
        text(properties, "user", "postgres"),
        password == null ? "" : password,
        number(properties, "orders", DEFAULT_ORDERS, MAX_ORDERS),
        number(properties, "port", DEFAULT_PORT, MAX_PORT),
        yes(properties, "keep-serving"));
  }

  private static String text(Properties properties, String name, String otherwise) {
    String value = properties.getProperty("quickstart." + name, "").strip();
    return value.isEmpty() ? otherwise : value;
  }

  private static int number(Properties properties, String name, int otherwise, int max) {
    String value = text(properties, name, Integer.toString(otherwise)).replace("_", "");
    int number;
    try {
      number = Integer.parseInt(value);
    } catch (NumberFormatException e) {
      number = -1;
    }
    if (number < 0 || number > max) {
      throw new IllegalArgumentException(
          "quickstart.%s is '%s'; it must be a number from 0 to %d".formatted(name, value, max));
    }
    return number;
  }

  private static boolean yes(Properties properties, String name) {
    String value = text(properties, name, "false").toLowerCase(Locale.ROOT);
    return switch (value) {
      case "true" -> true;
      case "false" -> false;
      default ->
          throw new IllegalArgumentException(
              "quickstart.%s is '%s'; it must be true or false".formatted(name, value));
    };
  }

  /** Keeps the password out of logs. */
  @Override
  public String toString() {
    return "Options[orders=" + orders + ", port=" + port + ", keepServing=" + keepServing + "]";
  }
}
