package dev.outbox4j.spi;

import dev.outbox4j.Payload;

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
   * @param type what to make of them
   * @param <T> the same
   * @return the body
   * @throws Exception if the bytes do not decode; the message is then dead-lettered as undecodable
   */
  <T> T decode(Payload payload, Class<T> type) throws Exception;
}
