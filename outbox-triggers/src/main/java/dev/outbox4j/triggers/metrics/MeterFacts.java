package dev.outbox4j.triggers.metrics;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What is known of a meter.
 *
 * @param kind what it measures with
 * @param id the name by which the registry knows it
 * @param unit of times {@code seconds}
 * @param tags the keys of its tags, in order
 * @param description what it means
 */
record MeterFacts(
    String kind, String id, @Nullable String unit, List<String> tags, String description) {
  MeterFacts {
    tags = List.copyOf(tags);
  }
}
