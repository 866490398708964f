package dev.outbox4j.internal.claim;

import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.internal.state.HeldRow;
import java.util.List;
import java.util.Optional;

/** Brings rows in, on a loop of its own. Thread-safe. */
public interface RowSource {
  /** Begins. */
  void start();

  /** Brings no more after what is under way. */
  void stop();

  /** Waits for the end; false if the deadline passed before. */
  boolean join(long deadline);

  /** Gives rows back that no worker has begun. */
  void giveBack(List<HeldRow> rows);

  /** Gives a row back that may not begin, since its queue is paused. */
  void putOff(HeldRow row);

  /** Returns its share in ordered queues, if it reads such. */
  Optional<SubscriberHealth.Order> order();

  /** Lets go of what it keeps for itself, once no more is to be written. */
  void release();
}
