package dev.outbox4j.spi;

import dev.outbox4j.OutboxStoreException;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The pauses of the queues of one outbox table. Thread-safe. */
public interface PauseStore {

  /**
   * Finds the pauses of queues that nobody has ended yet. Gives up after two seconds: it may have
   * the connection that the next renewal of leases needs.
   *
   * @param queues the queues, at least one
   * @return the pauses, at most one of each queue
   * @throws OutboxStoreException if the statement failed
   */
  List<OpenPause> open(Collection<String> queues);

  /**
   * A pause that lasts.
   *
   * @param queue the queue
   * @param since since when, by the server's clock
   * @param by who paused it
   * @param reason why, if it was said
   */
  record OpenPause(String queue, Instant since, String by, @Nullable String reason) {}
}
