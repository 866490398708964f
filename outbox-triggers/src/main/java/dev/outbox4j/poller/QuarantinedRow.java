package dev.outbox4j.poller;

import java.time.Instant;

/**
 * A row in quarantine.
 *
 * @param id its number, by which it is redriven
 * @param eventId the row's event id
 * @param operation what happened to the row
 * @param cursor its cursor, as {@link Position#cursor()} tells it
 * @param key its key, as a JSON object
 * @param row its columns, as a JSON object of texts, numbers, booleans and nulls
 * @param error what the handler threw, cut to 4,000 bytes
 * @param attempts how often the handler has failed with it alone
 * @param firstFailure when it first failed, by the server's clock
 * @param lastFailure when it last failed
 * @param redriven whether it waits to be handled again
 */
public record QuarantinedRow(
    long id,
    String eventId,
    RowOperation operation,
    String cursor,
    String key,
    String row,
    String error,
    int attempts,
    Instant firstFailure,
    Instant lastFailure,
    boolean redriven) {

  /** Shows what tells it from others, and not the row, which may be secret. */
  @Override
  public String toString() {
    return "QuarantinedRow[" + id + ", " + operation + " " + key + " at " + cursor + "]";
  }
}
