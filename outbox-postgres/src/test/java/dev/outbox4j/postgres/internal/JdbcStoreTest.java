package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.OutboxTable;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;

class JdbcStoreTest {
  @Test
  void offersOrderPausesAndLimitsWithoutAskingTheServer() {
    JdbcStore store =
        new JdbcStore(
            new PGSimpleDataSource(),
            OutboxTable.named("outbox"),
            Duration.ofSeconds(1),
            System::nanoTime);

    assertThat(store.buckets()).isPresent();
    assertThat(store.pauses()).isPresent();
    assertThat(store.slots()).isPresent();
  }
}
