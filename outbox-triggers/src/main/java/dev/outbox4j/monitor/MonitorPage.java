package dev.outbox4j.monitor;

import java.util.List;
import java.util.Optional;

/**
 * A part of what was asked for.
 *
 * @param instances the instances
 * @param continuation what {@link MonitorQuery#after} is given for those that follow; empty if none
 *     do
 */
public record MonitorPage(List<MonitorInstance> instances, Optional<String> continuation) {

  /** Copies the list. */
  public MonitorPage {
    instances = List.copyOf(instances);
  }
}
