package dev.outbox4j.spring;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * What a health endpoint shows of the outbox. Immutable.
 *
 * @param up whether all subscribers that are meant to run are healthy, and the schema fits
 * @param details what is known of each; no payload, header or credential
 */
public record OutboxStatus(boolean up, Map<String, Object> details) {

  /** Copies the details. */
  public OutboxStatus {
    details = new LinkedHashMap<>(details); // keeps the order
  }
}
