package dev.outbox4j.monitor.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.monitor.MonitorStatus;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What a request is read from, and what a response is written as. */
class MonitorHttpPartsTest {

  @ParameterizedTest
  @ValueSource(strings = {"a b", "a+b", "100%", "ü€🙂", "a&b=c;d", "~-._*'()", "x:y@z"})
  void whatIsEncodedIsDecoded(String text) {
    assertThat(Percent.encode(text)).matches("[A-Za-z0-9._*%-]+");
    assertThat(Percent.decode(Percent.encode(text))).isEqualTo(text);
  }

  @Test
  void aPlusIsASpaceInAQueryOnly() {
    assertThat(Percent.decode("a+b%2Bc")).isEqualTo("a+b+c");
    assertThat(Percent.decodeForm("a+b%2Bc")).isEqualTo("a b+c");
  }

  @ParameterizedTest
  @ValueSource(strings = {"%", "%4", "%zz", "a%4", "%-1", "%FF", "%C3", "%ED%A0%80"})
  void whatIsNoEncodingIsRefused(String text) {
    assertThatThrownBy(() -> Percent.decode(text))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("the URI ");
  }

  private static QueryParameters of(String query) {
    return QueryParameters.parse(query, Set.of("a", "b"));
  }

  @Test
  void parametersAreReadAsWhatTheyAre() {
    assertThat(of("").text("a")).isEmpty();
    assertThat(of("a=x%20y&b=").text("a")).contains("x y");
    assertThat(of("a=x%20y&b=").text("b")).contains("");
    assertThat(of("a").text("a")).contains("");
    assertThat(of("a=True").flag("a", false)).isTrue();
    assertThat(of("").flag("a", true)).isTrue();
    assertThat(of("a=12").number("a")).contains(12);
    assertThat(of("a=0.25").seconds("a", Duration.ZERO, Duration.ofSeconds(1)))
        .contains(Duration.ofMillis(250));
    assertThat(of("a=2026-11-30T09:00:00%2B01:00").instant("a"))
        .contains(Instant.parse("2026-11-30T08:00:00Z"));
    assertThat(of("a=Running,FAILED,%20canceled").statuses("a"))
        .containsExactlyInAnyOrder(
            MonitorStatus.RUNNING, MonitorStatus.FAILED, MonitorStatus.CANCELED);
    assertThat(of("").statuses("a")).isEmpty();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "c=1 | there is no parameter 'c' here; leave it out, or take one of [a, b]",
        "a=1&a=1 | a is there twice",
        "a=yes | a is 'yes'; it must be true or false",
      })
  void whatIsNotKnownIsRefused(String query, String why) {
    assertThatThrownBy(() -> of(query).flag("a", false))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith(why);
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "x", "-1", "1.2345", "1e3", "2", "+1", "١"})
  void whatIsNoTimeInRangeIsRefused(String value) {
    QueryParameters asked = of("a=" + Percent.encode(value));
    assertThatThrownBy(() -> asked.seconds("a", Duration.ZERO, Duration.ofSeconds(1)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("a is '" + value + "'; it must be ");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "yesterday", "2026-11-30", "2026-11-30T09:00:00", "1764493200"})
  void whatIsNoInstantIsRefused(String value) {
    assertThatThrownBy(() -> of("a=" + value).instant("a"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("a time with its offset");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "Running,", "Waiting"})
  void whatIsNoStatusIsRefused(String value) {
    assertThatThrownBy(() -> of("a=" + value).statuses("a"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("it must be of [PENDING, RUNNING, ");
  }

  @Test
  void aResponseShowsNoBodyInLogs() {
    MonitorResponse response = new MonitorResponse(200, Map.of(), "secret");
    assertThat(response).hasToString("MonitorResponse[200, 6 characters]");
  }

  @Test
  void anErrorIsJsonWhateverItSays() {
    assertThat(Replies.refused(400, "a \"b\" \\ \n c").body())
        .isEqualTo("{\"error\":\"a \\\"b\\\" \\\\ ? c\"}");
    assertThat(Documents.purged(3, true)).isEqualTo("{\"instancesDeleted\":3,\"more\":true}");
    assertThat(Optional.of(Documents.error("x"))).contains("{\"error\":\"x\"}");
  }
}
