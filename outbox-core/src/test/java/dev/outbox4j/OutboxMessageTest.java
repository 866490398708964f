package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class OutboxMessageTest {
  private static final OutboxMessage.Builder ORDERS = OutboxMessage.to("orders");

  /** A place for a name, so that the rules can be tried on each. */
  @FunctionalInterface
  interface Setter {
    Object set(String name);
  }

  static Stream<Arguments> names() {
    return Stream.of(
        Arguments.of("queue", (Setter) OutboxMessage::to),
        Arguments.of("type", (Setter) OutboxMessage.to("q")::type),
        Arguments.of("orderingKey", (Setter) OutboxMessage.to("q")::orderingKey),
        Arguments.of("timerId", (Setter) OutboxMessage.to("q")::timerId),
        Arguments.of("header name", (Setter) name -> OutboxMessage.to("q").header(name, "")));
  }

  @ParameterizedTest
  @MethodSource("names")
  void refusesBlankNames(String what, Setter setter) {
    for (String blank : new String[] {"", " ", "\t\n"}) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> setter.set(blank))
          .withMessage(what + " is blank; give it a name");
    }
  }

  @ParameterizedTest
  @MethodSource("names")
  void refusesNamesOfMoreThan255Bytes(String what, Setter setter) {
    setter.set("x".repeat(255));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> setter.set("x".repeat(256)))
        .withMessage(what + " is 256 bytes long; at most 255 are allowed");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> setter.set("ë".repeat(128)))
        .withMessageContaining("256 bytes");
  }

  @ParameterizedTest
  @MethodSource("names")
  void refusesNulCharacters(String what, Setter setter) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> setter.set("a\0b"))
        .withMessage(
            what + " has a NUL character at position 1; PostgreSQL cannot store it, remove it");
  }

  @ParameterizedTest
  @MethodSource("names")
  void refusesHalvesOfSurrogatePairs(String what, Setter setter) {
    for (String half : new String[] {"ab\ud83d", "ab\udc18", "ab\ud83dc", "ab\udc18\ud83d"}) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> setter.set(half))
          .withMessage(
              what + " has half of a surrogate pair at position 2; UTF-8 cannot express it");
    }
    setter.set("ab🐘");
  }

  @ParameterizedTest
  @MethodSource("names")
  void refusesNull(String what, Setter setter) {
    assertThatNullPointerException().isThrownBy(() -> setter.set(null)).withMessage(what);
  }

  @Test
  void refusesHeaderValuesThatCannotBeStoredWithoutQuotingThem() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMessage.to("q").header("tenant", "secret\0"))
        .withMessageContaining("header 'tenant' has a NUL character at position 6")
        .withMessageNotContaining("secret");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMessage.to("q").correlationId("\ud83d"))
        .withMessageContaining("header 'correlation-id' has half of a surrogate pair");
    assertThatNullPointerException().isThrownBy(() -> OutboxMessage.to("q").header("tenant", null));
  }

  @Test
  void refusesNegativeDelays() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMessage.to("q").deliverIn(Duration.ofSeconds(-1)))
        .withMessage("deliverIn is PT-1S; it must be zero or more");
  }

  @Test
  void refusesBothDelays() {
    String message = "deliverIn and deliverAt are both set; set one of them";
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMessage.to("q").deliverIn(Duration.ZERO).deliverAt(Instant.EPOCH))
        .withMessage(message);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMessage.to("q").deliverAt(Instant.EPOCH).deliverIn(Duration.ZERO))
        .withMessage(message);
  }

  @Test
  void refusesExpiriesThatAreOutOfRange() {
    for (Duration time :
        List.of(Duration.ZERO, Duration.ofSeconds(-1), Duration.ofDays(36_500).plusNanos(1))) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> OutboxMessage.to("q").expiresIn(time))
          .withMessage(
              "expiresIn is "
                  + time
                  + "; it must be more than zero and at most 36500 days; leave it out for a message that does not expire");
    }
    assertThat(OutboxMessage.to("q").expiresIn(Duration.ofDays(36_500)).build().expiresIn())
        .contains(Duration.ofDays(36_500));
  }

  @Test
  void refusesBothExpiries() {
    String message = "expiresIn and expiresAt are both set; set one of them";
    assertThatIllegalArgumentException()
        .isThrownBy(
            () -> OutboxMessage.to("q").expiresIn(Duration.ofDays(1)).expiresAt(Instant.EPOCH))
        .withMessage(message);
    assertThatIllegalArgumentException()
        .isThrownBy(
            () -> OutboxMessage.to("q").expiresAt(Instant.EPOCH).expiresIn(Duration.ofDays(1)))
        .withMessage(message);
  }

  @Test
  void refusesADedupWindowThatIsOutOfRange() {
    for (Duration time : List.of(Duration.ofSeconds(-1), Duration.ofDays(36_501))) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> OutboxMessage.to("q").dedupKey("k", time))
          .withMessage("inFlight is " + time + "; it must be zero to 36500 days");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> new DedupWindow(Duration.ZERO, time))
          .withMessage("completed is " + time + "; it must be zero to 36500 days");
    }
    assertThatIllegalArgumentException()
        .isThrownBy(() -> DedupWindow.whileInFlight(Duration.ZERO))
        .withMessage("the dedup window is zero; give it a time, or publish without dedupKey(...)");
  }

  @Test
  void refusesATimerIdBesideADedupKey() {
    OutboxMessage.Builder builder =
        OutboxMessage.to("q").timerId("t").dedupKey("k", Duration.ofHours(1));
    assertThatIllegalArgumentException()
        .isThrownBy(builder::build)
        .withMessageStartingWith("timerId and dedupKey are both set; set one of them");
  }

  @Test
  void refusesToExpireBeforeItIsDue() {
    OutboxMessage.Builder builder =
        OutboxMessage.to("q").deliverAt(Instant.EPOCH).expiresAt(Instant.EPOCH);
    assertThatIllegalArgumentException()
        .isThrownBy(builder::build)
        .withMessage(
            "expiresAt is 1970-01-01T00:00:00Z and deliverAt is 1970-01-01T00:00:00Z; a message must expire after it is due");
    assertThat(builder.expiresAt(Instant.EPOCH.plusNanos(1)).build().expiresAt())
        .contains(Instant.EPOCH.plusNanos(1));
  }

  @Test
  void hasNoBytesAndNoHeadersAndNoDelayByDefault() {
    OutboxMessage message = ORDERS.build();
    assertThat(message.queue()).isEqualTo("orders");
    assertThat(message.body()).isEqualTo(Payload.empty());
    assertThat(message.headers()).isEmpty();
    assertThat(message.contentType()).isEmpty();
    assertThat(message.type()).isEmpty();
    assertThat(message.orderingKey()).isEmpty();
    assertThat(message.timerId()).isEmpty();
    assertThat(message.deliverIn()).isEmpty();
    assertThat(message.deliverAt()).isEmpty();
    assertThat(message.expiresIn()).isEmpty();
    assertThat(message.expiresAt()).isEmpty();
    assertThat(message.dedupKey()).isEmpty();
    assertThat(message.dedupWindow()).isEmpty();
  }

  @Test
  void keepsContentTypeAndCorrelationIdAmongTheHeaders() {
    OutboxMessage message =
        OutboxMessage.to("q").contentType("text/csv").correlationId("c-1").header("a", "b").build();
    assertThat(message.headers())
        .containsOnly(
            java.util.Map.entry("content-type", "text/csv"),
            java.util.Map.entry("correlation-id", "c-1"),
            java.util.Map.entry("a", "b"));
    assertThat(message.contentType()).contains("text/csv");
    assertThatThrownBy(() -> message.headers().put("x", "y"))
        .isInstanceOf(UnsupportedOperationException.class);
  }

  @Test
  void isNotChangedByItsBuilderOrItsBytes() {
    byte[] bytes = {1};
    OutboxMessage.Builder builder = OutboxMessage.to("q").header("a", "1").body(bytes);
    OutboxMessage message = builder.build();
    builder.header("a", "2").type("t").body("other");
    bytes[0] = 2;
    assertThat(message.headers()).containsEntry("a", "1");
    assertThat(message.type()).isEmpty();
    assertThat(message.body()).isEqualTo(Payload.of(new byte[] {1}));
  }

  @Test
  void showsNeitherBodyNorHeaders() {
    assertThat(OutboxMessage.to("q").type("t").header("a", "secret").body("secret").build())
        .hasToString("OutboxMessage[queue=q, type=t]");
  }
}
