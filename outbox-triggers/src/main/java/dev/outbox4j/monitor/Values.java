package dev.outbox4j.monitor;

import dev.outbox4j.OutboxException;
import dev.outbox4j.Payload;
import dev.outbox4j.spi.PayloadCodec;
import java.lang.reflect.Type;
import java.nio.charset.CharacterCodingException;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Makes JSON of values, and values of JSON.
 *
 * @param codec what does it; without one values are {@link Json}
 */
record Values(@Nullable PayloadCodec codec) {

  /** Refuses a value that is too large, or cannot be written. */
  String write(String what, Object value, int most) throws Exception {
    String text = value instanceof Json json ? json.text() : text(what, value);
    int size = Json.of(text).size();
    if (size > most) {
      throw new IllegalArgumentException(
          "%s has %d bytes; it may have %d, so keep it elsewhere and name the place"
              .formatted(what, size, most));
    }
    return text;
  }

  private String text(String what, Object value) throws Exception {
    Payload payload = required(what + " is a " + value.getClass().getName()).encode(value);
    try {
      return payload.text();
    } catch (CharacterCodingException e) {
      throw new OutboxException(what + " was not encoded as JSON in UTF-8; use such a codec", e);
    }
  }

  /** Writes what a caller gives who declares no exception. */
  String writeUnchecked(String what, Object value, int most) {
    try {
      return write(what, value, most);
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new IllegalArgumentException(what + " could not be encoded: the cause says why", e);
    }
  }

  Object read(Json value, Type type) throws Exception {
    return type.equals(Json.class)
        ? value
        : required("a value is to be a " + type.getTypeName())
            .decode(Payload.ofText(value.text()), Map.of(), type);
  }

  @SuppressWarnings("unchecked") // that is what the codec was asked for
  <T> T readUnchecked(Json value, Class<T> type) {
    try {
      return (T) read(value, type);
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new OutboxException("a value could not be decoded: the cause says why", e);
    }
  }

  private PayloadCodec required(String why) {
    if (codec == null) {
      throw new IllegalStateException(
          why + ", and there is no codec; set one with codec(...), or use Json");
    }
    return codec;
  }
}
