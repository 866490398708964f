package dev.outbox4j.job;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import dev.outbox4j.dlq.DeadLetter;
import dev.outbox4j.spi.PayloadCodec;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Makes payloads of bodies.
 *
 * @param codec what does it; null if bodies are bytes, payloads or text
 */
record JobBodies(@Nullable PayloadCodec codec) {
  private static final String TEXT = "text/plain; charset=utf-8";

  Payload encode(JobType<?> type, Object body) {
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
      throw new IllegalStateException(
          type
              + " has a body that a codec writes, and there is none; set one with codec(...), or"
              + " take byte[], Payload or String");
    }
    try {
      Payload payload = codec.encode(body);
      if (payload != null) {
        return payload;
      }
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) { // a codec is the user's code and may throw anything
      interruptedAgain(e);
      throw new OutboxException("a body of " + type + " was not encoded: the cause says why", e);
    }
    throw new OutboxException("a body of " + type + " was encoded to null; the codec must throw");
  }

  /** Whoever gave up since the thread was interrupted leaves it so. */
  static void interruptedAgain(Exception e) {
    if (e instanceof InterruptedException) {
      Thread.currentThread().interrupt();
    }
  }

  /** The message that tells of it, for the rules and the headers of every message. */
  OutboxMessage message(String queue, Job<?> job, Payload payload) {
    OutboxMessage.Builder message =
        OutboxMessage.to(queue).type(job.type().name()).body(payload).deliverIn(job.delay());
    contentType(job.body()).ifPresent(message::contentType);
    for (Map.Entry<String, String> header : job.headers().entrySet()) {
      message.header(header.getKey(), header.getValue());
    }
    return message.build();
  }

  private Optional<String> contentType(Object body) {
    if (body instanceof Payload || body instanceof byte[]) {
      return Optional.empty();
    }
    return body instanceof String || codec == null
        ? Optional.of(TEXT)
        : Optional.of(codec.contentType());
  }

  /** As a subscriber does. */
  <T> T decode(JobType<T> type, DeadLetter letter) throws Exception {
    Object body = decoded(type.body(), letter);
    if (!type.body().isInstance(body)) {
      throw new OutboxException(
          "the codec decoded a job to %s where %s is expected"
              .formatted(body == null ? "null" : body.getClass().getName(), type.body().getName()));
    }
    return type.body().cast(body);
  }

  private @Nullable Object decoded(Class<?> body, DeadLetter letter) throws Exception {
    if (body == Payload.class) {
      return letter.payload();
    }
    if (body == byte[].class) {
      return letter.payload().bytes();
    }
    if (body == String.class) {
      return letter.payload().text();
    }
    if (codec == null) {
      throw new OutboxException("there is no codec; set one with codec(...)");
    }
    return letter.decode(codec, body);
  }
}
