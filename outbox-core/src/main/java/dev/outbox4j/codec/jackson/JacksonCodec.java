package dev.outbox4j.codec.jackson;

import com.fasterxml.jackson.core.JsonLocation;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonMappingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.exc.UnrecognizedPropertyException;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.outbox4j.OutboxException;
import dev.outbox4j.Payload;
import dev.outbox4j.spi.PayloadCodec;
import java.io.IOException;
import java.util.Map;
import java.util.Objects;

/**
 * Bodies as JSON in UTF-8. Immutable and thread-safe; its content type is {@value #CONTENT_TYPE}.
 *
 * <p>A payload that does not decode is refused with the place and the kind of the fault; the
 * payload itself is not quoted.
 */
public final class JacksonCodec implements PayloadCodec {
  /** The media type of what it encodes: {@value}. */
  public static final String CONTENT_TYPE = "application/json";

  private final ObjectWriter writer;
  private final ObjectReader reader;

  private JacksonCodec(ObjectMapper mapper) {
    this.writer = mapper.writer();
    this.reader = mapper.reader();
  }

  /**
   * Returns a codec with the mapper's present settings.
   *
   * @param mapper a configured mapper; changing its settings later does not change the codec
   * @return the codec
   */
  public static JacksonCodec of(ObjectMapper mapper) {
    return new JacksonCodec(Objects.requireNonNull(mapper, "mapper"));
  }

  /**
   * Returns a codec for messages that outlive the code that wrote them: unknown properties are
   * ignored, dates and durations are ISO 8601 text, what follows the JSON value is an error, and so
   * is null for a primitive. Jackson modules on the class path are used, for instance {@code
   * jackson-datatype-jsr310}, which {@code java.time} needs.
   *
   * @return the codec
   */
  public static JacksonCodec standard() {
    return of(
        JsonMapper.builder()
            .findAndAddModules()
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
            .disable(SerializationFeature.WRITE_DATES_AS_TIMESTAMPS)
            .disable(SerializationFeature.WRITE_DURATIONS_AS_TIMESTAMPS)
            .build());
  }

  @Override
  public String contentType() {
    return CONTENT_TYPE;
  }

  /**
   * Encodes a body.
   *
   * @param body the body
   * @return its JSON
   * @throws JsonProcessingException if Jackson cannot encode it
   */
  @Override
  public Payload encode(Object body) throws JsonProcessingException {
    return Payload.wrap(writer.writeValueAsBytes(body));
  }

  /**
   * Decodes a payload.
   *
   * @param payload the JSON
   * @param type what to make of it
   * @param <T> the same
   * @return the body
   * @throws OutboxException if the payload is not JSON, not of that type, or {@code null}
   */
  @Override
  public <T> T decode(Payload payload, Class<T> type) {
    T body;
    try {
      body = reader.forType(type).readValue(payload.bytes());
    } catch (IOException e) {
      throw undecodable(payload, type, e);
    }
    if (body == null) {
      throw new OutboxException(
          "payload of "
              + payload.size()
              + " bytes is JSON null where "
              + type.getName()
              + " is expected");
    }
    return body;
  }

  // without the cause: Jackson's texts quote values
  private static OutboxException undecodable(Payload payload, Class<?> type, IOException e) {
    StringBuilder text =
        new StringBuilder("payload of ")
            .append(payload.size())
            .append(" bytes is not JSON of ")
            .append(type.getName())
            .append(": ")
            .append(e.getClass().getSimpleName());
    if (e instanceof JsonProcessingException json && json.getLocation() != null) {
      JsonLocation location = json.getLocation();
      text.append(" at line ")
          .append(location.getLineNr())
          .append(", column ")
          .append(location.getColumnNr());
    }
    if (e instanceof JsonMappingException mapping) {
      String path = path(mapping);
      text.append(path.isEmpty() ? "" : ", in ").append(path);
    }
    return new OutboxException(text.toString());
  }

  /**
   * The properties and places that lead to the fault: names of ours, none that the payload chose.
   */
  private static String path(JsonMappingException fault) {
    StringBuilder path = new StringBuilder();
    for (JsonMappingException.Reference step : fault.getPath()) {
      String name = step.getFieldName();
      if (name == null) {
        path.append('[').append(step.getIndex()).append(']');
      } else if (step.getFrom() instanceof Map || isUnknown(name, fault)) {
        path.append("[…]");
      } else {
        path.append("[\"").append(name).append("\"]");
      }
    }
    return path.toString();
  }

  private static boolean isUnknown(String name, JsonMappingException fault) {
    return fault instanceof UnrecognizedPropertyException unknown
        && name.equals(unknown.getPropertyName());
  }
}
