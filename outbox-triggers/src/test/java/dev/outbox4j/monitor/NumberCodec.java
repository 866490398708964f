package dev.outbox4j.monitor;

import dev.outbox4j.Payload;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.spi.UndecodableException;
import java.lang.reflect.Type;
import java.util.Map;

/** Knows whole numbers only, as JSON. */
final class NumberCodec implements PayloadCodec {
  @Override
  public String contentType() {
    return "application/json";
  }

  @Override
  public Payload encode(Object body) {
    return Payload.ofText(Long.toString((Long) body));
  }

  @Override
  public Object decode(Payload payload, Map<String, String> headers, Type type) throws Exception {
    try {
      return Long.valueOf(payload.text());
    } catch (NumberFormatException e) {
      throw new UndecodableException("it is no number");
    }
  }
}
