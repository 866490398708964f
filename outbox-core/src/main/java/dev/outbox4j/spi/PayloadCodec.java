package dev.outbox4j.spi;

import dev.outbox4j.Payload;
import java.lang.reflect.Type;
import java.util.Map;

/** Turns bodies into bytes and back. Thread-safe. */
public interface PayloadCodec {

  /** {@return the media type of what {@link #encode} makes} */
  String contentType();

  /**
   * Encodes a body.
   *
   * @param body the body
   * @return its bytes
   * @throws Exception if the body cannot be encoded
   */
  Payload encode(Object body) throws Exception;

  /**
   * Decodes a payload.
   *
   * @param payload the bytes
   * @param headers all headers of the message, unmodifiable; the media type is among them if the
   *     publisher gave one
   * @param type what to make of the bytes, as the handler was registered
   * @return the body, of that type and not null
   * @throws UndecodableException if the bytes are at fault; the message is dead-lettered as {@code
   *     undecodable}
   * @throws Exception for every other reason, such as a schema registry that does not answer; the
   *     attempt has failed and the message is retried by the retry policy
   */
  Object decode(Payload payload, Map<String, String> headers, Type type) throws Exception;
}
