package dev.outbox4j.poller;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.List;
import java.util.UUID;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a definition takes and refuses. */
class PollerTest {
  private static final Poller POLLER =
      Poller.of("customers", Source.table("customers"), Cursor.sequence("id"), Deletes.ignored());

  private static void refused(ThrowingCallable call, String... words) {
    assertThatThrownBy(call).isInstanceOf(IllegalArgumentException.class).message().contains(words);
  }

  @Test
  void hasTheDefaultsOfTheJavadoc() {
    assertThat(POLLER.batchSize()).isEqualTo(500);
    assertThat(POLLER.pollInterval()).isEqualTo(Duration.ofSeconds(1));
    assertThat(POLLER.lease()).isEqualTo(Duration.ofSeconds(30));
    assertThat(POLLER.start()).hasValue(Position.beginning());
    assertThat(POLLER.firstWait()).isEqualTo(Duration.ofSeconds(1));
    assertThat(POLLER.longestWait()).isEqualTo(Duration.ofMinutes(1));
    assertThat(POLLER.isolateAfter()).isEmpty();
    assertThat(POLLER.rate()).isEmpty();
    assertThat(POLLER.end()).isEmpty();
    assertThat(POLLER.cursor().margin()).isEqualTo(Duration.ofMillis(500));
    assertThat(POLLER.cursor().nulls()).isEqualTo(NullCursors.REFUSED);
  }

  @Test
  void isNotChangedByASetting() {
    POLLER.batchSize(1).startPaused().named("other").until(5L).columns("a");
    assertThat(POLLER.batchSize()).isEqualTo(500);
    assertThat(POLLER.startsPaused()).isFalse();
    assertThat(POLLER.name()).isEqualTo("customers");
    assertThat(POLLER.columns()).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"", " ", "a\nb"})
  void refusesNamesThatSayNothing(String name) {
    refused(
        () -> Poller.of(name, Source.table("t"), Cursor.sequence("id"), Deletes.ignored()),
        "poller name",
        "name it by what it does");
  }

  @Test
  void refusesWhatIsOutOfRange() {
    refused(() -> POLLER.batchSize(0), "batchSize is 0", "from 1 to 100000");
    refused(() -> POLLER.batchSize(100_001), "batchSize is 100001");
    refused(() -> POLLER.pollInterval(Duration.ofMillis(9)), "pollInterval is PT0.009S", "PT24H");
    refused(() -> POLLER.lease(Duration.ofMillis(999)), "lease is PT0.999S", "PT1S to PT1H");
    refused(() -> POLLER.rate(0), "rate is 0");
    refused(() -> POLLER.isolateAfter(0), "isolateAfter is 0");
    refused(() -> POLLER.retry(Duration.ZERO, Duration.ofSeconds(1)), "first wait is PT0S");
    refused(
        () -> POLLER.retry(Duration.ofSeconds(2), Duration.ofSeconds(1)), "longest wait is PT1S");
    refused(() -> POLLER.until(new Object()), "cannot be a java.lang.Object");
    refused(() -> Cursor.serverTime("a").margin(Duration.ZERO), "margin is PT0S");
  }

  @Test
  void refusesWhatCannotBeMeant() {
    refused(() -> POLLER.columns(new String[0]), "columns has no column");
    refused(() -> POLLER.columns("a", "a"), "column 'a' twice");
    refused(() -> POLLER.where(" "), "condition is blank");
    refused(() -> POLLER.where("a = ?", new Object()), "java.lang.Object", "Instant");
    refused(() -> Source.table("x".repeat(64)), "64 bytes");
    refused(() -> Source.query("q", "", "id"), "query is blank");
    refused(() -> Source.query("q", "select 1"), "key has no column");
    refused(() -> Deletes.tombstones(Source.query("q", "select 1", "id")), "name a table");
    refused(() -> Cursor.sequence("id").margin(Duration.ofSeconds(1)), "kept by SEQUENCE");
    refused(
        () -> Cursor.ascending("id").in(ZoneOffset.UTC),
        "kept by ASCENDING; only one kept by server time has an offset");
    refused(() -> Cursor.transactionId("x").assumingThatWritersNeverOverlap(), "safe as it is");
    refused(() -> Audit.of("", "why"), "by ''", "say it in words");
    refused(() -> Audit.of("ann", " "), "reason");
  }

  @Test
  void positionsHaveOneTextForEachValue() {
    assertThat(Position.after(5).cursor()).hasValue("5");
    assertThat(Position.after(5L)).isEqualTo(Position.after(5));
    assertThat(Position.after(new BigDecimal("1.500")))
        .isEqualTo(Position.after(new BigDecimal("1.5")));
    assertThat(Position.after(new BigDecimal("1E+3")).cursor()).hasValue("1000");
    assertThat(Position.after(Instant.parse("2026-01-01T00:00:00.123456789Z")).cursor())
        .hasValue("2026-01-01T00:00:00.123456Z");
    assertThat(Position.before(LocalDate.of(2026, 1, 2)).toString()).isEqualTo("before 2026-01-02");
    for (Object value :
        List.of(
            7L,
            new BigDecimal("-0.25"),
            Instant.parse("2026-03-29T01:30:00.000001Z"),
            LocalDateTime.parse("2026-03-29T02:30:00.000001"),
            LocalDate.of(1, 1, 1),
            UUID.randomUUID(),
            "Zoë")) {
      assertThat(Position.after(value).value()).hasValue(value);
    }
    assertThat(Position.beginning().value()).isEmpty();
    refused(() -> Position.after(1.5), "java.lang.Double");
    refused(() -> Position.of(Position.Side.AFTER, "bigint", "x", List.of()), "'x' is no bigint");
    refused(() -> Position.of(Position.Side.ROW, "bigint", "1", List.of()), "key of 0 columns");
    refused(() -> Position.of(Position.Side.AFTER, null, null, List.of()), "has no cursor");
  }

  @Test
  void aRowTellsWhichColumnsItHas() {
    RowChange row =
        new RowChange(
            "e", RowOperation.UPSERT, 1L, java.util.Map.of("id", 1), map("name", "x"), "t");
    assertThat(row.get("name", String.class)).isEqualTo("x");
    refused(() -> row.get("nam", String.class), "'nam'", "[name]");
    refused(() -> row.get("name", Long.class), "is a String and not a Long");
    assertThat(row.toString()).doesNotContain("x]").contains("UPSERT t {id=1} at 1");
  }

  private static java.util.Map<String, Object> map(String key, Object value) {
    return java.util.Map.of(key, value);
  }
}
