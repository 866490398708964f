package dev.outbox4j.dlq;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.RescheduleUpdate;
import dev.outbox4j.spi.RetryUpdate;
import java.time.Duration;
import java.util.List;
import java.util.OptionalInt;
import java.util.Set;
import javax.sql.DataSource;

/**
 * All of a store that dead letters may use: its pool and its table. Anything else fails the test.
 */
record PoolOnlyStore(DataSource dataSource, OutboxTable table) implements PostgresStore {
  @Override
  public ClaimResult claim(ClaimRequest request) {
    throw unused();
  }

  @Override
  public Set<Long> ack(List<LeaseRef> leases) {
    throw unused();
  }

  @Override
  public Set<Long> retry(List<RetryUpdate> updates) {
    throw unused();
  }

  @Override
  public Set<Long> reschedule(List<RescheduleUpdate> updates) {
    throw unused();
  }

  @Override
  public Set<Long> renew(List<LeaseRef> leases, Duration lease) {
    throw unused();
  }

  @Override
  public Set<Long> release(List<LeaseRef> leases) {
    throw unused();
  }

  @Override
  public void forget(String owner) {
    throw unused();
  }

  @Override
  public String channel() {
    throw unused();
  }

  @Override
  public OptionalInt connectionLimit() {
    throw unused();
  }

  @Override
  public Object connectionSource() {
    throw unused();
  }

  private static AssertionError unused() {
    return new AssertionError("Dead letters use a store's pool and table only");
  }
}
