package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.reactivestreams.FlowAdapters;
import org.slf4j.MDC;

/** What becomes of a message whose handler returns a publisher. */
class PublisherResultTest {
  private final InMemoryStore store = new InMemoryStore(Clock.systemUTC());
  private final EndRecorder end = new EndRecorder();

  /** Whose type of publisher. */
  enum Kind {
    JDK {
      @Override
      Object of(Flow.Publisher<Object> publisher) {
        return publisher;
      }
    },
    REACTIVE_STREAMS {
      @Override
      Object of(Flow.Publisher<Object> publisher) {
        return FlowAdapters.toPublisher(publisher);
      }
    };

    abstract Object of(Flow.Publisher<Object> publisher);
  }

  /** Signals whatever it is told to, on the thread that subscribes. */
  private static final class Signals implements Flow.Publisher<Object> {
    private final Consumer<Flow.Subscriber<? super Object>> signals;
    final AtomicInteger subscribed = new AtomicInteger();
    final AtomicInteger cancelled = new AtomicInteger();
    final AtomicReference<Flow.Subscriber<? super Object>> subscriber = new AtomicReference<>();

    Signals(Consumer<Flow.Subscriber<? super Object>> signals) {
      this.signals = signals;
    }

    @Override
    public void subscribe(Flow.Subscriber<? super Object> subscriber) {
      subscribed.incrementAndGet();
      this.subscriber.set(subscriber);
      subscriber.onSubscribe(
          new Flow.Subscription() {
            @Override
            public void request(long n) {
              signals.accept(subscriber);
            }

            @Override
            public void cancel() {
              cancelled.incrementAndGet();
            }
          });
    }
  }

  private OutboxSubscriber.Builder builder(Object result) {
    return OutboxSubscriber.builder("orders")
        .store(store)
        .deadLetters(store.deadLetters())
        .events(end)
        .on(
            "t",
            (payload, delivery) -> {
              return result;
            });
  }

  private String endOf(Object result) throws Exception {
    return endOf(builder(result));
  }

  private String endOf(OutboxSubscriber.Builder builder) throws Exception {
    store.publish(OutboxMessage.to("orders").type("t").body("body").build());
    try (OutboxSubscriber subscriber = builder.build()) {
      subscriber.start();
      return end.await();
    }
  }

  private String lastError() {
    return store.rows().get(0).lastError();
  }

  @ParameterizedTest
  @EnumSource
  void theMessageIsAckedWhenThePublisherEnds(Kind kind) throws Exception {
    Signals signals =
        new Signals(
            subscriber -> {
              List.of("what", "it", "gives").forEach(subscriber::onNext);
              subscriber.onComplete();
            });
    assertThat(endOf(kind.of(signals))).isEqualTo("acked");
    assertThat(signals.subscribed).hasValue(1);
    assertThat(signals.cancelled).hasValue(0);
  }

  @ParameterizedTest
  @EnumSource
  void anErrorIsAFailedAttempt(Kind kind) throws Exception {
    Signals signals = new Signals(s -> s.onError(new IllegalStateException("the far end is down")));
    assertThat(endOf(kind.of(signals))).isEqualTo("retried");
    assertThat(lastError()).contains("the far end is down");
  }

  @ParameterizedTest
  @EnumSource
  void anOutcomeThatItGivesHoldsOnceItHasEnded(Kind kind) throws Exception {
    Signals signals =
        new Signals(
            subscriber -> {
              subscriber.onNext(Outcome.reject("no"));
              subscriber.onNext("something else");
              subscriber.onComplete();
            });
    assertThat(endOf(kind.of(signals))).isEqualTo("rejected");
  }

  @Test
  void whatIsAnErrorAfterAnOutcomeIsAFailedAttempt() throws Exception {
    Signals signals =
        new Signals(
            subscriber -> {
              subscriber.onNext(Outcome.ack());
              subscriber.onError(new IllegalStateException("half done"));
            });
    assertThat(endOf(signals)).isEqualTo("retried");
    assertThat(lastError()).contains("half done");
  }

  @Test
  void twoOutcomesAreAFailedAttempt() throws Exception {
    Signals signals =
        new Signals(
            subscriber -> {
              subscriber.onNext(Outcome.ack());
              subscriber.onNext(Outcome.ack());
              subscriber.onComplete();
            });
    assertThat(endOf(signals)).isEqualTo("retried");
    assertThat(lastError()).contains("gave more than one Outcome; give one");
    assertThat(signals.cancelled).hasValue(1);
  }

  @ParameterizedTest
  @EnumSource
  void aPublisherOrStageThatItGivesIsAFailedAttempt(Kind kind) throws Exception {
    for (Object inner :
        List.of(kind.of(new Signals(Flow.Subscriber::onComplete)), new CompletableFuture<>())) {
      Signals signals =
          new Signals(
              subscriber -> {
                subscriber.onNext(inner);
                subscriber.onComplete();
              });
      assertThat(endOf(kind.of(signals))).isEqualTo("retried");
      assertThat(lastError()).contains("use flatMap in place of map");
    }
  }

  @ParameterizedTest
  @EnumSource
  void aPublisherThatAStageGivesIsAFailedAttempt(Kind kind) throws Exception {
    Signals signals = new Signals(Flow.Subscriber::onComplete);
    assertThat(endOf(CompletableFuture.completedFuture(kind.of(signals)))).isEqualTo("retried");
    assertThat(lastError()).contains("use thenCompose");
    assertThat(signals.subscribed).hasValue(0);
  }

  @Test
  void aPublisherThatThrowsIsAFailedAttempt() throws Exception {
    Flow.Publisher<Object> broken =
        subscriber -> {
          throw new IllegalStateException("cannot be subscribed to");
        };
    assertThat(endOf(broken)).isEqualTo("retried");
    assertThat(lastError()).contains("cannot be subscribed to");
  }

  @ParameterizedTest
  @EnumSource
  void itsSubscriptionIsCancelledWhenItsTimeIsOver(Kind kind) throws Exception {
    Signals never = new Signals(subscriber -> {});
    assertThat(
            endOf(
                builder(kind.of(never))
                    .handlerTimeout(Duration.ofMillis(50))
                    .retry(RetryPolicy.constant(Duration.ofHours(1)).attempts(2))))
        .isEqualTo("retried");
    await().untilAsserted(() -> assertThat(never.cancelled).hasValue(1));
    never.subscriber.get().onNext(Outcome.ack()); // it says so too late
    never.subscriber.get().onComplete();
    assertThat(store.rows()).hasSize(1);
  }

  @Test
  void isSubscribedToWhereTheContextOfItsMessageIsSet() throws Exception {
    AtomicReference<String> queue = new AtomicReference<>();
    AtomicReference<String> correlation = new AtomicReference<>();
    Signals signals =
        new Signals(
            subscriber -> {
              queue.set(MDC.get("outbox.queue"));
              correlation.set(
                  OutboxMessage.to("next").build().headers().get(OutboxMessage.CORRELATION_ID));
              subscriber.onComplete();
            });
    store.publish(OutboxMessage.to("orders").type("t").correlationId("c-1").body("body").build());
    try (OutboxSubscriber subscriber = builder(signals).build()) {
      subscriber.start();
      assertThat(end.await()).isEqualTo("acked");
    }
    assertThat(queue).hasValue("orders");
    assertThat(correlation).hasValue("c-1");
  }
}
