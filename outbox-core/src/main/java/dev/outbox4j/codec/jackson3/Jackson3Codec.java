package dev.outbox4j.codec.jackson3;

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
import tools.jackson.core.JacksonException;
import tools.jackson.core.TokenStreamLocation;
import tools.jackson.core.exc.StreamConstraintsException;
import tools.jackson.core.exc.StreamReadException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JavaType;
import tools.jackson.databind.ObjectMapper;
import tools.jackson.databind.cfg.DateTimeFeature;
import tools.jackson.databind.exc.InvalidDefinitionException;
import tools.jackson.databind.exc.MismatchedInputException;
import tools.jackson.databind.exc.ValueInstantiationException;
import tools.jackson.databind.json.JsonMapper;

/**
 * Bodies as JSON in UTF-8, by Jackson 3. Immutable and thread-safe; its content type is {@value
 * #CONTENT_TYPE}.
 *
 * <p>A payload that does not decode is refused with the place and the kind of the fault; the
 * payload itself is not quoted.
 */
public final class Jackson3Codec implements PayloadCodec {
  /** The media type of what it encodes: {@value}. */
  public static final String CONTENT_TYPE = "application/json";

  private final ObjectMapper mapper;

  private Jackson3Codec(ObjectMapper mapper) {
    this.mapper = mapper;
  }

  /**
   * Returns a codec by a mapper.
   *
   * @param mapper a configured mapper, such as the one of a Spring context
   * @return the codec
   */
  public static Jackson3Codec of(ObjectMapper mapper) {
    return new Jackson3Codec(Objects.requireNonNull(mapper, "mapper"));
  }

  /**
   * Returns a codec for messages that outlive the code that wrote them: unknown properties are
   * ignored, dates and durations are ISO 8601 text, what follows the JSON value is an error, and so
   * is null for a primitive. Jackson modules on the class path are used.
   *
   * @return the codec
   */
  public static Jackson3Codec standard() {
    return of(
        JsonMapper.builder()
            .findAndAddModules()
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
            .disable(DateTimeFeature.WRITE_DATES_AS_TIMESTAMPS)
            .disable(DateTimeFeature.WRITE_DURATIONS_AS_TIMESTAMPS)
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
   * @throws JacksonException if Jackson cannot encode it
   */
  @Override
  public Payload encode(Object body) {
    return Payload.wrap(mapper.writeValueAsBytes(body));
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
      body = mapper.readerFor(mapper.constructType(type)).readValue(payload.bytes());
    } catch (JacksonException e) {
      throw isFaultOfTheBytes(e)
          ? new UndecodableException(fault(payload, type, e).text("is not JSON of"))
          : new OutboxException(fault(payload, type, e).text("could not be decoded to"));
    }
    if (body == null) {
      throw new UndecodableException(JsonFault.nullBody(payload.size(), type));
    }
    return body;
  }

  private static boolean isFaultOfTheBytes(JacksonException e) {
    return isOfTheStream(e)
        || e instanceof MismatchedInputException
        || isOfTheStream(e.getCause())
        || e.getCause() instanceof CharConversionException;
  }

  private static boolean isOfTheStream(@Nullable Throwable e) {
    return e instanceof StreamReadException || e instanceof StreamConstraintsException;
  }

  // without the cause: Jackson's texts quote values
  private static JsonFault fault(Payload payload, Type type, JacksonException e) {
    TokenStreamLocation location = e.getLocation();
    return new JsonFault(
        payload.size(),
        type,
        e.getClass(),
        about(e),
        JsonFault.Refusal.of(thrownByTheClass(e)),
        location == null ? -1 : location.getLineNr(),
        location == null ? -1 : location.getColumnNr(),
        path(e));
  }

  private static @Nullable String about(JacksonException e) {
    JavaType type =
        e instanceof InvalidDefinitionException definition
            ? definition.getType()
            : e instanceof ValueInstantiationException instantiation
                ? instantiation.getType()
                : null;
    return type == null ? null : type.toCanonical();
  }

  /** What the constructor or a setter of a body's class threw; null if Jackson itself refuses. */
  private static @Nullable Throwable thrownByTheClass(JacksonException e) {
    Throwable cause = e.getCause();
    return isFaultOfTheBytes(e) || cause instanceof JacksonException || cause instanceof IOException
        ? null
        : cause;
  }

  private static List<JsonFault.Step> path(JacksonException fault) {
    return fault.getPath().stream()
        .limit(JsonFault.MOST_STEPS)
        .map(step -> JsonFault.Step.of(step.from(), step.getPropertyName(), step.getIndex()))
        .toList();
  }
}
