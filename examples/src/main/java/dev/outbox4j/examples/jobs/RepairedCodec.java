package dev.outbox4j.examples.jobs;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.spi.PayloadCodec;
import java.lang.reflect.Type;
import java.util.Map;

/** Writes JSON, and reads what an older version of the service wrote, too. */
final class RepairedCodec implements PayloadCodec {
  private final PayloadCodec json = Jackson2Codec.standard();
  private final PayloadCodec lines = new LinesCodec();

  @Override
  public String contentType() {
    return json.contentType();
  }

  @Override
  public Payload encode(Object body) throws Exception {
    return json.encode(body);
  }

  @Override
  public Object decode(Payload payload, Map<String, String> headers, Type type) throws Exception {
    boolean isOld = LinesCodec.CONTENT_TYPE.equals(headers.get(OutboxMessage.CONTENT_TYPE));
    return (isOld ? lines : json).decode(payload, headers, type);
  }
}
