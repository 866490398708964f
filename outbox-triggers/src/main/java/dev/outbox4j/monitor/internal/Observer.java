package dev.outbox4j.monitor.internal;

import dev.outbox4j.monitor.MonitorEvents;
import java.util.List;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells all who observe, whatever one of them throws.
 *
 * @param all who observe
 */
public record Observer(List<MonitorEvents> all) {
  private static final Logger log = LoggerFactory.getLogger(Observer.class);

  /** Copies the list. */
  public Observer {
    all = List.copyOf(all);
  }

  /** Tells something. */
  public void tell(Consumer<MonitorEvents> event) {
    for (MonitorEvents each : all) {
      try {
        event.accept(each);
      } catch (Throwable e) { // also of a class that is missing
        log.warn("monitors: {} failed", each, e);
      }
    }
  }
}
