package dev.outbox4j.examples.docs;

import dev.outbox4j.Payload;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.spi.UndecodableException;
import java.io.IOException;
import java.io.StringReader;
import java.io.StringWriter;
import java.lang.reflect.Type;
import java.nio.charset.CharacterCodingException;
import java.util.Map;
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
  public Object decode(Payload payload, Map<String, String> headers, Type type) throws IOException {
    Properties body = new Properties();
    try {
      body.load(new StringReader(payload.text()));
    } catch (CharacterCodingException | IllegalArgumentException malformed) {
      throw new UndecodableException("not a properties file in UTF-8");
    }
    return body;
  }
}
// end::codec
