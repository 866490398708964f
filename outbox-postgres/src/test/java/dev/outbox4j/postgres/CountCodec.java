package dev.outbox4j.postgres;

import dev.outbox4j.Payload;
import dev.outbox4j.spi.PayloadCodec;
import java.lang.reflect.Type;
import java.util.Map;

/** Encodes integers as decimal text, and throws on all else. */
public record CountCodec(String contentType) implements PayloadCodec {
  @Override
  public Payload encode(Object body) {
    return Payload.ofText(Integer.toString((Integer) body));
  }

  @Override
  public Object decode(Payload payload, Map<String, String> headers, Type type) throws Exception {
    return Integer.valueOf(payload.text());
  }
}
