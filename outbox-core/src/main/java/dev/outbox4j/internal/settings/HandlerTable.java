package dev.outbox4j.internal.settings;

import dev.outbox4j.Batch;
import dev.outbox4j.BatchHandler;
import dev.outbox4j.BatchMessage;
import dev.outbox4j.BatchResultHandler;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxException;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.ResultHandler;
import dev.outbox4j.TypeRef;
import dev.outbox4j.TypedHandler;
import dev.outbox4j.internal.reactive.PublisherResults;
import dev.outbox4j.spi.HandlerTransactions;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.spi.ReactiveTransactions;
import dev.outbox4j.spi.SettlingTransactions;
import dev.outbox4j.spi.UndecodableException;
import java.nio.charset.CharacterCodingException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/** Which handler serves which message type. Immutable. */
public final class HandlerTable {
  private final Map<String, Route<?>> routes;
  private final Map<String, BatchRoute<?>> batches;
  private final @Nullable Route<?> fallback;
  private final Set<SettlingTransactions> transactions;

  private HandlerTable(
      Map<String, Route<?>> routes,
      Map<String, BatchRoute<?>> batches,
      @Nullable Route<?> fallback,
      Set<SettlingTransactions> transactions) {
    this.routes = Map.copyOf(routes);
    this.batches = Map.copyOf(batches);
    this.fallback = fallback;
    this.transactions = Set.copyOf(transactions);
  }

  /** Returns where transactional handlers run. */
  public Set<SettlingTransactions> transactions() {
    return transactions;
  }

  /** A handler of any kind. */
  @FunctionalInterface
  public interface Invocation<T> {
    Call of(T body, Delivery delivery);
  }

  /** A handler with its body, ready to run in its way. */
  public sealed interface Call {}

  /** Runs as it is; gives an {@code Outcome}, a {@code CompletionStage} or null. */
  @FunctionalInterface
  public non-sealed interface Direct extends Call {
    @Nullable Object run() throws Exception;
  }

  /** Runs in the transaction that settles its row; gives an {@code Outcome} or null. */
  public record InTransaction<C>(HandlerTransactions<C> transactions, TransactionalWork<C> work)
      implements Call {}

  /**
   * Runs in the transaction that settles its row, and goes on after that; gives an {@code Outcome}
   * or a {@code CompletionStage}.
   */
  public record InReactiveTransaction<C>(
      ReactiveTransactions<C> transactions, TransactionalWork<C> work) implements Call {}

  /** What a handler does in a transaction. */
  @FunctionalInterface
  public interface TransactionalWork<C> {
    @Nullable Object run(C connection) throws Exception;
  }

  /** A body type with a handler of several messages at once. */
  public record BatchRoute<T>(Decoder<T> decoder, Batch batch, BatchInvocation<T> invocation) {}

  /** A handler of several messages; gives a {@code CompletionStage} or null. */
  @FunctionalInterface
  public interface BatchInvocation<T> {
    @Nullable CompletionStage<?> run(List<BatchMessage<T>> messages) throws Exception;
  }

  /**
   * A body type with its handler.
   *
   * @param transactional whether it may run in the transaction that settles its row
   */
  public record Route<T>(Decoder<T> decoder, Invocation<T> invocation, boolean transactional) {

    /**
     * Decodes.
     *
     * @throws UndecodableException if the bytes are at fault
     * @throws Exception if anything else is
     */
    public Call prepare(Delivery delivery) throws Exception {
      return invocation.of(decoder.body(delivery), delivery);
    }
  }

  /** Makes bodies of payloads. */
  public record Decoder<T>(BodyType bodyType, @Nullable PayloadCodec codec) {

    /**
     * Decodes.
     *
     * @throws UndecodableException if the bytes are at fault
     * @throws Exception if anything else is
     */
    public T body(Delivery delivery) throws Exception {
      return cast(decode(delivery));
    }

    private Decoder<T> with(@Nullable PayloadCodec codec) {
      return new Decoder<>(bodyType, codec);
    }

    private @Nullable Object decode(Delivery delivery) throws Exception {
      Payload payload = delivery.payload();
      if (bodyType.raw() == Payload.class) {
        return payload;
      }
      if (bodyType.raw() == byte[].class) {
        return payload.bytes();
      }
      if (bodyType.raw() == String.class) {
        return text(payload);
      }
      return Objects.requireNonNull(codec, "codec")
          .decode(payload, delivery.headers(), bodyType.type());
    }

    private static String text(Payload payload) {
      try {
        return payload.text();
      } catch (CharacterCodingException notUtf8) {
        throw new UndecodableException(
            "payload of " + payload.size() + " bytes is not text in UTF-8", notUtf8);
      }
    }

    @SuppressWarnings("unchecked") // checked but for type arguments, which are the codec's part
    private T cast(@Nullable Object body) {
      if (body == null) {
        throw new OutboxException(
            "The codec decoded the payload to null; it must throw UndecodableException instead");
      }
      if (!bodyType.raw().isInstance(body)) {
        throw new OutboxException(
            "The codec decoded the payload to "
                + body.getClass().getName()
                + " where "
                + bodyType.name()
                + " is expected");
      }
      return (T) body;
    }
  }

  /** Anything else is no decision, or work that nobody waits for: it must not pass for an ack. */
  public static Object settling(@Nullable Object result) {
    if (result instanceof Outcome || result instanceof CompletionStage<?>) {
      return result;
    }
    CompletionStage<?> end = PublisherResults.subscribe(result);
    if (end != null) {
      return end;
    }
    throw new OutboxException(
        "The handler returned "
            + inWords(result)
            + "; it must return an Outcome, a CompletionStage, a Publisher or nothing."
            + " If the value does not matter, write braces: { handle(body); }");
  }

  /** A handler that says what becomes of its message must say it. */
  public static Outcome requireOutcome(@Nullable Object result) {
    if (result instanceof Outcome outcome) {
      return outcome;
    }
    if (result != null
        && (result instanceof CompletionStage<?> || PublisherResults.isPublisher(result))) {
      throw new OutboxException(
          "The handler returned a value of "
              + result.getClass().getName()
              + ", for which nobody waits: its transaction ends with the return. Wait for the work in"
              + " the handler, and return an Outcome or nothing");
    }
    throw new OutboxException(
        "The handler returned "
            + inWords(result)
            + "; it must return an Outcome or nothing. If the value does not matter, write braces:"
            + " { handle(body); }");
  }

  private static String inWords(@Nullable Object result) {
    return result == null ? "null" : "a value of " + result.getClass().getName();
  }

  /** {@return the batch route of a type, or null if its messages are handled one by one} */
  public @Nullable BatchRoute<?> batch(@Nullable String type) {
    return type == null ? null : batches.get(type);
  }

  /** {@return whether the messages of some type wait for others} */
  public boolean gathers() {
    return batches.values().stream().anyMatch(route -> !route.batch().linger().isZero());
  }

  /** {@return the most messages that a handler takes at once} */
  public int largestBatch() {
    return batches.values().stream().mapToInt(route -> route.batch().most()).max().orElse(1);
  }

  /** {@return the route of a type, the fallback, or null if there is neither} */
  public @Nullable Route<?> route(@Nullable String type) {
    Route<?> own = type == null ? null : routes.get(type);
    return own == null ? fallback : own;
  }

  /** Tells whether messages of a type are settled by the transaction of their handler. */
  public boolean isTransactional(@Nullable String type) {
    Route<?> route = batch(type) == null ? route(type) : null;
    return route != null && route.transactional();
  }

  /** Collects handlers; the codec may be set before or after them. */
  public static final class Builder {
    private final Map<String, Route<?>> routes = new HashMap<>();
    private final Map<String, BatchRoute<?>> batches = new HashMap<>();
    private final Set<SettlingTransactions> transactions = new LinkedHashSet<>();
    private @Nullable Route<?> fallback;
    private @Nullable PayloadCodec codec;

    /** Sets the codec of all handlers. */
    public void codec(PayloadCodec codec) {
      this.codec = Objects.requireNonNull(codec, "codec");
    }

    /** Adds a handler that returns nothing. */
    public <T> void add(String type, Class<T> bodyType, TypedHandler<T> handler) {
      put(type, BodyType.of(bodyType), nothing(handler), false);
    }

    /** Adds a handler that returns nothing, of a body with type arguments. */
    public <T> void add(String type, TypeRef<T> bodyType, TypedHandler<T> handler) {
      put(type, BodyType.of(bodyType), nothing(handler), false);
    }

    /** Adds a handler that returns an outcome or a stage. */
    public <T> void addReturning(String type, Class<T> bodyType, ResultHandler<T, ?> handler) {
      put(type, BodyType.of(bodyType), result(handler), false);
    }

    /** Adds a handler that returns an outcome or a stage, of a body with type arguments. */
    public <T> void addReturning(String type, TypeRef<T> bodyType, ResultHandler<T, ?> handler) {
      put(type, BodyType.of(bodyType), result(handler), false);
    }

    /** Adds a handler that runs in the transaction that settles its row. */
    public <T> void addTransactional(
        String type, Class<T> bodyType, SettlingTransactions of, Invocation<T> invocation) {
      put(type, BodyType.of(bodyType), invocation, true);
      transactions.add(of);
    }

    /** Adds a handler that runs in the transaction that settles its row, of a generic body. */
    public <T> void addTransactional(
        String type, TypeRef<T> bodyType, SettlingTransactions of, Invocation<T> invocation) {
      put(type, BodyType.of(bodyType), invocation, true);
      transactions.add(of);
    }

    /** Adds a handler of several messages at once that returns nothing. */
    public <T> void addBatch(String type, Class<T> bodyType, Batch batch, BatchHandler<T> handler) {
      putBatch(type, BodyType.of(bodyType), batch, nothing(handler));
    }

    /** Adds a handler of several messages at once that returns nothing, of a generic body. */
    public <T> void addBatch(
        String type, TypeRef<T> bodyType, Batch batch, BatchHandler<T> handler) {
      putBatch(type, BodyType.of(bodyType), batch, nothing(handler));
    }

    /** Adds a handler of several messages at once that returns a stage. */
    public <T> void addBatchReturning(
        String type, Class<T> bodyType, Batch batch, BatchResultHandler<T, ?> handler) {
      putBatch(type, BodyType.of(bodyType), batch, result(handler));
    }

    /** Adds a handler of several messages at once that returns a stage, of a generic body. */
    public <T> void addBatchReturning(
        String type, TypeRef<T> bodyType, Batch batch, BatchResultHandler<T, ?> handler) {
      putBatch(type, BodyType.of(bodyType), batch, result(handler));
    }

    private <T> void putBatch(
        String type, BodyType bodyType, Batch batch, BatchInvocation<T> invocation) {
      Objects.requireNonNull(batch, "batch");
      requireNew(type);
      batches.put(type, new BatchRoute<>(new Decoder<>(bodyType, null), batch, invocation));
    }

    private static <T> BatchInvocation<T> nothing(BatchHandler<T> handler) {
      Objects.requireNonNull(handler, "handler");
      return messages -> {
        handler.handle(messages);
        return null;
      };
    }

    private static <T> BatchInvocation<T> result(BatchResultHandler<T, ?> handler) {
      Objects.requireNonNull(handler, "handler");
      return messages -> pending(handler.handle(messages));
    }

    /** Sets the handler of all other types, which returns nothing. */
    public void fallback(TypedHandler<Payload> handler) {
      putFallback(nothing(handler), false);
    }

    /** Sets the handler of all other types, which returns an outcome or a stage. */
    public void fallbackReturning(ResultHandler<Payload, ?> handler) {
      putFallback(result(handler), false);
    }

    /** Sets the handler of all other types, in the transaction that settles its row. */
    public void fallbackTransactional(SettlingTransactions of, Invocation<Payload> invocation) {
      putFallback(invocation, true);
      transactions.add(of);
    }

    private void putFallback(Invocation<Payload> invocation, boolean transactional) {
      if (fallback != null) {
        throw new IllegalArgumentException("otherwise(...) is set already; set it once");
      }
      fallback =
          new Route<>(new Decoder<>(BodyType.of(Payload.class), null), invocation, transactional);
    }

    private <T> void put(
        String type, BodyType bodyType, Invocation<T> invocation, boolean transactional) {
      requireNew(type);
      routes.put(type, new Route<>(new Decoder<>(bodyType, null), invocation, transactional));
    }

    private void requireNew(String type) {
      if (routes.containsKey(type) || batches.containsKey(type)) {
        throw new IllegalArgumentException(
            "Type '" + type + "' has a handler already; a type has one handler: call both from it");
      }
    }

    private static <T> Invocation<T> nothing(TypedHandler<T> handler) {
      Objects.requireNonNull(handler, "handler");
      return (body, delivery) ->
          (Direct)
              () -> {
                handler.handle(body, delivery);
                return null;
              };
    }

    private static <T> Invocation<T> result(ResultHandler<T, ?> handler) {
      Objects.requireNonNull(handler, "handler");
      return (body, delivery) -> (Direct) () -> settling(handler.handle(body, delivery));
    }

    /** An outcome does not say of which message it is. */
    private static CompletionStage<?> pending(@Nullable Object result) {
      CompletionStage<?> end =
          result instanceof CompletionStage<?> stage ? stage : PublisherResults.subscribe(result);
      if (end != null) {
        return end;
      }
      throw new OutboxException(
          "The batch handler returned "
              + inWords(result)
              + "; it must return a CompletionStage, a Publisher or nothing. What becomes of a"
              + " message is said by message.delivery().decide(outcome). If the value does not"
              + " matter, write braces: { insert(messages); }");
    }

    /** Tells whether a handler serves messages of this type. */
    public boolean serves(String type) {
      return fallback != null || routes.containsKey(type) || batches.containsKey(type);
    }

    /** {@return what is missing or wrong, in words for the user} */
    public List<String> faults(@Nullable OutboxStore store) {
      List<String> faults = new ArrayList<>();
      for (SettlingTransactions each : transactions) {
        if (store != null && !each.settlesRowsOf(store)) {
          faults.add(
              "a transactional handler is of "
                  + each
                  + " and store(...) is "
                  + store
                  + "; take both from the same PostgresOutbox");
        }
      }
      if (routes.isEmpty() && batches.isEmpty() && fallback == null) {
        faults.add("there is no handler; add on(...) or otherwise(...)");
      }
      if (codec == null) {
        routes.forEach((type, route) -> requireNoCodec(type, route.decoder(), faults));
        batches.forEach((type, route) -> requireNoCodec(type, route.decoder(), faults));
      }
      return faults;
    }

    private static void requireNoCodec(String type, Decoder<?> decoder, List<String> faults) {
      if (decoder.bodyType().needsCodec()) {
        faults.add(
            "type '"
                + type
                + "' is decoded to "
                + decoder.bodyType().name()
                + " but there is no codec(...); set one, or take byte[], Payload or String");
      }
    }

    /** {@return the table} */
    public HandlerTable build() {
      Map<String, Route<?>> bound = new HashMap<>();
      routes.forEach((type, route) -> bound.put(type, bind(route)));
      Map<String, BatchRoute<?>> boundBatches = new HashMap<>();
      batches.forEach((type, route) -> boundBatches.put(type, bind(route)));
      return new HandlerTable(bound, boundBatches, fallback, transactions);
    }

    private <T> Route<T> bind(Route<T> route) {
      return new Route<>(route.decoder().with(codec), route.invocation(), route.transactional());
    }

    private <T> BatchRoute<T> bind(BatchRoute<T> route) {
      return new BatchRoute<>(route.decoder().with(codec), route.batch(), route.invocation());
    }
  }
}
