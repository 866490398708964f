package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.spi.UndecodableException;
import dev.outbox4j.testing.InMemoryStore;
import java.lang.reflect.Type;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** What becomes of a message by what its handler or its codec gives. */
class HandlerResultTest {
  private final InMemoryStore store = new InMemoryStore(Clock.systemUTC());
  private final EndRecorder end = new EndRecorder();

  private OutboxSubscriber.Builder builder() {
    return OutboxSubscriber.builder("orders")
        .store(store)
        .deadLetters(store.deadLetters())
        .events(end);
  }

  private String endOf(OutboxSubscriber.Builder builder) throws Exception {
    store.publish(OutboxMessage.to("orders").type("t").header("version", "2").body("body").build());
    try (OutboxSubscriber subscriber = builder.build()) {
      subscriber.start();
      return end.await();
    }
  }

  private String lastError() {
    return store.rows().get(0).lastError();
  }

  @Test
  void aBodyMayHaveTypeArguments() throws Exception {
    List<String> handled = new CopyOnWriteArrayList<>();
    store.publish(OutboxMessage.to("orders").type("t").body("{\"a\": [1]}").build());
    OutboxSubscriber.Builder builder =
        builder()
            .codec(Jackson2Codec.standard())
            .on(
                "t",
                new TypeRef<Map<String, List<Integer>>>() {},
                (body, delivery) -> {
                  body.forEach((name, numbers) -> handled.add(name + (numbers.get(0) + 1)));
                });
    try (OutboxSubscriber subscriber = builder.build()) {
      subscriber.start();
      assertThat(end.await()).isEqualTo("acked");
    }
    assertThat(handled).containsExactly("a2");
  }

  @Test
  @SuppressWarnings("FutureReturnValueIgnored") // that is the mistake
  void aStageThatGivesAnotherStageIsAFailedAttempt() throws Exception {
    CompletableFuture<Void> inner = CompletableFuture.completedFuture(null);

    assertThat(
            endOf(
                builder()
                    .on(
                        "t",
                        (payload, delivery) -> {
                          return CompletableFuture.completedFuture(payload)
                              .thenApply(sent -> inner);
                        })))
        .isEqualTo("retried");
    assertThat(lastError()).contains("use thenCompose");
  }

  @Test
  @SuppressWarnings("FutureReturnValueIgnored") // that is the mistake
  void aStageThatGivesAnotherStageIsAFailedAttemptAlsoIfTheHandlerHasDecided() throws Exception {
    assertThat(
            endOf(
                builder()
                    .on(
                        "t",
                        (payload, delivery) -> {
                          delivery.decide(Outcome.ack());
                          return CompletableFuture.completedFuture(new CompletableFuture<>());
                        })))
        .isEqualTo("retried");
  }

  @Test
  void aDecisionThatComesAfterTheHandlerHasReturnedIsRefused() throws Exception {
    AtomicReference<Delivery> kept = new AtomicReference<>();

    assertThat(
            endOf(
                builder()
                    .on(
                        "t",
                        (payload, delivery) -> {
                          kept.set(delivery);
                        })))
        .isEqualTo("acked");

    assertThatThrownBy(() -> kept.get().decide(Outcome.retry()))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContainingAll("type=t", "its run has ended", "returns a CompletionStage");
    assertThat(store.rows()).isEmpty();
  }

  @Test
  void aDecisionThatComesAfterTheHandlerHasThrownIsRefused() throws Exception {
    AtomicReference<Delivery> kept = new AtomicReference<>();

    assertThat(
            endOf(
                builder()
                    .on(
                        "t",
                        (payload, delivery) -> {
                          kept.set(delivery);
                          if (delivery.attempt() == 1) {
                            throw new IllegalStateException("down");
                          }
                        })))
        .isEqualTo("retried");

    assertThatThrownBy(() -> kept.get().decide(Outcome.ack()))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("its run has ended");
  }

  @Test
  void aValueThatIsNoOutcomeIsAFailedAttemptThatNamesItsClass() throws Exception {
    assertThat(
            endOf(
                builder()
                    .on(
                        "t",
                        (payload, delivery) -> {
                          return 42;
                        })))
        .isEqualTo("retried");
    assertThat(lastError())
        .contains("returned a value of java.lang.Integer")
        .contains("write braces");
  }

  /** The only thread that handlers have is free while three stages are pending. */
  @Test
  void asManyStagesArePendingAsThereAreWorkersWhileNoThreadIsOccupied() throws Exception {
    int all = 10;
    List<CompletableFuture<Void>> begun = new CopyOnWriteArrayList<>();
    for (int i = 0; i < all; i++) {
      store.publish(OutboxMessage.to("orders").type("t").body("x").build());
    }
    ExecutorService one = Executors.newSingleThreadExecutor();
    try (OutboxSubscriber subscriber =
        builder()
            .workers(3)
            .executor(one)
            .on(
                "t",
                (payload, delivery) -> {
                  CompletableFuture<Void> work = new CompletableFuture<>();
                  begun.add(work);
                  return work;
                })
            .build()) {
      subscriber.start();
      for (int done = 0; done < all; done++) {
        int most = Math.min(done + 3, all);
        int running = most - done;
        await().until(() -> begun.size() == most && subscriber.health().running() == running);
        assertThat(one.submit(() -> "free").get(10, TimeUnit.SECONDS)).isEqualTo("free");
        await().during(Duration.ofMillis(50)).until(() -> begun.size() == most);
        begun.get(done).complete(null);
      }
      await().untilAsserted(() -> assertThat(store.rows()).isEmpty());
    } finally {
      one.shutdownNow();
    }
  }

  @Test
  void anOutcomeThatAStageGivesHolds() throws Exception {
    assertThat(
            endOf(
                builder()
                    .otherwise(
                        (payload, delivery) -> {
                          return CompletableFuture.completedFuture(Outcome.reject("no"));
                        })))
        .isEqualTo("rejected");
  }

  @Test
  void onlyUndecodableExceptionMeansThatTheBytesAreAtFault() throws Exception {
    assertThat(endOf(decodedBy(new UndecodableException("not a number")))).isEqualTo("undecodable");
  }

  @Test
  void anyOtherExceptionOfACodecIsAFailedAttempt() throws Exception {
    assertThat(endOf(decodedBy(new IllegalStateException("registry is down"))))
        .isEqualTo("retried");
    assertThat(lastError()).contains("registry is down");
  }

  @Test
  void anExceptionOfACodecIsRetriedInAckModeRejectOnErrorToo() throws Exception {
    assertThat(
            endOf(
                decodedBy(new IllegalStateException("registry is down"))
                    .ackMode(AckMode.REJECT_ON_ERROR)))
        .isEqualTo("retried");
  }

  @Test
  void anErrorOfACodecIsAFailedAttempt() throws Exception {
    assertThat(endOf(decodedBy(new NoClassDefFoundError("Order")))).isEqualTo("retried");
  }

  @Test
  void aBodyOfAnotherClassThanTheHandlersIsAFailedAttempt() throws Exception {
    assertThat(
            endOf(
                builder()
                    .codec(codec((payload, headers, type) -> "text"))
                    .on("t", Integer.class, (number, delivery) -> {})))
        .isEqualTo("retried");
    assertThat(lastError()).contains("java.lang.String where java.lang.Integer is expected");
  }

  @Test
  void bytesThatAreNoTextAreUndecodableForAStringHandler() throws Exception {
    store.publish(
        OutboxMessage.to("orders").type("t").body(new byte[] {(byte) 0xC3, (byte) 0x28}).build());
    try (OutboxSubscriber subscriber =
        builder().on("t", String.class, (text, delivery) -> {}).build()) {
      subscriber.start();
      assertThat(end.await()).isEqualTo("undecodable");
    }
  }

  @Test
  void aCodecGetsTheHeadersAndTheTypeAndMayDecodeToAPrimitive() throws Exception {
    AtomicReference<Object> seen = new AtomicReference<>();

    assertThat(
            endOf(
                builder()
                    .codec(
                        codec(
                            (payload, headers, type) -> {
                              seen.set(type);
                              return Integer.valueOf(headers.get("version"));
                            }))
                    .on(
                        "t",
                        int.class,
                        (number, delivery) -> {
                          seen.compareAndSet(int.class, number);
                        })))
        .isEqualTo("acked");
    assertThat(seen).hasValue(2);
  }

  private OutboxSubscriber.Builder decodedBy(Throwable failure) {
    return builder()
        .codec(
            codec(
                (payload, headers, type) -> {
                  if (failure instanceof Error error) {
                    throw error;
                  }
                  throw (Exception) failure;
                }))
        .on("t", Integer.class, (number, delivery) -> {});
  }

  @FunctionalInterface
  private interface Decoding {
    Object decode(Payload payload, Map<String, String> headers, Type type) throws Exception;
  }

  private static PayloadCodec codec(Decoding decoding) {
    return new PayloadCodec() {
      @Override
      public String contentType() {
        return "text/plain";
      }

      @Override
      public Payload encode(Object body) {
        return Payload.ofText(body.toString());
      }

      @Override
      public Object decode(Payload payload, Map<String, String> headers, Type type)
          throws Exception {
        return decoding.decode(payload, headers, type);
      }
    };
  }
}
