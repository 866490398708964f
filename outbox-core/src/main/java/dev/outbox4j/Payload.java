package dev.outbox4j;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Objects;

/**
 * The bytes of a message. Immutable: bytes are copied in and out. {@link #toString()} gives the
 * size only, so that a payload never reaches a log by accident.
 */
public final class Payload {
  private static final Payload EMPTY = new Payload(new byte[0]);

  private final byte[] bytes;

  private Payload(byte[] bytes) {
    this.bytes = bytes;
  }

  /** {@return a payload of no bytes} */
  public static Payload empty() {
    return EMPTY;
  }

  /**
   * Returns a payload that holds a copy of the bytes.
   *
   * @param bytes the content
   * @return the payload
   */
  public static Payload of(byte[] bytes) {
    return new Payload(bytes.clone());
  }

  /**
   * Returns a payload of the text in UTF-8.
   *
   * @param text the content
   * @return the payload
   */
  public static Payload ofText(String text) {
    return new Payload(text.getBytes(StandardCharsets.UTF_8));
  }

  /**
   * Returns a payload that takes the array over without a copy; for stores and codecs that have
   * just made the array and keep no reference to it.
   *
   * @param bytes the content, from now on owned by the payload
   * @return the payload
   */
  public static Payload wrap(byte[] bytes) {
    return new Payload(Objects.requireNonNull(bytes, "bytes"));
  }

  /** {@return a copy of the bytes} */
  public byte[] bytes() {
    return bytes.clone();
  }

  /** {@return a read-only view of the bytes, without a copy} */
  public ByteBuffer buffer() {
    return ByteBuffer.wrap(bytes).asReadOnlyBuffer();
  }

  /** {@return the number of bytes} */
  public int size() {
    return bytes.length;
  }

  /**
   * Returns the bytes as UTF-8 text.
   *
   * @return the text
   * @throws CharacterCodingException if the bytes are not valid UTF-8
   */
  public String text() throws CharacterCodingException {
    return StandardCharsets.UTF_8
        .newDecoder()
        .onMalformedInput(CodingErrorAction.REPORT)
        .onUnmappableCharacter(CodingErrorAction.REPORT)
        .decode(ByteBuffer.wrap(bytes))
        .toString();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Payload that && Arrays.equals(bytes, that.bytes);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(bytes);
  }

  @Override
  public String toString() {
    return "Payload[" + bytes.length + " bytes]";
  }
}
