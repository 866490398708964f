package dev.outbox4j.codec.jackson2;

import com.fasterxml.jackson.core.JsonLocation;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.exc.StreamConstraintsException;
import com.fasterxml.jackson.core.exc.StreamReadException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JavaType;
import com.fasterxml.jackson.databind.JsonMappingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.exc.InvalidDefinitionException;
import com.fasterxml.jackson.databind.exc.MismatchedInputException;
import com.fasterxml.jackson.databind.exc.ValueInstantiationException;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.outbox4j.OutboxException;
import dev.outbox4j.Payload;
import dev.outbox4j.internal.JsonFault;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.spi.UndecodableException;
import java.io.CharConversionException;
import java.io.IOException;
import java.lang.reflect.Type;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Bodies as JSON in UTF-8, by Jackson 2. Immutable and thread-safe; its content type is {@value
 * #CONTENT_TYPE}.
 *
 * <p>A payload that does not decode is refused with the place and the kind of the fault; the
 * payload itself is not quoted.
 */
public final class Jackson2Codec implements PayloadCodec {
  /** The media type of what it encodes: {@value}. */
  public static final String CONTENT_TYPE = "application/json";

  private final ObjectWriter writer;
  private final ObjectReader reader;

  private Jackson2Codec(ObjectMapper mapper) {
    this.writer = mapper.writer();
    this.reader = mapper.reader();
  }

  /**
   * Returns a codec with the mapper's present settings.
   *
   * @param mapper a configured mapper; changing its settings later does not change the codec
   * @return the codec
   */
  public static Jackson2Codec of(ObjectMapper mapper) {
    return new Jackson2Codec(Objects.requireNonNull(mapper, "mapper"));
  }

  /**
   * Returns a codec for messages that outlive the code that wrote them: unknown properties are
   * ignored, dates and durations are ISO 8601 text, what follows the JSON value is an error, and so
   * is null for a primitive. Jackson modules on the class path are used, for instance {@code
   * jackson-datatype-jsr310}, which {@code java.time} needs.
   *
   * @return the codec
   */
  public static Jackson2Codec standard() {
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
   * @param headers not used
   * @param type what to make of it
   * @return the body
   * @throws UndecodableException if the payload is not JSON, not of that type, or {@code null}
   * @throws OutboxException if Jackson fails for another reason, such as a class it has no way to
   *     make: the payload may be good
   */
  @Override
  public Object decode(Payload payload, Map<String, String> headers, Type type) {
    Object body;
    try {
      body = reader.forType(type).readValue(payload.bytes());
    } catch (IOException e) {
      throw isFaultOfTheBytes(e)
          ? new UndecodableException(fault(payload, type, e).text("is not JSON of"))
          : new OutboxException(fault(payload, type, e).text("could not be decoded to"));
    }
    if (body == null) {
      throw new UndecodableException(JsonFault.nullBody(payload.size(), type));
    }
    return body;
  }

  private static boolean isFaultOfTheBytes(IOException e) {
    return e instanceof StreamReadException
        || e instanceof StreamConstraintsException
        || e instanceof MismatchedInputException
        || e instanceof CharConversionException
        || (e instanceof JsonMappingException
            && (e.getCause() instanceof StreamReadException
                || e.getCause() instanceof StreamConstraintsException));
  }

  // without the cause: Jackson's texts quote values
  private static JsonFault fault(Payload payload, Type type, IOException e) {
    JsonLocation location = e instanceof JsonProcessingException json ? json.getLocation() : null;
    return new JsonFault(
        payload.size(),
        type,
        e.getClass(),
        about(e),
        JsonFault.Refusal.of(thrownByTheClass(e)),
        location == null ? -1 : location.getLineNr(),
        location == null ? -1 : location.getColumnNr(),
        e instanceof JsonMappingException mapping ? path(mapping) : List.of());
  }

  private static @Nullable String about(IOException e) {
    JavaType type =
        e instanceof InvalidDefinitionException definition
            ? definition.getType()
            : e instanceof ValueInstantiationException instantiation
                ? instantiation.getType()
                : null;
    return type == null ? null : type.toCanonical();
  }

  /** What the constructor or a setter of a body's class threw; null if Jackson itself refuses. */
  private static @Nullable Throwable thrownByTheClass(IOException e) {
    Throwable cause = e.getCause();
    return isFaultOfTheBytes(e) || cause instanceof IOException ? null : cause;
  }

  private static List<JsonFault.Step> path(JsonMappingException fault) {
    return fault.getPath().stream()
        .limit(JsonFault.MOST_STEPS)
        .map(step -> JsonFault.Step.of(step.getFrom(), step.getFieldName(), step.getIndex()))
        .toList();
  }
}
