package dev.outbox4j.examples.docs;

import dev.outbox4j.Payload;
import dev.outbox4j.spi.PayloadCodec;
import java.io.IOException;
import java.io.StringReader;
import java.io.StringWriter;
import java.util.Properties;

// tag::codec
final class PropertiesCodec implements PayloadCodec {
  @Override
  public String contentType() {
    return "text/x-java-properties";
  }

  @Override
  public Payload encode(Object body) throws IOException {
    StringWriter text = new StringWriter();
    ((Properties) body).store(text, null);
    return Payload.ofText(text.toString());
  }

  @Override
  public <T> T decode(Payload payload, Class<T> type) throws IOException {
    Properties body = new Properties();
    body.load(new StringReader(payload.text()));
    return type.cast(body);
  }
}
// end::codec
