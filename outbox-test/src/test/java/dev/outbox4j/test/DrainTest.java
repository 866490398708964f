package dev.outbox4j.test;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.outbox4j.AckMode;
import dev.outbox4j.Delivery;
import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class DrainTest {
  private final InMemoryOutbox outbox = InMemoryOutbox.create();

  /** Without a lock: all handlers of a drain are on the test's thread. */
  private final List<String> handled = new ArrayList<>();

  record Order(String id) {}

  private void publish(String... orders) {
    for (String order : orders) {
      outbox.publish(OutboxMessage.to("orders").type("order.placed").body(order).build());
    }
  }

  private void record(String order, Delivery delivery) {
    handled.add(order + " " + delivery.attempt() + " on " + Thread.currentThread().getName());
  }

  private static void fail(Payload payload, Delivery delivery) {
    throw new IllegalStateException("not now");
  }

  @Test
  void handlesOneAfterTheOtherOnTheCallingThread() {
    publish("o-1", "o-2", "o-3");

    Drained drained =
        outbox.drain("orders", orders -> orders.on("order.placed", String.class, this::record));

    String thread = Thread.currentThread().getName();
    assertThat(handled)
        .containsExactly("o-1 1 on " + thread, "o-2 1 on " + thread, "o-3 1 on " + thread);
    assertThat(drained.runs()).isEqualTo(3);
    assertThat(drained.failures()).isEmpty();
    assertThat(outbox.isDrained("orders")).isTrue();
    assertThat(outbox.waiting("orders")).isEmpty();
  }

  @Test
  void handlesMoreThanOneClaimTakes() {
    for (int i = 0; i < 2_500; i++) {
      publish("o-" + i);
    }

    Drained drained =
        outbox.drain("orders", orders -> orders.on("order.placed", String.class, this::record));

    assertThat(drained.runs()).isEqualTo(2_500);
    assertThat(handled).hasSize(2_500).doesNotHaveDuplicates();
  }

  @Test
  void doesNothingWhereNothingIsDue() {
    outbox.publish(
        OutboxMessage.to("orders").body("later").deliverIn(Duration.ofSeconds(1)).build(),
        OutboxMessage.to("mails").body("elsewhere").build());

    Drained drained = outbox.drain("orders", orders -> orders.otherwise(DrainTest::fail));

    assertThat(drained.runs()).isZero();
    assertThat(outbox.published()).hasSize(2);
  }

  @Test
  void handlesWhatHandlersPublishMeanwhile() {
    publish("o-1");

    outbox.drain(
        "orders",
        orders ->
            orders
                .on(
                    "order.placed",
                    String.class,
                    (order, delivery) -> {
                      outbox.publish(OutboxMessage.to("orders").type("paid").body(order).build());
                    })
                .on("paid", String.class, this::record));

    assertThat(handled).hasSize(1);
  }

  @Test
  void theClockMakesMessagesExpire() {
    outbox.publish(
        OutboxMessage.to("orders").body("short").expiresIn(Duration.ofMinutes(5)).build(),
        OutboxMessage.to("orders").body("long").expiresIn(Duration.ofMinutes(6)).build());
    outbox.advance(Duration.ofMinutes(5));

    Drained drained =
        outbox.drain(
            "orders",
            orders ->
                orders.otherwise(
                    (payload, delivery) -> {
                      handled.add(payload.text());
                    }));

    assertThat(drained.runs()).isEqualTo(1);
    assertThat(handled).containsExactly("long");
    assertThat(outbox.deadLettered("orders"))
        .singleElement()
        .satisfies(dead -> assertThat(dead.reason()).isEqualTo(FailureReason.EXPIRED));
  }

  @Test
  void leavesARetryUntilTheClockMakesItDue() {
    publish("o-1");
    RetryPolicy policy = RetryPolicy.constant(Duration.ofMinutes(1)).attempts(2);

    Drained first =
        outbox.drain("orders", orders -> orders.otherwise(DrainTest::fail).retry(policy));

    assertThat(first.runs()).isEqualTo(1);
    assertThat(first.failures()).singleElement().isInstanceOf(IllegalStateException.class);
    assertThat(outbox.waiting("orders"))
        .singleElement()
        .satisfies(
            row -> {
              assertThat(row.attempts()).isEqualTo(1);
              assertThat(row.deliveries()).isEqualTo(1);
              assertThat(row.lastError().orElseThrow()).contains("not now");
              assertThat(row.availableAt()).isEqualTo(row.createdAt().plusSeconds(60));
            });
    outbox.advance(Duration.ofSeconds(59));
    assertThat(outbox.drain("orders", orders -> orders.otherwise(DrainTest::fail)).runs()).isZero();

    outbox.advance(Duration.ofSeconds(1));
    outbox.drain("orders", orders -> orders.otherwise(DrainTest::fail).retry(policy));

    assertThat(outbox.deadLettered("orders"))
        .singleElement()
        .satisfies(
            dead -> {
              assertThat(dead.reason()).isEqualTo(FailureReason.RETRY_TERMINAL);
              assertThat(dead.attempts()).isEqualTo(2);
            });
  }

  @Test
  void takesTheSettingsOfTheService() {
    publish("o-1");

    outbox.drain(
        "orders", orders -> orders.otherwise(DrainTest::fail).ackMode(AckMode.REJECT_ON_ERROR));

    assertThat(outbox.deadLettered("orders"))
        .extracting(DeadLetter::reason)
        .containsExactly(FailureReason.REJECTED);
  }

  @Test
  void decodesByTheOutboxesCodec() {
    InMemoryOutbox json = InMemoryOutbox.with(Jackson2Codec.standard());
    json.publish(OutboxMessage.to("orders").type("placed").body(new Order("o-1")).build());

    json.drain(
        "orders",
        orders ->
            orders.on(
                "placed",
                Order.class,
                (order, delivery) -> {
                  handled.add(order.id());
                }));

    assertThat(handled).containsExactly("o-1");
  }

  @Test
  void waitsForStages() {
    publish("o-1", "o-2");

    Drained drained =
        outbox.drain(
            "orders",
            orders ->
                orders.on(
                    "order.placed",
                    String.class,
                    (order, delivery) -> {
                      return CompletableFuture.supplyAsync(
                          () -> {
                            if (order.equals("o-2")) {
                              throw new IllegalStateException("no answer");
                            }
                            return Outcome.ack();
                          });
                    }));

    assertThat(drained.runs()).isEqualTo(2);
    assertThat(drained.failures()).hasSize(1);
    assertThat(outbox.waiting("orders")).extracting(OutboxRow::attempts).containsExactly(1);
  }

  @Test
  void failsByACheckInAHandler() {
    publish("o-1");

    assertThatThrownBy(
            () ->
                outbox.drain(
                    "orders",
                    orders ->
                        orders.on(
                            "order.placed",
                            String.class,
                            (order, delivery) -> {
                              assertThat(order).isEqualTo("o-2");
                            })))
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("o-2");
  }

  @Test
  void failsByACheckInAStage() {
    publish("o-1");

    assertThatThrownBy(
            () ->
                outbox.drain(
                    "orders",
                    orders ->
                        orders.on(
                            "order.placed",
                            String.class,
                            (order, delivery) -> {
                              return CompletableFuture.runAsync(
                                  () -> assertThat(order).isEqualTo("o-2"));
                            })))
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("o-2");
  }

  @Test
  void saysWhatIsStillDueWhenTheTimeIsUp() {
    publish("o-1");

    assertThatThrownBy(
            () ->
                outbox.drain(
                    "orders",
                    orders ->
                        orders.on(
                            "order.placed",
                            (payload, delivery) -> {
                              return Outcome.reschedule(Duration.ZERO);
                            }),
                    Duration.ofMillis(200)))
        .isInstanceOf(AssertionError.class)
        .hasMessageContainingAll("Queue 'orders' is not drained after PT0.2S", "\"o-1\"");
  }

  @Test
  void endsWhenItsThreadIsInterrupted() {
    publish("o-1");

    Throwable failure =
        catchThrowable(
            () ->
                outbox.drain(
                    "orders",
                    orders ->
                        orders.on(
                            "order.placed",
                            (payload, delivery) -> {
                              Thread.currentThread().interrupt();
                              return Outcome.reschedule(Duration.ZERO);
                            })));

    assertThat(Thread.interrupted()).isTrue();
    assertThat(failure).isInstanceOf(AssertionError.class).hasMessageContaining("not drained");
  }

  @Test
  void countsWhatNoHandlerHasThrown() {
    InMemoryOutbox json = InMemoryOutbox.with(Jackson2Codec.standard());
    json.publish(
        OutboxMessage.to("orders").type("placed").body("no JSON").build(),
        OutboxMessage.to("orders").type("unknown").body("x").build(),
        OutboxMessage.to("orders").type("later").body("x").build(),
        OutboxMessage.to("orders").type("never").body("x").build(),
        OutboxMessage.to("orders").type("good").body("x").build());

    Drained drained =
        json.drain(
            "orders",
            orders ->
                orders
                    .on("placed", Order.class, (order, delivery) -> {})
                    .on(
                        "later",
                        (payload, delivery) -> {
                          return Outcome.retry("closed");
                        })
                    .on(
                        "never",
                        (payload, delivery) -> {
                          return Outcome.reject("no such customer");
                        })
                    .on("good", (payload, delivery) -> {}));

    assertThat(drained).isEqualTo(new Drained(3, List.of(), 2, 2));
    assertThatThrownBy(drained::requireNoFailures)
        .isInstanceOf(AssertionError.class)
        .hasMessageContainingAll("retried 2 times", "2 failed for good");
  }

  @Test
  void hasNoFailuresWhereAllIsHandled() {
    publish("o-1");

    Drained drained =
        outbox.drain("orders", orders -> orders.on("order.placed", String.class, this::record));

    assertThat(drained.requireNoFailures()).isEqualTo(new Drained(1, List.of(), 0, 0));
  }

  @Test
  void drainsThisOutboxWhateverTheSettingsName() {
    InMemoryOutbox other = InMemoryOutbox.create();
    publish("o-1");

    outbox.drain(
        "orders",
        orders ->
            orders
                .store(other.store())
                .listen(other.notifications())
                .deadLetters(other.deadLetters())
                .on(
                    "order.placed",
                    (payload, delivery) -> {
                      return Outcome.reject("no such customer");
                    }),
        Duration.ofSeconds(5));

    assertThat(outbox.deadLettered("orders")).hasSize(1);
    assertThat(other.deadLettered("orders")).isEmpty();
  }

  @Test
  void interruptsAHandlerThatHangsAndSaysWhere() {
    publish("o-1", "o-2");
    IllegalStateException earlier = new IllegalStateException("not now");

    Throwable failure =
        catchThrowable(
            () ->
                outbox.drain(
                    "orders",
                    orders ->
                        orders.on(
                            "order.placed",
                            String.class,
                            (String order, Delivery delivery) -> {
                              if (order.equals("o-1")) {
                                throw earlier;
                              }
                              hang(1);
                            }),
                    Duration.ofSeconds(2)));

    assertThat(Thread.currentThread().isInterrupted()).isFalse();
    assertThat(failure)
        .isInstanceOf(AssertionError.class)
        .hasMessageContainingAll("A handler still ran after PT2S", "was interrupted");
    assertThat(failure.getCause().getStackTrace())
        .anyMatch(frame -> frame.getMethodName().equals("hang"));
    assertThat(failure.getSuppressed()).contains(earlier);
    assertThat(watchdogs()).isEmpty();
  }

  @Test
  void interruptsAgainAHandlerThatWaitsOn() {
    publish("o-1");

    assertThatThrownBy(
            () ->
                outbox.drain(
                    "orders",
                    orders ->
                        orders.otherwise(
                            (payload, delivery) -> {
                              hang(2);
                            }),
                    Duration.ofMillis(100)))
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("still ran");
  }

  @Test
  void leavesNoInterruptOfAHandlerThatOnlyLooksForIt() {
    publish("o-1");

    assertThatThrownBy(
            () ->
                outbox.drain(
                    "orders",
                    orders ->
                        orders.otherwise(
                            (payload, delivery) -> {
                              long begun = System.nanoTime();
                              while (!Thread.currentThread().isInterrupted()
                                  && System.nanoTime() - begun < TimeUnit.SECONDS.toNanos(20)) {
                                Thread.onSpinWait();
                              }
                            }),
                    Duration.ofMillis(100)))
        .isInstanceOf(AssertionError.class);

    assertThat(Thread.interrupted()).isFalse();
  }

  @Test
  void leavesAThreadAloneThatDrainsInTime() {
    publish("o-1");
    outbox.drain("orders", orders -> orders.on("order.placed", String.class, this::record));

    assertThat(Thread.currentThread().isInterrupted()).isFalse();
    assertThat(watchdogs()).isEmpty();
  }

  /** Waits for what never comes, and ends after so many interrupts. */
  private static void hang(int atMost) {
    int interrupts = atMost;
    while (interrupts > 0) {
      try {
        if (!new CountDownLatch(1).await(20, TimeUnit.SECONDS)) {
          return; // nobody interrupts it
        }
      } catch (InterruptedException e) {
        interrupts--;
      }
    }
  }

  private static List<String> watchdogs() {
    return Thread.getAllStackTraces().keySet().stream()
        .map(Thread::getName)
        .filter(name -> name.contains("watchdog"))
        .toList();
  }

  @Test
  void refusesSettingsThatAreNotGood() {
    assertThatThrownBy(() -> outbox.drain("orders", orders -> {}))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("there is no handler");
    assertThatThrownBy(() -> outbox.drain(" ", orders -> {}))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
