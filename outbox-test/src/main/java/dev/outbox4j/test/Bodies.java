package dev.outbox4j.test;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import dev.outbox4j.spi.PayloadCodec;
import java.lang.reflect.Type;
import java.nio.charset.CharacterCodingException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Bodies and their bytes, by the rules of publishers and handlers. */
final class Bodies {
  private static final String TEXT = "text/plain; charset=utf-8";

  private Bodies() {}

  static boolean needsCodec(Object body) {
    return !(body instanceof Payload || body instanceof byte[] || body instanceof String);
  }

  /** Encodes a body; one that needs a codec is given one. */
  static Payload encode(Object body, @Nullable PayloadCodec codec) {
    if (body instanceof Payload payload) {
      return payload;
    }
    if (body instanceof byte[] bytes) {
      return Payload.of(bytes);
    }
    if (body instanceof String text) {
      return Payload.ofText(text);
    }
    if (codec == null) {
      throw new IllegalArgumentException("there is no codec for " + body.getClass().getName());
    }
    Payload payload;
    try {
      payload = codec.encode(body);
    } catch (Exception e) { // a codec is the user's code and may throw anything
      restoreInterrupt(e);
      throw new OutboxException(
          codec.getClass().getName()
              + " did not encode a "
              + body.getClass().getName()
              + ": see the cause",
          e);
    }
    if (payload == null) {
      throw new OutboxException(
          codec.getClass().getName()
              + " encoded a "
              + body.getClass().getName()
              + " to null; it must return a payload or throw");
    }
    return payload;
  }

  /** Adds the media type that a body has by itself, unless the headers name one. */
  static Map<String, String> headers(
      Map<String, String> headers, Object body, @Nullable PayloadCodec codec) {
    String own =
        body instanceof String
            ? TEXT
            : needsCodec(body) && codec != null ? codec.contentType() : null;
    if (own == null || headers.containsKey(OutboxMessage.CONTENT_TYPE)) {
      return Map.copyOf(headers);
    }
    Map<String, String> all = new LinkedHashMap<>(headers);
    all.put(OutboxMessage.CONTENT_TYPE, own);
    return Map.copyOf(all);
  }

  /** Decodes as for a handler of a type; fails with the codec's exception. */
  static Object decode(
      Payload payload, Map<String, String> headers, Type type, @Nullable PayloadCodec codec) {
    if (type == Payload.class) {
      return payload;
    }
    if (type == byte[].class) {
      return payload.bytes();
    }
    try {
      if (type == String.class) {
        return payload.text();
      }
      if (codec == null) {
        throw new IllegalStateException(
            "A body of "
                + type.getTypeName()
                + " needs a codec and there is none; set one with codec(...), or ask for byte[], Payload or String");
      }
      Object body = codec.decode(payload, headers, type);
      if (body == null) {
        throw new OutboxException(codec.getClass().getName() + " decoded a payload to null");
      }
      return body;
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      restoreInterrupt(e);
      throw new OutboxException("The payload was not decoded to " + type.getTypeName(), e);
    }
  }

  /** Returns the payload as people read it, cut short if it is long. */
  static String shown(Payload payload, int most) {
    return text(payload)
        .map(text -> text.length() <= most ? text : text.substring(0, most) + "...")
        .map(text -> '"' + text + '"')
        .orElse(payload.toString());
  }

  private static Optional<String> text(Payload payload) {
    try {
      return Optional.of(payload.text());
    } catch (CharacterCodingException notText) {
      return Optional.empty();
    }
  }

  private static void restoreInterrupt(Exception e) {
    if (e instanceof InterruptedException) {
      Thread.currentThread().interrupt();
    }
  }
}
