package dev.outbox4j.job;

import dev.outbox4j.Payload;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import org.jspecify.annotations.Nullable;

/** Makes the ids of jobs, of which each begins with the type. */
final class JobIds {
  /** The bytes that a key may have. */
  static final int MAX_KEY_BYTES = 500;

  private JobIds() {}

  static String ofKey(String type, @Nullable String key) {
    if (key == null) {
      throw new IllegalArgumentException(
          "the key of a job of type '%s' is null; identifiedBy(...) must give a text"
              .formatted(type));
    }
    if (key.isBlank() || key.indexOf('\0') >= 0) {
      throw new IllegalArgumentException(
          "the key of a job of type '%s' is blank or has a NUL; make it of what the job is about"
              .formatted(type));
    }
    int bytes = key.getBytes(StandardCharsets.UTF_8).length;
    if (bytes > MAX_KEY_BYTES) {
      throw new IllegalArgumentException(
          "the key of a job of type '%s' has %d bytes; it may have %d, so shorten or hash it"
              .formatted(type, bytes, MAX_KEY_BYTES));
    }
    return prefix(type) + key;
  }

  /** No type has a colon there, lest a type and a key be those of another type. */
  private static String prefix(String type) {
    return type.replace("%", "%25").replace(":", "%3A") + ":";
  }

  static String ofContent(String type, Payload payload) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      digest.update(payload.buffer());
      return prefix(type) + HexFormat.of().formatHex(digest.digest());
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java has SHA-256", e);
    }
  }
}
