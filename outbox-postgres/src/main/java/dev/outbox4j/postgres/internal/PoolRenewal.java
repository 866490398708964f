package dev.outbox4j.postgres.internal;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import javax.sql.DataSource;

/**
 * Lets a pool make its connections anew after one of them has led to a server of no use: the others
 * lead there as well, most likely. Thread-safe.
 */
public final class PoolRenewal {
  /** Not at each failure: a server may stay as it is, and others use the pool, too. */
  private static final long EVERY = TimeUnit.SECONDS.toNanos(10);

  private final DataSource dataSource;
  private final AtomicLong renewedAt = new AtomicLong(System.nanoTime() - EVERY);

  /**
   * Creates it; does no I/O.
   *
   * @param dataSource the pool
   */
  public PoolRenewal(DataSource dataSource) {
    this.dataSource = dataSource;
  }

  /** Renews the connections, unless that was done a moment ago. */
  public void renew() {
    long now = System.nanoTime();
    long last = renewedAt.get();
    if (now - last >= EVERY && renewedAt.compareAndSet(last, now)) {
      PoolSize.renewConnections(dataSource);
    }
  }
}
