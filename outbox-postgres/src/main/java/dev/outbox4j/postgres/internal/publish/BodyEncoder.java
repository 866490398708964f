package dev.outbox4j.postgres.internal.publish;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import dev.outbox4j.spi.PayloadCodec;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Makes bytes of a message's body, and a value of its headers. Thread-safe if its codec is. */
final class BodyEncoder {
  private static final String TEXT = "text/plain; charset=utf-8";

  private final @Nullable PayloadCodec codec;

  BodyEncoder(@Nullable PayloadCodec codec) {
    this.codec = codec;
  }

  /** A payload, and the message's headers with the content type that was found out. */
  record Encoded(Payload payload, String headers) {}

  Encoded encode(OutboxMessage message) {
    Object body = message.body();
    if (body instanceof Payload payload) {
      return new Encoded(payload, headers(message, null));
    }
    if (body instanceof String text) {
      return new Encoded(utf8(text, message), headers(message, TEXT));
    }
    if (codec == null) {
      throw new OutboxException(
          describe(message)
              + " needs a codec and the publisher has none; set one with codec(...), with Spring Boot by a JSON mapper or a PayloadCodec bean, or give the body as bytes, Payload or String");
    }
    return new Encoded(byCodec(codec, message), headers(message, codec.contentType()));
  }

  private static Payload byCodec(PayloadCodec codec, OutboxMessage message) {
    try {
      Payload payload = codec.encode(message.body());
      if (payload != null) {
        return payload;
      }
    } catch (Exception e) { // a codec is the user's code and may throw anything
      if (e instanceof InterruptedException) {
        Thread.currentThread().interrupt();
      }
      throw new OutboxException(
          describe(message)
              + " was not encoded by "
              + codec.getClass().getName()
              + ": it threw "
              + e.getClass().getName()
              + ", the cause of this",
          e);
    }
    throw new OutboxException(
        describe(message)
            + " was not encoded by "
            + codec.getClass().getName()
            + ": it returned null; it must return a payload or throw");
  }

  private static Payload utf8(String text, OutboxMessage message) {
    try {
      ByteBuffer encoded = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
      byte[] bytes = new byte[encoded.remaining()];
      encoded.get(bytes);
      return Payload.wrap(bytes);
    } catch (CharacterCodingException e) {
      throw new OutboxException(
          describe(message)
              + " has half of a surrogate pair, which UTF-8 cannot express; remove it, or publish bytes",
          e);
    }
  }

  private static String describe(OutboxMessage message) {
    return "the body (" + message.body().getClass().getName() + ") of " + message;
  }

  private static String headers(OutboxMessage message, @Nullable String contentType) {
    Map<String, String> headers = message.headers();
    if (contentType == null || headers.containsKey(OutboxMessage.CONTENT_TYPE)) {
      return HeaderArray.of(headers);
    }
    Map<String, String> all = new LinkedHashMap<>(headers);
    all.put(OutboxMessage.CONTENT_TYPE, contentType);
    return HeaderArray.of(all);
  }
}
