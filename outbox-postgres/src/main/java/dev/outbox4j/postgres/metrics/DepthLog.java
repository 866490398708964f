package dev.outbox4j.postgres.metrics;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.postgres.OutboxTable;
import java.util.EnumSet;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Says in the log that counting fails, once for each kind of fault, and that it works again.
 * Confined to the thread that counts.
 */
final class DepthLog {
  private static final Logger log = LoggerFactory.getLogger(OutboxDepthMetrics.class);
  private static final String NO_GRANT = "42501";

  private final OutboxTable table;
  private final Set<Fault> said = EnumSet.noneOf(Fault.class);
  private boolean saidOther;

  /** Whether this process may not count, for want of a right or a table. */
  private boolean countRefused;

  DepthLog(OutboxTable table) {
    this.table = table;
  }

  void failed(Throwable failure, boolean counting) {
    countRefused |=
        counting && failure instanceof OutboxStoreException known && known.fault() == Fault.SETUP;
    String text = "depths cannot be counted now and are tried again: " + words(failure);
    if (isNew(failure)) {
      log.warn("[{}] {}", table, text);
      log.debug("[{}] this was thrown", table, failure);
    } else {
      log.debug("[{}] {}", table, text);
    }
  }

  private boolean isNew(Throwable failure) {
    if (failure instanceof OutboxStoreException known) {
      return said.add(known.fault());
    }
    boolean first = !saidOther;
    saidOther = true;
    return first;
  }

  private String words(Throwable failure) {
    if (!(failure instanceof OutboxStoreException known)) {
      return failure.getClass().getName();
    }
    String message = String.valueOf(known.getMessage());
    return known.sqlState().filter(NO_GRANT::equals).isEmpty()
        ? message
        : message
            + "; counting needs: grant select on "
            + table.qualifiedName()
            + "; grant select, insert (queue, subscriber, wake_at, until), update (until) on "
            + table.qualifiedSleepers();
  }

  /** Another process counts: that the lease could be asked for says nothing of rights to count. */
  void othersCount() {
    if (!countRefused) {
      works();
    }
  }

  void works() {
    if (!said.isEmpty() || saidOther) {
      log.info("[{}] depths can be counted again", table);
    }
    said.clear();
    saidOther = false;
    countRefused = false;
  }
}
