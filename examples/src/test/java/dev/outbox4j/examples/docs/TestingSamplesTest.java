package dev.outbox4j.examples.docs;

import static dev.outbox4j.test.OutboxAssertions.assertThatOutbox;
import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.BatchMessage;
import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.examples.docs.Checkout.Order;
import dev.outbox4j.test.Drained;
import dev.outbox4j.test.InMemoryOutbox;
import dev.outbox4j.test.TestDelivery;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class TestingSamplesTest {
  private final Shipping shipping = new Shipping();

  @Test
  void callsAHandlerInThreeLines() {
    // tag::handler
    var delivery = TestDelivery.of(new Order("o-1", "a book")).type("order.placed").attempt(2);
    Outcome outcome = shipping.ship(delivery.body(), delivery);
    assertThat(outcome).isEqualTo(Outcome.ack());
    // end::handler

    assertThat(shipping.shipped).containsExactly("o-1");
  }

  @Test
  void callsABatchHandler() {
    Imports imports = new Imports();
    // tag::batch
    TestDelivery<String> good = TestDelivery.of("3 books");
    TestDelivery<String> empty = TestDelivery.of("");
    imports.insertAll(
        List.of(new BatchMessage<>(good.body(), good), new BatchMessage<>(empty.body(), empty)));

    assertThat(imports.inserted).containsExactly("3 books");
    assertThat(good.decided()).isEmpty(); // so its end is that of the batch: an ack
    assertThat(empty.decided()).contains(Outcome.reject("an empty line"));
    // end::batch
  }

  private static final class Imports {
    private final List<String> inserted = new ArrayList<>();

    void insertAll(List<BatchMessage<String>> lines) {
      for (BatchMessage<String> line : lines) {
        if (line.body().isEmpty()) {
          line.delivery().decide(Outcome.reject("an empty line"));
        } else {
          inserted.add(line.body());
        }
      }
    }
  }

  @Test
  void goesFromTheServiceToTheHandlerWithoutADatabase() throws SQLException {
    List<Order> stored = new ArrayList<>();
    // tag::service
    InMemoryOutbox outbox = InMemoryOutbox.with(Jackson2Codec.standard());
    Checkout checkout = new Checkout((tx, order) -> stored.add(order), outbox.publisher());

    checkout.place(null, new Order("o-1", "a book"));
    assertThatOutbox(outbox).hasPublished("orders", "order.placed", new Order("o-1", "a book"));

    outbox.drain("orders", shipping::subscribe).requireNoFailures();
    assertThat(shipping.shipped).containsExactly("o-1");
    // end::service

    assertThat(stored).hasSize(1);
    assertThat(outbox.waiting("orders")).isEmpty();
  }

  @Test
  void movesTheClockToTheRetry() {
    InMemoryOutbox outbox = InMemoryOutbox.with(Jackson2Codec.standard());
    outbox.publish(order("o-1", "a book"));
    // tag::retries
    shipping.carrierOpen = false;
    Drained drained = outbox.drain("orders", shipping::subscribe);
    assertThat(drained.failures()).hasSize(1); // what the handler threw
    assertThat(outbox.waiting("orders").get(0).attempts()).isEqualTo(1);

    shipping.carrierOpen = true;
    outbox.advance(Duration.ofMinutes(5)); // as the retry policy says
    outbox.drain("orders", shipping::subscribe).requireNoFailures();
    assertThat(shipping.shipped).containsExactly("o-1");
    // end::retries
  }

  @Test
  void looksAtDeadLetters() {
    InMemoryOutbox outbox = InMemoryOutbox.with(Jackson2Codec.standard());
    outbox.publish(order("o-1", ""));
    // tag::dead-letters
    outbox.drain("orders", shipping::subscribe);
    assertThatOutbox(outbox).hasDeadLetter("orders", "order.placed", FailureReason.REJECTED);
    // end::dead-letters

    assertThat(shipping.shipped).isEmpty();
  }

  @Test
  void runsASubscriberOnItsOwnThreads() {
    // tag::running
    InMemoryOutbox outbox = InMemoryOutbox.with(Jackson2Codec.standard());
    OutboxSubscriber.Builder builder =
        OutboxSubscriber.builder("orders")
            .store(outbox.store())
            .listen(outbox.notifications())
            .deadLetters(outbox.deadLetters())
            .codec(Jackson2Codec.standard());
    shipping.subscribe(builder);

    try (OutboxSubscriber subscriber = builder.build()) {
      subscriber.start();
      outbox.publish(order("o-1", "a book"));
      assertThatOutbox(outbox)
          .awaitEmpty("orders", Duration.ofSeconds(10))
          .hasNoDeadLetters("orders");
    }
    // end::running

    assertThat(shipping.shipped).containsExactly("o-1");
  }

  private static OutboxMessage order(String id, String item) {
    return OutboxMessage.to("orders").type("order.placed").body(new Order(id, item)).build();
  }
}
