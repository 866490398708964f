package dev.outbox4j.internal;

import dev.outbox4j.AsyncHandler;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutcomeHandler;
import dev.outbox4j.Payload;
import dev.outbox4j.TypedHandler;
import dev.outbox4j.spi.PayloadCodec;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Which handler serves which message type. Immutable. */
public final class HandlerTable {
  private final Map<String, Route<?>> routes;
  private final @Nullable Route<?> fallback;

  private HandlerTable(Map<String, Route<?>> routes, @Nullable Route<?> fallback) {
    this.routes = Map.copyOf(routes);
    this.fallback = fallback;
  }

  /** A handler of any kind; gives an {@code Outcome}, a {@code CompletionStage} or null. */
  @FunctionalInterface
  interface Invocation<T> {
    @Nullable Object call(T body, Delivery delivery) throws Exception;
  }

  /** A body type with its handler. */
  record Route<T>(Class<T> bodyType, @Nullable PayloadCodec codec, Invocation<T> invocation) {

    /** Decodes; the only step whose failure means that the payload is undecodable. */
    Call prepare(Delivery delivery) throws Exception {
      T body = decode(delivery.payload());
      return () -> invocation.call(body, delivery);
    }

    private T decode(Payload payload) throws Exception {
      if (bodyType == Payload.class) {
        return bodyType.cast(payload);
      }
      if (bodyType == byte[].class) {
        return bodyType.cast(payload.bytes());
      }
      if (bodyType == String.class) {
        return bodyType.cast(payload.text());
      }
      T body = Objects.requireNonNull(codec, "codec").decode(payload, bodyType);
      if (body == null) {
        throw new OutboxException("The codec decoded the payload to null");
      }
      return body;
    }
  }

  /** A handler with its body, ready to run. */
  @FunctionalInterface
  interface Call {
    @Nullable Object run() throws Exception;
  }

  /** {@return the route of a type, the fallback, or null if there is neither} */
  @Nullable Route<?> route(@Nullable String type) {
    Route<?> own = type == null ? null : routes.get(type);
    return own == null ? fallback : own;
  }

  /** Collects handlers; the codec may be set before or after them. */
  public static final class Builder {
    private final Map<String, Route<?>> routes = new HashMap<>();
    private @Nullable Route<?> fallback;
    private @Nullable PayloadCodec codec;

    /** Sets the codec of all handlers. */
    public void codec(PayloadCodec codec) {
      this.codec = Objects.requireNonNull(codec, "codec");
    }

    /** Adds a handler. */
    public <T> void add(String type, Class<T> bodyType, TypedHandler<T> handler) {
      Objects.requireNonNull(handler, "handler");
      put(type, bodyType, returningNothing(handler));
    }

    /** Adds a handler that returns the outcome. */
    public <T> void addOutcome(String type, Class<T> bodyType, OutcomeHandler<T> handler) {
      Objects.requireNonNull(handler, "handler");
      put(
          type,
          bodyType,
          (body, delivery) -> notNull(handler.handle(body, delivery), "an Outcome"));
    }

    /** Adds a handler whose work ends later. */
    public <T> void addAsync(String type, Class<T> bodyType, AsyncHandler<T> handler) {
      Objects.requireNonNull(handler, "handler");
      put(
          type,
          bodyType,
          (body, delivery) -> notNull(handler.handle(body, delivery), "a CompletionStage"));
    }

    /** Sets the handler of all other types. */
    public <T> void fallback(Class<T> bodyType, TypedHandler<T> handler) {
      if (fallback != null) {
        throw new IllegalArgumentException("otherwise(...) is set already; set it once");
      }
      fallback = new Route<>(bodyType, null, returningNothing(handler));
    }

    /** A null is no decision: it must not pass for an ack. */
    private static Object notNull(@Nullable Object result, String what) {
      if (result == null) {
        throw new OutboxException("The handler returned null; it must return " + what);
      }
      return result;
    }

    private <T> void put(String type, Class<T> bodyType, Invocation<T> invocation) {
      Objects.requireNonNull(bodyType, "bodyType");
      if (routes.putIfAbsent(type, new Route<>(bodyType, null, invocation)) != null) {
        throw new IllegalArgumentException(
            "Type '" + type + "' has a handler already; a type has one handler");
      }
    }

    private static <T> Invocation<T> returningNothing(TypedHandler<T> handler) {
      return (body, delivery) -> {
        handler.handle(body, delivery);
        return null;
      };
    }

    /** {@return what is missing, in words for the user} */
    public List<String> faults() {
      List<String> faults = new ArrayList<>();
      if (routes.isEmpty() && fallback == null) {
        faults.add("there is no handler; add on(...) or otherwise(...)");
      }
      if (codec == null) {
        routes.forEach(
            (type, route) -> {
              if (needsCodec(route.bodyType())) {
                faults.add(
                    "type '"
                        + type
                        + "' is decoded to "
                        + route.bodyType().getName()
                        + " but there is no codec(...)");
              }
            });
      }
      return faults;
    }

    private static boolean needsCodec(Class<?> bodyType) {
      return bodyType != Payload.class && bodyType != byte[].class && bodyType != String.class;
    }

    /** {@return the table} */
    public HandlerTable build() {
      Map<String, Route<?>> bound = new HashMap<>();
      routes.forEach((type, route) -> bound.put(type, bind(route)));
      return new HandlerTable(bound, fallback);
    }

    private <T> Route<T> bind(Route<T> route) {
      return new Route<>(route.bodyType(), codec, route.invocation());
    }
  }
}
