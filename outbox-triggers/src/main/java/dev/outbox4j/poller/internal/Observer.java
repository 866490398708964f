package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.PollerEvents;
import java.util.List;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells all who observe, whatever one of them throws.
 *
 * @param all who observe
 */
public record Observer(List<PollerEvents> all) {
  private static final Logger log = LoggerFactory.getLogger(Observer.class);

  /** Copies the list. */
  public Observer {
    all = List.copyOf(all);
  }

  /** Tells something. */
  public void tell(Consumer<PollerEvents> event) {
    for (PollerEvents each : all) {
      try {
        event.accept(each);
      } catch (Throwable e) { // also of a class that is missing
        log.warn("pollers: {} failed", each, e);
      }
    }
  }
}
