package dev.outbox4j.monitor.http;

import java.io.ByteArrayOutputStream;
import java.net.URLEncoder;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/**
 * Percent-encoding. What is broken is refused, and not replaced: it could name another instance.
 */
final class Percent {
  private Percent() {}

  /** Decodes a segment of a path, in which {@code +} is itself. */
  static String decode(String encoded) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(encoded.length());
    byte[] raw = encoded.getBytes(StandardCharsets.UTF_8);
    for (int i = 0; i < raw.length; i++) {
      if (raw[i] == '%') {
        bytes.write(octet(raw, i));
        i += 2;
      } else {
        bytes.write(raw[i]);
      }
    }
    try {
      return StandardCharsets.UTF_8
          .newDecoder()
          .decode(ByteBuffer.wrap(bytes.toByteArray()))
          .toString();
    } catch (CharacterCodingException e) {
      throw new IllegalArgumentException("the URI is not UTF-8; encode it so", e);
    }
  }

  /** Decodes a name or a value of a query, in which {@code +} is a space. */
  static String decodeForm(String encoded) {
    return decode(encoded.replace('+', ' '));
  }

  private static int octet(byte[] raw, int percent) {
    if (percent + 2 < raw.length) {
      int high = Character.digit(raw[percent + 1], 16);
      int low = Character.digit(raw[percent + 2], 16);
      if (high >= 0 && low >= 0) {
        return high * 16 + low;
      }
    }
    throw new IllegalArgumentException(
        "the URI has a % without two hexadecimal digits; write %25 for a %");
  }

  /** Encodes a segment of a path. */
  static String encode(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
  }
}
