package dev.outbox4j.monitor;

import java.time.Instant;
import java.util.List;
import java.util.Optional;

/**
 * An instance as it is on record. Instants are the server's. Its input, state and output are there
 * on a page of a {@link MonitorQuery} only if that {@linkplain MonitorQuery#with asks} for them.
 *
 * @param id its id, unique in its application
 * @param type the name of its type
 * @param execution which execution of this id it is; it grows with each start and restart
 * @param status where it is
 * @param outcome how it was completed; present exactly while it is {@link MonitorStatus#COMPLETED}
 * @param iterations how many checks were committed
 * @param attempts how many attempts at the present check have failed
 * @param input what it was started with
 * @param state what the latest check has left for the next one
 * @param customStatus what the latest check shows
 * @param output what it has found; for {@link MonitorStatus#TERMINATED} and {@link
 *     MonitorStatus#CANCELED} the reason, as a JSON string
 * @param failure why it has failed; present exactly while it is {@link MonitorStatus#FAILED}
 * @param lastError what the latest attempt at the present check has thrown, if it failed
 * @param parent what it belongs to, if that was said
 * @param waitsFor the names of the events that wake it before it is due
 * @param createdAt when this execution was started
 * @param updatedAt when its record changed last
 * @param startedAt when its first check began, if it has
 * @param endedAt when it ended, if it has
 * @param expiresAt when it expires, if it does
 * @param dueAt when it is checked next; empty once it has ended
 */
public record MonitorInstance(
    String id,
    String type,
    long execution,
    MonitorStatus status,
    Optional<MonitorOutcome> outcome,
    long iterations,
    int attempts,
    Optional<Json> input,
    Optional<Json> state,
    Optional<Json> customStatus,
    Optional<Json> output,
    Optional<MonitorFailure> failure,
    Optional<String> lastError,
    Optional<String> parent,
    List<String> waitsFor,
    Instant createdAt,
    Instant updatedAt,
    Optional<Instant> startedAt,
    Optional<Instant> endedAt,
    Optional<Instant> expiresAt,
    Optional<Instant> dueAt) {

  /** The bytes that a custom status may have in UTF-8: {@value}. */
  public static final int MAX_STATUS_BYTES = 16 * 1024;

  /** The characters that an id may have: {@value}. */
  public static final int MAX_ID_CHARS = MonitorNames.MAX_ID_CHARS;

  /** Copies the list. */
  public MonitorInstance {
    waitsFor = List.copyOf(waitsFor);
  }
}
