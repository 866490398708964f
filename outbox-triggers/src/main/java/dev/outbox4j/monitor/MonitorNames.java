package dev.outbox4j.monitor;

import dev.outbox4j.internal.OneLine;
import java.nio.charset.StandardCharsets;
import java.time.Instant;

/** What instances, types and events may be called. */
final class MonitorNames {
  static final int MAX_ID_CHARS = 256;
  static final int MAX_NAME_BYTES = 200;

  /** What every client and server can write of an instant. */
  static final Instant LATEST = Instant.parse("9999-12-31T23:59:59Z");

  private static final String REFUSED = "/\\#?";

  private MonitorNames() {}

  static String requireId(String what, String id) {
    requirePrefix(what, id);
    if (id.equals(".") || id.equals("..")) {
      throw new IllegalArgumentException(
          "%s is '%s', which has another meaning in the path of a URI; add something to it"
              .formatted(what, id));
    }
    return id;
  }

  /** What an id may begin with. */
  static String requirePrefix(String what, String id) {
    requireStorable(what, id);
    if (id.length() > MAX_ID_CHARS) {
      throw new IllegalArgumentException(
          "%s has %d characters; it may have %d, so shorten it"
              .formatted(what, id.length(), MAX_ID_CHARS));
    }
    if (id.startsWith("@") || id.chars().anyMatch(c -> REFUSED.indexOf(c) >= 0)) {
      throw new IllegalArgumentException(
          "%s '%s' begins with @ or has one of / \\ # ?; leave them out"
              .formatted(what, OneLine.of(id)));
    }
    return id;
  }

  static String requireType(String name) {
    return requireName("monitor type", name);
  }

  static String requireEvent(String name) {
    return requireName("event name", name);
  }

  private static String requireName(String what, String name) {
    requireStorable(what, name);
    int bytes = name.getBytes(StandardCharsets.UTF_8).length;
    if (bytes > MAX_NAME_BYTES) {
      throw new IllegalArgumentException(
          "%s '%s' has %d bytes; it may have %d, so shorten it"
              .formatted(what, OneLine.of(name), bytes, MAX_NAME_BYTES));
    }
    return name;
  }

  private static void requireStorable(String what, String text) {
    if (text.isBlank() || text.chars().anyMatch(Character::isISOControl)) {
      throw new IllegalArgumentException(
          "%s '%s' is blank or has control characters; name it by what it is"
              .formatted(what, OneLine.of(text)));
    }
    if (!StandardCharsets.UTF_8.newEncoder().canEncode(text)) {
      throw new IllegalArgumentException(
          "%s '%s' has half of a surrogate pair, which UTF-8 cannot express; remove it"
              .formatted(what, OneLine.of(text)));
    }
  }
}
