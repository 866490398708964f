package dev.outbox4j.lock;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.triggers.internal.Applications;
import java.time.Instant;
import java.util.List;

/**
 * Looks at the locks of an application, from any process. Each call is one statement. Immutable and
 * thread-safe. All methods throw {@link OutboxStoreException} if it fails.
 */
public final class LockControl {
  private static final int MOST = 100_000;

  private final LockStore store;

  private LockControl(LockStore store) {
    this.store = store;
  }

  /**
   * Returns the control of an application's locks; does no I/O.
   *
   * @param outbox where they are on record
   * @param application whose locks
   * @return the control
   * @throws IllegalArgumentException if no application can have the name
   */
  public static LockControl of(PostgresOutbox outbox, String application) {
    return new LockControl(
        new LockStore(
            outbox, Applications.require(application), PostgresOutbox.DEFAULT_NETWORK_TIMEOUT));
  }

  /** {@return the locks on record, held or not, by their names} */
  public List<LockStatus> locks() {
    return store.list();
  }

  /**
   * Deletes the records of locks that are free. Needed now and then where suffixes are taken from
   * messages. Tokens go on growing all the same.
   *
   * @param before only those that were not renewed or acquired since
   * @param most how many at most, 1 to 100,000
   * @return how many were deleted; call again if it is as many as were asked for
   * @throws IllegalArgumentException if the number is out of range
   */
  public int purge(Instant before, int most) {
    if (most < 1 || most > MOST) {
      throw new IllegalArgumentException("most is " + most + "; it must be 1 to 100,000");
    }
    return store.purge(before, most);
  }
}
