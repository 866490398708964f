package dev.outbox4j.monitor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.TypeRef;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import java.time.Duration;
import java.time.Instant;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/** What is not allowed is refused where it is said; nothing is asked of a server here. */
class MonitorDefinitionsTest {
  private static final MonitorType<Json> WATCH = MonitorType.of("watch");
  private static final PostgresOutbox OUTBOX =
      PostgresOutbox.on(new PGSimpleDataSource(), OutboxTable.named("outbox"));

  private static Monitors.Builder builder() {
    return Monitors.builder(OUTBOX, "shop");
  }

  @Test
  void aTypeHasDefaultsAndIsNotChangedByASetting() {
    MonitorType<Json> changed =
        WATCH
            .every(Duration.ofSeconds(5))
            .expiresAfter(Duration.ofMinutes(5))
            .maxIterations(7)
            .history(0);
    assertThat(WATCH.every()).isEqualTo(Duration.ofMinutes(1));
    assertThat(WATCH.expiresAfter()).isEmpty();
    assertThat(WATCH.maxIterations()).isEmpty();
    assertThat(WATCH.history()).isEqualTo(100);
    assertThat(WATCH.retry().maxAttempts()).isEqualTo(10);
    assertThat(WATCH.input()).isEqualTo(Json.class);
    assertThat(changed.every()).isEqualTo(Duration.ofSeconds(5));
    assertThat(changed.expiresAfter()).contains(Duration.ofMinutes(5));
    assertThat(changed.maxIterations()).hasValue(7);
    assertThat(changed.history()).isZero();
    assertThat(MonitorType.of("typed", new TypeRef<List<String>>() {}).input())
        .isEqualTo(new TypeRef<List<String>>() {}.type());
    assertThat(WATCH).hasToString("MonitorType[watch, dev.outbox4j.monitor.Json]");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", " ", "a\nb", "a\uD800"})
  void aNameThatIsNotAllowedIsRefused(String name) {
    assertThatThrownBy(() -> MonitorType.of(name)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> MonitorResult.again().orOn(name))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> MonitorQuery.all().type(name))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void namesMayHave200Bytes() {
    assertThat(MonitorType.of("ü".repeat(100)).name()).hasSize(100);
    assertThatThrownBy(() -> MonitorType.of("ü".repeat(100) + "x"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("has 201 bytes; it may have 200, so shorten it");
  }

  @Test
  void timesOutOfRangeAreRefused() {
    Duration tooLong = Duration.ofDays(36_501);
    for (Duration wrong : List.of(Duration.ZERO, Duration.ofMillis(-1), tooLong)) {
      assertThatThrownBy(() -> WATCH.every(wrong))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("wait is " + wrong + "; it must be 1 ms to 36,500 days");
      assertThatThrownBy(() -> WATCH.expiresAfter(wrong))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> MonitorStart.of(WATCH, Json.NULL).expiresAfter(wrong))
          .isInstanceOf(IllegalArgumentException.class);
    }
    for (Duration wrong : List.of(Duration.ofMillis(-1), tooLong)) {
      assertThatThrownBy(() -> MonitorResult.again(wrong))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> MonitorStart.of(WATCH, Json.NULL).firstCheckIn(wrong))
          .isInstanceOf(IllegalArgumentException.class);
    }
    for (Instant wrong : List.of(Instant.MIN, Instant.EPOCH.minusNanos(1), Instant.MAX)) {
      assertThatThrownBy(() -> MonitorStart.of(WATCH, Json.NULL).expiresAt(wrong))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> MonitorQuery.all().createdFrom(wrong))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> MonitorQuery.all().createdBefore(wrong))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void numbersOutOfRangeAreRefused() {
    assertThatThrownBy(() -> WATCH.maxIterations(0)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> WATCH.history(-1)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> WATCH.history(10_001)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> MonitorQuery.all().limit(0))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> MonitorQuery.all().limit(1_001))
        .isInstanceOf(IllegalArgumentException.class);
    MonitorControl control = MonitorControl.of(OUTBOX, "shop");
    assertThatThrownBy(() -> control.history("x", 0)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> control.await("x", Duration.ofDays(2)))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> control.await("x", Duration.ZERO, Duration.ZERO))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void aResultIsNotChangedByWhatIsAdded() {
    MonitorResult again = MonitorResult.again();
    OutboxMessage message = OutboxMessage.to("alerts").body("x").build();
    MonitorResult more =
        again
            .withState(Json.NULL)
            .withStatus(Json.of("1"))
            .orOn("a")
            .orOn("b")
            .withMessages(message);
    assertThat(again.waitsFor()).isEmpty();
    assertThat(again.messages()).isEmpty();
    assertThat(again.keepsState()).isTrue();
    assertThat(more.waitsFor()).containsExactly("a", "b");
    assertThat(more.messages()).containsExactly(message);
    assertThat(more.keepsState()).isFalse();
    assertThat(more.withoutState().state()).isEmpty();
    assertThat(more).hasToString("again");
    assertThat(MonitorResult.again(Duration.ofSeconds(5))).hasToString("again after PT5S");
  }

  @Test
  void aResultThatMakesNoSenseIsRefused() {
    assertThatThrownBy(() -> MonitorResult.done().orOn("e"))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("done, which ends the instance");
    assertThatThrownBy(() -> MonitorResult.fail(" ")).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> MonitorResult.cancel("")).isInstanceOf(IllegalArgumentException.class);
    String[] names = Collections.nCopies(101, "e").toArray(String[]::new);
    assertThatThrownBy(() -> MonitorResult.again().orOn(names))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("101 events; it may wait for 100");
    OutboxMessage message = OutboxMessage.to("alerts").body("x").build();
    assertThatThrownBy(() -> MonitorResult.done().withMessages(Collections.nCopies(1_001, message)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void jsonIsATextThatCanBeStoredAndIsNotShown() {
    assertThat(Json.of("{\"secret\":1}")).hasToString("Json[12 bytes]");
    assertThat(Json.of("\"ü\"").size()).isEqualTo(4);
    assertThat(Json.of("1")).isEqualTo(Json.of("1")).isNotEqualTo(Json.of("1 "));
    assertThat(Json.of("1")).hasSameHashCodeAs(Json.of("1"));
    for (String wrong : List.of("", " ", "\"\u0000\"", "\"\uD800\"")) {
      assertThatThrownBy(() -> Json.of(wrong)).isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void noTypeIsRefused() {
    assertThatThrownBy(() -> builder().build())
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("there is no monitor type; add one by on(...)");
  }

  @Test
  void twoTypesOfANameAreRefused() {
    assertThatThrownBy(
            () ->
                builder()
                    .on(WATCH, call -> MonitorResult.done())
                    .on(WATCH, call -> MonitorResult.again()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "there are two monitor types of the name 'watch'; name each by what it watches");
  }

  @Test
  void aTypedInputNeedsACodec() {
    assertThatThrownBy(
            () ->
                builder()
                    .on(MonitorType.of("typed", Long.class), call -> MonitorResult.done())
                    .build())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("set one with codec(...)");
    assertThat(
            builder()
                .codec(new NumberCodec())
                .on(MonitorType.of("typed", Long.class), call -> MonitorResult.done())
                .build())
        .isNotNull();
  }

  @Test
  void aQueueOrAnApplicationThatCannotBeIsRefused() {
    assertThatThrownBy(() -> Monitors.builder(OUTBOX, " "))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> builder().queue("")).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> MonitorControl.of(OUTBOX, "x".repeat(201)))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> MonitorControl.of(OUTBOX, "shop").queue(" "))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
