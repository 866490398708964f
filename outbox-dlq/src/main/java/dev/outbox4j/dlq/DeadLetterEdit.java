package dev.outbox4j.dlq;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** What of a message is changed before it is put back. Immutable. */
public final class DeadLetterEdit {
  private static final DeadLetterEdit NOTHING = new DeadLetterEdit(null, null, Map.of());

  private final @Nullable String type;
  private final @Nullable Payload payload;
  private final Map<String, Optional<String>> headers;

  private DeadLetterEdit(
      @Nullable String type, @Nullable Payload payload, Map<String, Optional<String>> headers) {
    this.type = type;
    this.payload = payload;
    this.headers = Map.copyOf(headers);
  }

  /**
   * Changes the type.
   *
   * @param type the new one
   * @return the change
   * @throws IllegalArgumentException if no message can have it
   */
  public static DeadLetterEdit type(String type) {
    return NOTHING.andType(type);
  }

  /**
   * Changes the payload.
   *
   * @param payload the new one
   * @return the change
   */
  public static DeadLetterEdit payload(Payload payload) {
    return NOTHING.andPayload(payload);
  }

  /**
   * Sets a header.
   *
   * @param name its name
   * @param value its value
   * @return the change
   * @throws IllegalArgumentException if no message can have it
   */
  public static DeadLetterEdit header(String name, String value) {
    return NOTHING.andHeader(name, value);
  }

  /**
   * Removes a header.
   *
   * @param name its name
   * @return the change
   * @throws IllegalArgumentException if it has a NUL
   */
  public static DeadLetterEdit withoutHeader(String name) {
    return NOTHING.andWithoutHeader(name);
  }

  /**
   * Changes the type, too.
   *
   * @param type the new one
   * @return both changes
   * @throws IllegalArgumentException if no message can have it
   */
  public DeadLetterEdit andType(String type) {
    OutboxMessage.to("any").type(type);
    return new DeadLetterEdit(type, payload, headers);
  }

  /**
   * Changes the payload, too.
   *
   * @param payload the new one
   * @return both changes
   */
  public DeadLetterEdit andPayload(Payload payload) {
    return new DeadLetterEdit(type, Objects.requireNonNull(payload, "payload"), headers);
  }

  /**
   * Sets a header, too.
   *
   * @param name its name
   * @param value its value
   * @return both changes
   * @throws IllegalArgumentException if no message can have it
   */
  public DeadLetterEdit andHeader(String name, String value) {
    OutboxMessage.to("any").header(name, value);
    return with(name, Optional.of(value));
  }

  /**
   * Removes a header, too.
   *
   * @param name its name
   * @return both changes
   * @throws IllegalArgumentException if it has a NUL
   */
  public DeadLetterEdit andWithoutHeader(String name) {
    if (name.indexOf('\0') >= 0) {
      throw new IllegalArgumentException("name has a NUL; no header has one");
    }
    return with(name, Optional.empty());
  }

  private DeadLetterEdit with(String name, Optional<String> value) {
    Map<String, Optional<String>> all = new TreeMap<>(headers);
    all.put(name, value);
    return new DeadLetterEdit(type, payload, all);
  }

  @Nullable String typeOf(DeadLetter letter) {
    return type == null ? letter.summary().type().orElse(null) : type;
  }

  Payload payloadOf(DeadLetter letter) {
    return payload == null ? letter.payload() : payload;
  }

  /** The headers that it sets. */
  Map<String, String> newHeaders() {
    Map<String, String> set = new TreeMap<>();
    headers.forEach((name, value) -> value.ifPresent(text -> set.put(name, text)));
    return set;
  }

  /** The headers that it removes. */
  List<String> removedHeaders() {
    return headers.entrySet().stream()
        .filter(header -> header.getValue().isEmpty())
        .map(Map.Entry::getKey)
        .sorted()
        .toList();
  }

  private Map<String, String> headersOf(DeadLetter letter) {
    Map<String, String> all = new TreeMap<>(letter.headers());
    headers.forEach(
        (name, value) ->
            value.ifPresentOrElse(text -> all.put(name, text), () -> all.remove(name)));
    return all;
  }

  /** The letter as it is to be sent. */
  DeadLetter of(DeadLetter letter) {
    DeadLetterSummary old = letter.summary();
    return new DeadLetter(
        new DeadLetterSummary(
            old.id(),
            old.messageId(),
            old.queue(),
            Optional.ofNullable(typeOf(letter)),
            old.orderingKey(),
            payloadOf(letter).size(),
            old.deliveries(),
            old.attempts(),
            old.failedAt(),
            old.reason(),
            old.exception(),
            old.redrives(),
            old.resolution(),
            old.note()),
        payloadOf(letter),
        headersOf(letter),
        letter.timerId(),
        letter.createdAt(),
        letter.availableAt(),
        letter.firstAttemptAt(),
        letter.lastAttemptAt(),
        letter.exception());
  }
}
