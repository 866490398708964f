package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What a message that a handler makes takes over from the one that is handled. */
class MessageContextTest {
  private static final String TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

  private final InMemoryStore store = new InMemoryStore(Clock.systemUTC());
  private final List<Map<String, String>> made = new CopyOnWriteArrayList<>();
  private OutboxSubscriber subscriber;

  @AfterEach
  void stop() {
    if (subscriber != null) {
      subscriber.stop();
    }
  }

  private void handle(OutboxMessage message, TypedHandler<Payload> handler) {
    store.publish(message);
    subscriber =
        OutboxSubscriber.builder("orders")
            .store(store)
            .deadLetters(store.deadLetters())
            .workers(1)
            .on("t", handler)
            .build();
    subscriber.start();
    await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
  }

  private static OutboxMessage.Builder message() {
    return OutboxMessage.to("orders").type("t");
  }

  @Test
  void takesOverCorrelationIdAndTrace() {
    OutboxMessage first =
        message()
            .correlationId("request-42")
            .traceparent(TRACE)
            .header(OutboxMessage.TRACESTATE, "vendor=1")
            .header("tenant", "acme")
            .build();
    handle(
        first,
        (payload, delivery) -> {
          assertThat(delivery.traceparent()).contains(TRACE);
          made.add(OutboxMessage.to("invoices").header("own", "1").build().headers());
        });
    assertThat(made)
        .containsExactly(
            Map.of(
                "correlation-id", "request-42",
                "traceparent", TRACE,
                "tracestate", "vendor=1",
                "own", "1"));
  }

  @Test
  void whatTheHandlerSetsItselfStays() {
    OutboxMessage first =
        message()
            .correlationId("request-42")
            .traceparent(TRACE)
            .header(OutboxMessage.TRACESTATE, "vendor=1")
            .build();
    handle(
        first,
        (payload, delivery) -> {
          made.add(
              OutboxMessage.to("invoices")
                  .correlationId("another")
                  .traceparent("00-1-2-00")
                  .build()
                  .headers());
        });
    assertThat(made)
        .containsExactly(Map.of("correlation-id", "another", "traceparent", "00-1-2-00"));
  }

  @Test
  void withoutAnyThereIsNothingToTakeOverAndNothingIsLeftForTheNextMessage() {
    store.publish(message().correlationId("first").build());
    handle(
        message().build(),
        (payload, delivery) -> {
          made.add(OutboxMessage.to("invoices").build().headers());
        });
    assertThat(made).containsExactly(Map.of("correlation-id", "first"), Map.of());
    assertThat(OutboxMessage.to("invoices").build().headers()).isEmpty();
  }
}
