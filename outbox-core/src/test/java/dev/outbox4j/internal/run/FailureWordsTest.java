package dev.outbox4j.internal.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxException;
import dev.outbox4j.Payload;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.spi.UndecodableException;
import java.io.IOException;
import java.util.Map;
import org.junit.jupiter.api.Test;

class FailureWordsTest {
  private final FailureWords words = new FailureWords(false);
  private final FailureWords outspoken = new FailureWords(true);

  /** Thrown by user code as far as the class can tell. */
  private static <T extends Throwable> T thrownBy(String type, T failure) {
    failure.setStackTrace(
        new StackTraceElement[] {new StackTraceElement(type, "ship", "Shipping.java", 31)});
    return failure;
  }

  @Test
  void namesClassAndPlaceOfTheFailureAndOfItsRoot() {
    Exception root = thrownBy("shop.Carrier", new IOException("secret"));
    Exception between = new IllegalArgumentException("secret", root);
    Exception failure = thrownBy("shop.Shipping", new IllegalStateException("secret", between));

    assertThat(words.of(failure))
        .isEqualTo(
            "java.lang.IllegalStateException at shop.Shipping.ship:31,"
                + " caused by java.io.IOException at shop.Carrier.ship:31");
    assertThat(words.of(root)).isEqualTo("java.io.IOException at shop.Carrier.ship:31");
  }

  @Test
  void namesTheUsersPlaceThatCalledTheJdkOrAFramework() {
    Exception failure = new IllegalStateException("secret");
    StackTraceElement jdk = new StackTraceElement("java.util.Optional", "get", "Optional.java", 9);
    failure.setStackTrace(
        new StackTraceElement[] {
          jdk,
          new StackTraceElement("org.springframework.jdbc.core.JdbcTemplate", "x", "J.java", 1),
          new StackTraceElement("dev.outbox4j.postgres.internal.X", "x", "X.java", 1),
          new StackTraceElement("shop.Shipping", "ship", "Shipping.java", 31),
          new StackTraceElement("shop.Main", "main", "Main.java", 1)
        });
    assertThat(words.of(failure))
        .isEqualTo("java.lang.IllegalStateException at shop.Shipping.ship:31");

    failure.setStackTrace(new StackTraceElement[] {jdk});
    assertThat(words.of(failure))
        .isEqualTo("java.lang.IllegalStateException at java.util.Optional.get:9");
  }

  @Test
  void tellsMessagesOnlyIfTheUserWantsThemAndInOneLine() {
    Exception failure = thrownBy("shop.Shipping", new IllegalStateException("down\nERROR forged"));

    assertThat(outspoken.of(failure))
        .isEqualTo("java.lang.IllegalStateException (down?ERROR forged) at shop.Shipping.ship:31");
    assertThat(words.of("because", "said")).isEqualTo("said");
    assertThat(outspoken.of("because", "said")).isEqualTo("because");
    assertThat(
            outspoken.of(thrownBy("shop.Shipping", new IllegalStateException("x".repeat(9_999)))))
        .hasSizeLessThan(700);
  }

  @Test
  void tellsWhatTheLibraryItselfSays() {
    assertThat(words.of(OutcomeApplier.noHandler("t"))).startsWith("No handler for type 't'");
    try {
      Jackson2Codec.standard().decode(Payload.ofText("{\"secret"), Map.of(), Integer.class);
    } catch (UndecodableException undecodable) {
      assertThat(words.of(undecodable)).startsWith("payload of 8 bytes is not JSON of");
    }
    assertThat(words.of(thrownBy("shop.Codec", new UndecodableException("secret"))))
        .isEqualTo("dev.outbox4j.spi.UndecodableException at shop.Codec.ship:31");
    assertThat(words.of(thrownBy("shop.Codec", new OutboxException("secret"))))
        .doesNotContain("secret");
  }

  @Test
  void tellsWhatTheLibraryRefusedToTheHandler() {
    Exception refused = new OutboxException("publish() runs outside a transaction");
    refused = thrownBy("dev.outbox4j.spring.OutboxTemplate", refused);
    assertThat(words.of(refused)).isEqualTo("publish() runs outside a transaction");
    assertThat(words.of(thrownBy("shop.Shipping", new IllegalStateException("secret", refused))))
        .isEqualTo(
            "java.lang.IllegalStateException at shop.Shipping.ship:31, caused by"
                + " dev.outbox4j.OutboxException (publish() runs outside a transaction)"
                + " at dev.outbox4j.spring.OutboxTemplate.ship:31");
  }

  @Test
  void bearsFailuresThatCannotBeAsked() {
    Exception unreadable =
        new IllegalStateException() {
          @Override
          public String getMessage() {
            throw new UnsupportedOperationException("no words");
          }
        };
    unreadable.setStackTrace(new StackTraceElement[0]);

    assertThat(outspoken.of(unreadable)).isEqualTo(unreadable.getClass().getName());
  }
}
