package dev.outbox4j.test;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.Delivery;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import org.junit.jupiter.api.Test;

class TestDeliveryTest {
  record Order(String id) {}

  @Test
  void isADeliveryWithWhatWasSet() {
    Instant created = Instant.parse("2026-01-01T00:00:00Z");
    Delivery delivery =
        TestDelivery.of("o-1")
            .id(7)
            .queue("orders")
            .type("order.placed")
            .orderingKey("acme")
            .timerId("t-1")
            .header("tenant", "a")
            .correlationId("c-1")
            .createdAt(created)
            .availableAt(created.plusSeconds(1))
            .attempt(2)
            .deliveries(5)
            .leaseToken(9);

    assertThat(delivery.id()).isEqualTo(7);
    assertThat(delivery.queue()).isEqualTo("orders");
    assertThat(delivery.type()).contains("order.placed");
    assertThat(delivery.orderingKey()).contains("acme");
    assertThat(delivery.timerId()).contains("t-1");
    assertThat(delivery.headers())
        .isEqualTo(
            Map.of(
                "tenant", "a",
                "correlation-id", "c-1",
                "content-type", "text/plain; charset=utf-8"));
    assertThat(delivery.correlationId()).contains("c-1");
    assertThat(delivery.createdAt()).isEqualTo(created);
    assertThat(delivery.availableAt()).isEqualTo(created.plusSeconds(1));
    assertThat(delivery.attempt()).isEqualTo(2);
    assertThat(delivery.deliveries()).isEqualTo(5);
    assertThat(delivery.leaseToken()).isEqualTo(9);
    assertThat(delivery.payload()).isEqualTo(Payload.ofText("o-1"));
    assertThat(delivery.leaseLost()).isFalse();
    assertThat(delivery)
        .hasToString("TestDelivery[id=7, queue=orders, type=order.placed, attempt=2]");
  }

  @Test
  void hasDefaultsForTheRest() {
    Delivery delivery = TestDelivery.of(Payload.ofText("x")).attempt(3);

    assertThat(delivery.id()).isEqualTo(1);
    assertThat(delivery.queue()).isEqualTo("test");
    assertThat(delivery.type()).isEmpty();
    assertThat(delivery.headers()).isEmpty();
    assertThat(delivery.deliveries()).isEqualTo(3);
    assertThat(delivery.leaseToken()).isEqualTo(3);
    assertThat(Duration.between(delivery.createdAt(), Instant.now()))
        .isBetween(Duration.ZERO, Duration.ofMinutes(1));
    assertThat(delivery.availableAt()).isEqualTo(delivery.createdAt());
  }

  @Test
  void givesTheBodyToATypedHandler() {
    TestDelivery<Order> delivery = TestDelivery.of(new Order("o-1"));

    assertThat(delivery.body().id()).isEqualTo("o-1");
  }

  @Test
  void keepsTheLastDecision() {
    TestDelivery<String> delivery = TestDelivery.of("x");
    assertThat(delivery.decided()).isEmpty();

    delivery.decide(Outcome.ack());
    delivery.decide(Outcome.reject("no"));

    assertThat(delivery.decided()).contains(Outcome.reject("no"));
  }

  @Test
  void losesItsLeaseWhenTold() {
    TestDelivery<String> delivery = TestDelivery.of("x");

    delivery.loseLease();

    assertThat(delivery.leaseLost()).isTrue();
  }

  @Test
  void tellsHowLongItsLeaseLastsAndThatItsSubscriberStops() {
    TestDelivery<String> delivery = TestDelivery.of("x");
    assertThat(delivery.leaseLeft()).isEqualTo(Duration.ofSeconds(60));
    assertThat(delivery.stopping()).isFalse();

    delivery.leaseLeft(Duration.ofSeconds(3)).stopSubscriber();
    assertThat(delivery.leaseLeft()).isEqualTo(Duration.ofSeconds(3));
    assertThat(delivery.stopping()).isTrue();

    delivery.loseLease();
    assertThat(delivery.leaseLeft()).isZero();
    assertThatThrownBy(() -> delivery.leaseLeft(Duration.ofSeconds(-1)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("leaseLeft is PT-1S");
  }

  @Test
  void hasThePayloadOfBytesCodecOrItsOwn() {
    assertThat(TestDelivery.of(new byte[] {1, 2}).payload())
        .isEqualTo(Payload.of(new byte[] {1, 2}));

    Delivery encoded = TestDelivery.of(new Order("o-1")).codec(Jackson2Codec.standard());
    assertThat(encoded.payload()).isEqualTo(Payload.ofText("{\"id\":\"o-1\"}"));
    assertThat(encoded.contentType()).contains("application/json");

    Delivery own = TestDelivery.of(new Order("o-1")).payload(Payload.ofText("<order/>"));
    assertThat(own.payload()).isEqualTo(Payload.ofText("<order/>"));
    assertThat(own.contentType()).isEmpty();
  }

  @Test
  void keepsAContentTypeThatWasSet() {
    assertThat(TestDelivery.of("<order/>").contentType("application/xml").contentType())
        .contains("application/xml");
  }

  @Test
  void saysWhatToDoWhereAnObjectHasNoPayload() {
    Delivery delivery = TestDelivery.of(new Order("o-1"));

    assertThatThrownBy(delivery::payload)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContainingAll(Order.class.getName(), "codec(...)", "payload(...)");
  }

  @Test
  void refusesWhatNoMessageCanHave() {
    TestDelivery<String> delivery = TestDelivery.of("x");

    assertThatThrownBy(() -> delivery.queue(" ")).hasMessageContaining("queue is blank");
    assertThatThrownBy(() -> delivery.type("")).hasMessageContaining("type is blank");
    assertThatThrownBy(() -> delivery.orderingKey("")).hasMessageContaining("orderingKey");
    assertThatThrownBy(() -> delivery.timerId("")).hasMessageContaining("timerId");
    assertThatThrownBy(() -> delivery.header("a", "\0")).hasMessageContaining("NUL");
    assertThatThrownBy(() -> delivery.attempt(0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("attempt is 0; it must be 1 or more");
    assertThatThrownBy(() -> delivery.deliveries(0)).hasMessageContaining("deliveries is 0");
    assertThatThrownBy(() -> delivery.leaseToken(0)).hasMessageContaining("leaseToken is 0");
  }
}
