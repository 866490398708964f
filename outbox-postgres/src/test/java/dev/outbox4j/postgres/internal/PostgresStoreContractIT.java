package dev.outbox4j.postgres.internal;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.testing.OutboxStoreContract;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class PostgresStoreContractIT extends OutboxStoreContract {
  private TestDatabase database;
  private OutboxStore store;

  @BeforeAll
  void makeStore(TestDatabase database) {
    this.database = database;
    this.store = PostgresOutbox.store(database.pool(2), database.table());
  }

  @BeforeEach
  void empty() {
    database.update("truncate outbox, outbox_sleepers");
  }

  @Override
  protected OutboxStore store() {
    return store;
  }

  @Override
  protected long publish(OutboxMessage message) {
    return Rows.insert(database, message);
  }

  @Override
  protected void pass(Duration time) {
    database.update(
        """
        with passed as (select make_interval(secs => ?) as time)
        update outbox set created_at = created_at - time, available_at = available_at - time,
          lease_until = lease_until - time, first_attempt_at = first_attempt_at - time,
          last_attempt_at = last_attempt_at - time
        from passed
        """,
        time.toMillis() / 1000.0);
  }

  @Override
  protected Set<Long> liveIds() {
    return new HashSet<>(database.list(Long.class, "select id from outbox"));
  }
}
