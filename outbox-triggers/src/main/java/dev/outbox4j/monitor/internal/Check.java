package dev.outbox4j.monitor.internal;

import dev.outbox4j.Delivery;
import dev.outbox4j.monitor.MonitorType;
import dev.outbox4j.monitor.RaisedEvent;
import java.util.List;

/** A type, and how its instances are checked. Thread-safe. */
public interface Check {
  /** {@return the type} */
  MonitorType<?> type();

  /**
   * Looks once.
   *
   * @param instance the instance
   * @param events what it has not seen
   * @param delivery the message that woke it
   * @return what the check says
   * @throws Exception if it could not look
   */
  CheckResult run(Instance instance, List<RaisedEvent> events, Delivery delivery) throws Exception;
}
