package dev.outbox4j.examples.quickstart;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Properties;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OptionsTest {

  @Test
  void emptyValuesAreTheDefaults() {
    Properties given = properties("orders", "");
    given.setProperty("quickstart.url", "");

    assertThat(Options.of(given, null))
        .isEqualTo(new Options(null, "postgres", "", 20_000, 8080, false));
  }

  @Test
  void readsWhatWasGiven() {
    Properties given = properties("url", "jdbc:postgresql://db/shop");
    given.setProperty("quickstart.user", "ann");
    given.setProperty("quickstart.orders", "1000");
    given.setProperty("quickstart.port", "0");
    given.setProperty("quickstart.keep-serving", "true");

    assertThat(Options.of(given, "secret"))
        .isEqualTo(new Options("jdbc:postgresql://db/shop", "ann", "secret", 1000, 0, true));
  }

  @ParameterizedTest
  @CsvSource({
    "url, mysql://x, jdbc:postgresql://",
    "orders, many, 'many'",
    "orders, -1, '-1'",
    "port, 65536, 65535",
    "keep-serving, perhaps, 'perhaps'"
  })
  void refusesABadValueByItsName(String name, String value, String told) {
    Properties given = properties(name, value);

    assertThatThrownBy(() -> Options.of(given, null))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll("quickstart." + name, told);
  }

  @Test
  void doesNotShowThePassword() {
    assertThat(Options.of(new Properties(), "secret").toString()).doesNotContain("secret");
  }

  private static Properties properties(String name, String value) {
    Properties properties = new Properties();
    properties.setProperty("quickstart." + name, value);
    return properties;
  }
}
