package dev.outbox4j.test;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.DedupWindow;
import dev.outbox4j.FailureReason;
import dev.outbox4j.IfLive;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.TypeRef;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.Published;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

class InMemoryOutboxTest {
  private final InMemoryOutbox outbox = InMemoryOutbox.create();

  record Order(String id) {}

  private static OutboxMessage.Builder order(String id) {
    return OutboxMessage.to("orders").type("order.placed").body(id);
  }

  @Test
  void keepsWhatWasPublishedAlsoOnceItIsHandled() {
    outbox.publish(
        order("o-1").orderingKey("acme").correlationId("c-1").build(),
        OutboxMessage.to("mails").body("m-1").build());
    outbox.drain("orders", subscriber -> subscriber.otherwise((payload, delivery) -> {}));

    assertThat(outbox.published("orders"))
        .singleElement()
        .satisfies(
            row -> {
              assertThat(row.type()).contains("order.placed");
              assertThat(row.orderingKey()).contains("acme");
              assertThat(row.timerId()).isEmpty();
              assertThat(row.correlationId()).contains("c-1");
              assertThat(row.header("content-type")).contains("text/plain; charset=utf-8");
              assertThat(row.payload()).isEqualTo(Payload.ofText("o-1"));
              assertThat(row.body(String.class)).isEqualTo("o-1");
              assertThat(row.createdAt()).isEqualTo(row.availableAt());
              assertThat(row.attempts()).isZero();
            });
    assertThat(outbox.published()).hasSize(2);
    assertThat(outbox.waiting("orders")).isEmpty();
    assertThat(outbox.waiting("mails")).hasSize(1);
  }

  @Test
  void encodesByItsCodec() {
    InMemoryOutbox json = InMemoryOutbox.with(Jackson2Codec.standard());

    json.publish(OutboxMessage.to("orders").body(List.of(new Order("o-1"))).build());

    OutboxRow row = json.published("orders").get(0);
    assertThat(row.payload()).isEqualTo(Payload.ofText("[{\"id\":\"o-1\"}]"));
    assertThat(row.header("content-type")).contains("application/json");
    assertThat(row.body(new TypeRef<List<Order>>() {})).containsExactly(new Order("o-1"));
  }

  @Test
  void publishesNothingOfACallOfWhichOneCannotBeEncoded() {
    OutboxMessage good = order("o-1").build();
    OutboxMessage bad = OutboxMessage.to("orders").body(new Order("o-2")).build();

    assertThatThrownBy(() -> outbox.publish(good, bad))
        .isInstanceOf(OutboxException.class)
        .hasMessageContainingAll(Order.class.getName(), "InMemoryOutbox.with(codec)");
    assertThat(outbox.published()).isEmpty();
  }

  @Test
  void publishesATimerOnceWhileItLives() {
    OutboxMessage timer = order("o-1").timerId("t").deliverIn(Duration.ofHours(1)).build();

    assertThat(outbox.publish(timer).get(0).deduplicated()).isFalse();
    assertThat(outbox.publish(timer).get(0).deduplicated()).isTrue();
    assertThat(outbox.published()).hasSize(1);
  }

  @Test
  void aTimerThatIsReplacedWhileItIsHandledRunsOnceMore() {
    outbox.publish(order("o-1").timerId("t", IfLive.REPLACE).build());
    List<String> handled = new CopyOnWriteArrayList<>();

    outbox.drain(
        "orders",
        subscriber ->
            subscriber.otherwise(
                (payload, delivery) -> {
                  handled.add(payload.text());
                  if (handled.size() == 1) {
                    List<Published> published =
                        outbox.publish(
                            order("o-2").timerId("t", IfLive.REPLACE).build(),
                            order("o-3").timerId("t", IfLive.REPLACE).build(),
                            order("o-4").timerId("t").build());
                    assertThat(published)
                        .extracting(Published::deduplicated)
                        .containsExactly(true, false, true);
                  }
                }));

    assertThat(handled).containsExactly("o-1", "o-3");
    assertThat(outbox.waiting("orders")).isEmpty();
  }

  @Test
  void ofADedupKeyNoSecondMessageIsPublishedWithinItsWindow() {
    OutboxMessage message = order("o-1").dedupKey("k", Duration.ofHours(1)).build();

    assertThat(outbox.publish(message, message))
        .extracting(Published::deduplicated)
        .containsExactly(false, true);
    outbox.drain("orders", orders -> orders.otherwise((payload, delivery) -> {}));
    outbox.advance(Duration.ofHours(1).minusMillis(1));
    assertThat(outbox.publish(message).get(0).deduplicated()).isTrue();
    outbox.advance(Duration.ofMillis(1));
    assertThat(outbox.publish(message).get(0).deduplicated()).isFalse();
  }

  @Test
  void aWindowInFlightEndsWithItsMessage() {
    OutboxMessage message =
        order("o-1").dedupKey("k", DedupWindow.whileInFlight(Duration.ofHours(1))).build();

    assertThat(outbox.publish(message, message))
        .extracting(Published::deduplicated)
        .containsExactly(false, true);
    outbox.drain("orders", orders -> orders.otherwise((payload, delivery) -> {}));
    assertThat(outbox.publish(message).get(0).deduplicated()).isFalse();
  }

  @Test
  void timersOfOneOrderingKeyInOneCallAreRefusedAsOnPostgresqlAndNoneIsPublished() {
    OutboxMessage one = order("o-1").orderingKey("k").timerId("a").build();
    OutboxMessage other = order("o-2").orderingKey("k").timerId("b").build();
    assertThatThrownBy(() -> outbox.publisher().publish(null, List.of(one, other)))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("the same ordering key and different timer ids");
    assertThatThrownBy(() -> outbox.publish(one, other)).isInstanceOf(OutboxException.class);
    OutboxAssertions.assertThatOutbox(outbox).hasPublishedNothing();
  }

  @Test
  void hasAPublisherForTheServiceThatNeedsNoConnection() {
    OutboxPublisher publisher = outbox.publisher();

    publisher.publish(null, order("o-1").build());
    publisher.publish(null, List.of(order("o-2").timerId("t").build(), order("o-3").build()));
    assertThat(publisher.cancelTimer(null, "orders", "t")).isTrue();
    assertThat(publisher.cancelTimer(null, "orders", "t")).isFalse();

    assertThat(outbox.waiting("orders"))
        .extracting(row -> row.body(String.class))
        .containsExactly("o-1", "o-3");
  }

  @Test
  void doesNotCancelATimerThatIsBeingHandled() {
    outbox.publish(order("o-1").timerId("t").build());
    boolean[] cancelled = {true};

    outbox.drain(
        "orders",
        subscriber ->
            subscriber.otherwise(
                (payload, delivery) -> {
                  cancelled[0] = outbox.publisher().cancelTimer(null, "orders", "t");
                }));

    assertThat(cancelled[0]).isFalse();
  }

  @Test
  void awaitsThatARunningSubscriberHasHandledAll() {
    List<String> handled = new CopyOnWriteArrayList<>();
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(outbox.store())
            .deadLetters(outbox.deadLetters())
            .on(
                "order.placed",
                String.class,
                (order, delivery) -> {
                  handled.add(order);
                })
            .build();
    try (subscriber) {
      subscriber.start();
      outbox.publish(order("o-1").build(), order("o-2").build());

      outbox.awaitDrained("orders", Duration.ofSeconds(20));

      assertThat(handled).containsExactlyInAnyOrder("o-1", "o-2");
    }
  }

  @Test
  void saysWhatIsStillDueWhenTheTimeIsUp() {
    outbox.publish(order("o-1").build(), order("o-2").deliverIn(Duration.ofHours(1)).build());

    assertThatThrownBy(() -> outbox.awaitDrained("orders", Duration.ofMillis(20)))
        .isInstanceOf(AssertionError.class)
        .hasMessageContainingAll("Queue 'orders'", "'order.placed'", "\"o-1\"")
        .hasMessageNotContaining("o-2");
  }

  @Test
  void stopsWaitingWhenItsThreadIsInterrupted() {
    outbox.publish(order("o-1").build());
    Thread.currentThread().interrupt();

    Throwable failure = catchThrowable(() -> outbox.awaitDrained("orders", Duration.ofSeconds(60)));

    assertThat(Thread.interrupted()).isTrue();
    assertThat(failure).isInstanceOf(AssertionError.class).hasMessageContaining("Interrupted");
  }

  @Test
  void wakesASubscriberThatListensWhenTheClockIsMoved() {
    CountDownLatch handled = new CountDownLatch(1);
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(outbox.store())
            .listen(outbox.notifications())
            .poll(Duration.ofMinutes(1), Duration.ofHours(1))
            .pollWithoutListener(Duration.ofHours(1))
            .deadLetters(outbox.deadLetters())
            .otherwise(
                (payload, delivery) -> {
                  handled.countDown();
                })
            .build();
    try (subscriber) {
      subscriber.start();
      outbox.publish(order("o-1").deliverIn(Duration.ofMinutes(30)).build());
      await()
          .until(
              () ->
                  subscriber
                      .health()
                      .lastClaimAt()
                      .filter(at -> at.isBefore(Instant.now().minusMillis(500))) // asleep
                      .isPresent());
      assertThat(handled.getCount()).isEqualTo(1);

      outbox.advance(Duration.ofMinutes(30));

      await().until(() -> handled.getCount() == 0);
    }
  }

  @Test
  void keepsDeadLettersWithTheirReason() {
    outbox.publish(order("o-1").build());

    outbox.drain(
        "orders",
        subscriber ->
            subscriber.on(
                "order.placed",
                (payload, delivery) -> {
                  return Outcome.reject("no such customer");
                }));

    assertThat(outbox.deadLettered("mails")).isEmpty();
    assertThat(outbox.deadLettered("orders"))
        .singleElement()
        .satisfies(
            dead -> {
              assertThat(dead.reason()).isEqualTo(FailureReason.REJECTED);
              assertThat(dead.exception()).contains("no such customer");
              assertThat(dead.row().body(String.class)).isEqualTo("o-1");
              assertThat(dead.failedAt()).isEqualTo(dead.row().createdAt());
              assertThat(dead.toString()).contains("o-1", "rejected: no such customer");
            });
  }
}
