package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.testing.CompiledSample;
import dev.outbox4j.testing.InMemoryStore;
import java.nio.file.Path;
import java.time.Clock;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Compiles what users may write as a handler. A method that returns an {@link Outcome} here rejects
 * the message, and one that returns a stage fails it, so that a result that was dropped would show
 * as an ack.
 */
class HandlerFormsTest {
  private static final String SOURCE =
      """
      import dev.outbox4j.*;
      import java.util.List;
      import java.util.concurrent.*;

      public class Sample implements java.util.function.Consumer<OutboxSubscriber.Builder> {
        public static int shipped;

        static void ship(Payload order, Delivery delivery) { shipped++; }
        static Outcome decide(Payload order, Delivery delivery) { return Outcome.reject("no"); }
        static CompletableFuture<Void> send(Payload order, Delivery delivery) {
          return CompletableFuture.failedFuture(new IllegalStateException("broker down"));
        }
        static Future<Void> sendOldStyle(Payload order, Delivery delivery) {
          return CompletableFuture.failedFuture(new IllegalStateException("broker down"));
        }

        static void insert(List<BatchMessage<Payload>> orders) { shipped++; }
        static Outcome decideAll(List<BatchMessage<Payload>> orders) { return Outcome.ack(); }
        static CompletableFuture<Void> sendAll(List<BatchMessage<Payload>> orders) {
          return CompletableFuture.failedFuture(new IllegalStateException("broker down"));
        }
        static Future<Void> sendAllOldStyle(List<BatchMessage<Payload>> orders) {
          return new FutureTask<>(() -> null);
        }
        static void overloadedBatch(List<BatchMessage<Payload>> orders) { shipped++; }
        static void overloadedBatch(String orders) { shipped++; }

        static void overloaded(Payload order, Delivery delivery) { shipped++; }
        static void overloaded(String order, Delivery delivery) { shipped++; }

        @Override
        public void accept(OutboxSubscriber.Builder builder) {
          builder.CALL;
        }
      }
      """;

  @TempDir Path classes;

  @ParameterizedTest
  @ValueSource(
      strings = {
        "(order, delivery) -> ship(order, delivery)",
        "(order, delivery) -> decide(order, delivery)",
        "(order, delivery) -> send(order, delivery)",
        "(order, delivery) -> sendOldStyle(order, delivery)",
        "(order, delivery) -> { throw new IllegalStateException(); }",
        "Sample::overloaded"
      })
  void compilerRefusesWhatDoesNotSayWhetherTheResultMatters(String handler) {
    for (String call : calls(handler)) {
      assertThat(errors(call))
          .as(call)
          .hasSize(1)
          .first()
          .asString()
          .contains("reference to " + call.substring(0, call.indexOf('(')) + " is ambiguous");
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "(order, delivery) -> { ship(order, delivery); }          | acked",
        "(order, delivery) -> { send(order, delivery); }          | acked",
        "(order, delivery) -> { return decide(order, delivery); } | rejected",
        "(order, delivery) -> { return send(order, delivery); }   | retried",
        "(Payload order, Delivery delivery) -> ship(order, delivery)   | acked",
        "(Payload order, Delivery delivery) -> decide(order, delivery) | rejected",
        "(Payload order, Delivery delivery) -> send(order, delivery)   | retried",
        "(Payload order, Delivery delivery) -> { throw new Exception(); } | retried",
        "Sample::ship         | acked",
        "Sample::decide       | rejected",
        "Sample::send         | retried",
        "Sample::sendOldStyle | retried",
      })
  void noFormThatCompilesDropsAResultUnlessBracesSaySo(String handler, String end)
      throws Exception {
    for (String call : calls(handler)) {
      assertThat(errors(call)).as(call).isEmpty();
      assertThat(endOfAMessage()).as(call).isEqualTo(end);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "orders -> insert(orders)",
        "orders -> decideAll(orders)",
        "orders -> sendAll(orders)",
        "orders -> { throw new IllegalStateException(); }",
        "Sample::overloadedBatch"
      })
  void compilerRefusesABatchHandlerThatDoesNotSayWhetherItsResultMatters(String handler) {
    for (String call : batchCalls(handler)) {
      assertThat(errors(call))
          .as(call)
          .hasSize(1)
          .first()
          .asString()
          .contains("reference to onBatch is ambiguous");
    }
  }

  /** An outcome does not say of which message it is, so a batch takes none. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "orders -> { insert(orders); }                                  | acked",
        "orders -> { sendAll(orders); }                                 | acked",
        "orders -> { return sendAll(orders); }                          | retried",
        "orders -> { return decideAll(orders); }                        | retried",
        "orders -> { return CompletableFuture.completedFuture(null); }  | acked",
        "(List<BatchMessage<Payload>> orders) -> insert(orders)         | acked",
        "(List<BatchMessage<Payload>> orders) -> sendAll(orders)        | retried",
        "(List<BatchMessage<Payload>> orders) -> decideAll(orders)      | retried",
        "Sample::insert                                                 | acked",
        "Sample::sendAll                                                | retried",
        "Sample::sendAllOldStyle                                        | retried",
        "Sample::decideAll                                              | retried",
      })
  void noFormOfABatchHandlerThatCompilesDropsAResultUnlessBracesSaySo(String handler, String end)
      throws Exception {
    for (String call : batchCalls(handler)) {
      assertThat(errors(call)).as(call).isEmpty();
      assertThat(endOfAMessage()).as(call).isEqualTo(end);
    }
  }

  private static List<String> batchCalls(String handler) {
    return List.of(
        "onBatch(\"t\", Payload.class, Batch.of(2), " + handler + ")",
        "onBatch(\"t\", new TypeRef<Payload>() {}, Batch.of(2), " + handler + ")");
  }

  @Test
  void compilerChecksWhatAnOutcomeHandlerAndAnAsyncHandlerReturn() {
    assertThat(errors("on(\"t\", (OutcomeHandler<Payload>) (o, d) -> send(o, d))")).hasSize(1);
    assertThat(errors("on(\"t\", (AsyncHandler<Payload>) (o, d) -> decide(o, d))")).hasSize(1);
    assertThat(errors("on(\"t\", (OutcomeHandler<Payload>) (o, d) -> decide(o, d))")).isEmpty();
  }

  private static List<String> calls(String handler) {
    return List.of(
        "on(\"t\", Payload.class, " + handler + ")",
        "on(\"t\", " + handler + ")",
        "otherwise(" + handler + ")");
  }

  private List<String> errors(String call) {
    return new CompiledSample(classes).errors(SOURCE.replace("CALL", call));
  }

  private String endOfAMessage() throws Exception {
    InMemoryStore store = new InMemoryStore(Clock.systemUTC());
    EndRecorder end = new EndRecorder();
    OutboxSubscriber.Builder builder =
        OutboxSubscriber.builder("orders")
            .store(store)
            .deadLetters(store.deadLetters())
            .events(end);
    return new CompiledSample(classes)
        .use(
            sample -> {
              handlers(sample).accept(builder);
              store.publish(OutboxMessage.to("orders").type("t").build());
              try (OutboxSubscriber subscriber = builder.build()) {
                subscriber.start();
                return end.await();
              }
            });
  }

  @SuppressWarnings("unchecked")
  private static Consumer<OutboxSubscriber.Builder> handlers(Object sample) {
    return (Consumer<OutboxSubscriber.Builder>) sample;
  }
}
