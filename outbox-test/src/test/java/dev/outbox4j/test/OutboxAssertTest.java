package dev.outbox4j.test;

import static dev.outbox4j.test.OutboxAssertions.assertThatOutbox;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.Delivery;
import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import java.time.Duration;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class OutboxAssertTest {
  private final InMemoryOutbox outbox = InMemoryOutbox.with(Jackson2Codec.standard());
  private final OutboxAssert asserted = assertThatOutbox(outbox);

  record Order(String id) {}

  @BeforeEach
  void publish() {
    outbox.publish(
        OutboxMessage.to("orders").type("order.placed").body(new Order("o-1")).build(),
        OutboxMessage.to("orders").type("order.noted").body("note").build());
  }

  private static void assertFails(ThrowingCallable assertion, String... words) {
    assertThatThrownBy(assertion).isInstanceOf(AssertionError.class).hasMessageContainingAll(words);
  }

  @Test
  void tellsWhetherATypeWasPublished() {
    asserted.hasPublished("orders", "order.placed").hasNotPublished("orders", "order.paid");

    assertFails(
        () -> asserted.hasPublished("orders", "order.paid"),
        "The outbox in memory should have a message of type 'order.paid' in queue 'orders'",
        "there it has 2:",
        "'order.placed'",
        "\"note\"");
    assertFails(
        () -> asserted.hasPublished("mails", "order.placed"),
        "there it has nothing",
        "in other queues it has 2:");
    assertFails(
        () -> asserted.hasNotPublished("orders", "order.placed"),
        "should have no message of type 'order.placed' in queue 'orders'; it has 1:");
  }

  @Test
  void comparesBodies() {
    asserted
        .hasPublished("orders", "order.placed", new Order("o-1"))
        .hasPublished("orders", "order.placed", "{\"id\":\"o-1\"}")
        .hasPublished("orders", "order.noted", Payload.ofText("note"))
        .hasPublished("orders", "order.noted", new byte[] {'n', 'o', 't', 'e'});

    assertFails(
        () -> asserted.hasPublished("orders", "order.placed", new Order("o-2")),
        "with the body Order[id=o-2]",
        "o-1");
    assertFails(
        () -> asserted.hasPublished("orders", "order.noted", new Order("o-1")), "Order[id=o-1]");
    assertFails(() -> asserted.hasPublished("orders", "order.noted", "other"), "\"other\"");
    assertFails(() -> asserted.hasPublished("orders", "order.placed", List.of()), "[]");
  }

  @Test
  void saysThatABodyNeedsACodec() {
    OutboxAssert plain = assertThatOutbox(InMemoryOutbox.create());

    assertThatThrownBy(() -> plain.hasPublished("orders", "order.placed", new Order("o-1")))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContainingAll(Order.class.getName(), "codec(...)");
  }

  @Test
  void takesACodecThatTheOutboxHasNot() {
    InMemoryOutbox plain = InMemoryOutbox.create();
    plain.publish(OutboxMessage.to("orders").type("placed").body("{\"id\":\"o-1\"}").build());

    assertThatOutbox(plain)
        .codec(Jackson2Codec.standard())
        .hasPublished("orders", "placed", new Order("o-1"));
  }

  @Test
  void looksForAMessageThatFulfilsRequirements() {
    asserted.hasPublished(
        "orders", row -> assertThat(row.body(Order.class)).isEqualTo(new Order("o-1")));

    assertThatThrownBy(
            () -> asserted.hasPublished("orders", row -> assertThat(row.id()).isEqualTo(77)))
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("a message that fulfils the requirements")
        .satisfies(failure -> assertThat(failure.getSuppressed()).hasSize(2));
  }

  @Test
  void counts() {
    asserted
        .hasPublishedExactly("orders", 2)
        .hasPublishedExactly("mails", 0)
        .hasPublishedNothing("mails");
    assertThatOutbox(InMemoryOutbox.create()).hasPublishedNothing();

    assertFails(() -> asserted.hasPublishedExactly("orders", 3), "3 message(s)", "it has 2:");
    assertFails(() -> asserted.hasPublishedNothing("orders"), "nothing in queue 'orders'");
    assertFails(asserted::hasPublishedNothing, "nothing in any queue; it has 2:");
    assertThatThrownBy(() -> asserted.hasPublishedExactly("orders", -1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("count is -1; it must be 0 or more");
  }

  @Test
  void listsTwentyOfMany() {
    for (int i = 0; i < 30; i++) {
      outbox.publish(OutboxMessage.to("many").body("x").build());
    }

    assertFails(() -> asserted.hasPublishedNothing("many"), "it has 30:", "and 10 more");
  }

  @Test
  void tellsOfDeadLetters() {
    asserted.hasNoDeadLetters("orders");
    outbox.drain(
        "orders",
        orders ->
            orders
                .on(
                    "order.placed",
                    (payload, delivery) -> {
                      return Outcome.reject("unknown customer");
                    })
                .otherwise((payload, delivery) -> {}));

    asserted.hasDeadLetter("orders", "order.placed", FailureReason.REJECTED);
    assertThat(asserted.deadLettered("orders"))
        .singleElement()
        .satisfies(dead -> assertThat(dead.row().body(Order.class).id()).isEqualTo("o-1"));
    assertFails(() -> asserted.hasNoDeadLetters("orders"), "it has 1:", "unknown customer");
    assertFails(
        () -> asserted.hasDeadLetter("orders", "order.placed", FailureReason.UNDECODABLE),
        "UNDECODABLE",
        "rejected");
    assertFails(
        () -> asserted.hasDeadLetter("orders", "order.noted", FailureReason.REJECTED),
        "type 'order.noted'");
  }

  @Test
  void tellsWhetherAQueueIsDrained() {
    asserted.isDrained("mails").awaitDrained("mails", Duration.ZERO);

    assertFails(() -> asserted.isDrained("orders"), "nothing that is due in queue 'orders'");
    assertFails(
        () -> asserted.awaitDrained("orders", Duration.ofMillis(10)), "after PT0.01S", "it has 2:");
    outbox.drain("orders", orders -> orders.otherwise((payload, delivery) -> {}));
    asserted.isDrained("orders").hasPublishedExactly("orders", 2);
  }

  @Test
  void aMessageThatWaitsForARetryIsLeft() {
    outbox.drain(
        "orders",
        orders ->
            orders.otherwise(
                (Payload payload, Delivery delivery) -> {
                  throw new IllegalStateException("the carrier does not answer");
                }));

    asserted.awaitDrained("orders", Duration.ZERO).hasNoDeadLetters("orders");
    assertFails(
        () -> asserted.isEmpty("orders"),
        "should have no message left in queue 'orders'",
        "it has 2:",
        "the carrier does not answer");
    assertFails(
        () -> asserted.awaitEmpty("orders", Duration.ofMillis(10)),
        "after PT0.01S",
        "the carrier does not answer");
    outbox.advance(Duration.ofHours(1));
    outbox.drain("orders", orders -> orders.otherwise((payload, delivery) -> {}));
    asserted.isEmpty("orders").awaitEmpty("orders", Duration.ZERO).isEmpty("mails");
  }

  @Test
  void aMessageThatIsDelayedIsLeft() {
    outbox.publish(OutboxMessage.to("mails").body("x").deliverIn(Duration.ofDays(1)).build());

    asserted.isDrained("mails");
    assertFails(() -> asserted.isEmpty("mails"), "it has 1:");
  }

  @Test
  void whatARequirementThrowsIsUnmet() {
    InMemoryOutbox mixed = InMemoryOutbox.with(Jackson2Codec.standard());
    mixed.publish(OutboxMessage.to("orders").body("no JSON").build());
    OutboxAssert assertion = assertThatOutbox(mixed);

    assertThatThrownBy(() -> assertion.hasPublished("orders", row -> row.body(Order.class)))
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("a message that fulfils the requirements")
        .satisfies(
            failure ->
                assertThat(failure.getSuppressed())
                    .singleElement()
                    .isInstanceOf(OutboxException.class));
    mixed.publish(OutboxMessage.to("orders").body(new Order("o-1")).build());
    assertion.hasPublished("orders", row -> row.body(Order.class));
  }

  @Test
  void saysThatABodyCouldNotBeDecoded() {
    assertThatThrownBy(() -> asserted.hasPublished("orders", "order.noted", new Order("o-1")))
        .isInstanceOf(AssertionError.class)
        .hasMessageContainingAll("of that type 1 could not be decoded", "UndecodableException")
        .satisfies(failure -> assertThat(failure.getSuppressed()).hasSize(1));
    assertThatThrownBy(() -> asserted.hasPublished("orders", "order.placed", new Order("o-2")))
        .isInstanceOf(AssertionError.class)
        .hasMessageNotContaining("could not be decoded");
  }

  @Test
  void refusesToLookForDeadLettersWhereThereAreNone() {
    OutboxAssert without = asserted.withoutDeadLetters();

    without.hasPublishedExactly("orders", 2);
    assertFails(() -> without.isDrained("orders"), "it has 2:");
    assertFails(() -> without.isEmpty("orders"), "it has 2:");
    for (ThrowingCallable look :
        List.<ThrowingCallable>of(
            () -> without.hasNoDeadLetters("orders"),
            () -> without.hasDeadLetter("orders", "order.placed", FailureReason.REJECTED),
            () -> without.deadLettered("orders"))) {
      assertThatThrownBy(look)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("messages that fail for good are deleted here");
    }
  }

  @Test
  void hasNoDeadLetterTableToName() {
    assertThatThrownBy(() -> asserted.deadLettersIn("public", "outbox_dlq"))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("leave deadLettersIn(...) out");
    assertThatThrownBy(() -> asserted.deadLettersIn("outbox_dlq"))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("leave deadLettersIn(...) out");
  }
}
