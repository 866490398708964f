package dev.outbox4j.postgres;

import dev.outbox4j.Payload;
import dev.outbox4j.spi.PayloadCodec;

/** Encodes integers as decimal text, and throws on all else. */
record CountCodec(String contentType) implements PayloadCodec {
  @Override
  public Payload encode(Object body) {
    return Payload.ofText(Integer.toString((Integer) body));
  }

  @Override
  public <T> T decode(Payload payload, Class<T> type) throws Exception {
    return type.cast(Integer.valueOf(payload.text()));
  }
}
