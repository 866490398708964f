package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.migrations.PartitionInterval;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.DeadLetterWriter;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * To drop a partition takes no longer the more letters it has, and who writes letters does not wait
 * for it. The server itself is the judge of both: it ends a drop after 90 ms, and a write that
 * waits for a lock after 100 ms.
 */
@ExtendWith(PostgresExtension.class)
@Tag("large")
class MillionLettersIT {
  private static final String MARCH = "outbox_dlq_p20200301";

  private final TestDatabase database;
  private final Partitions partitions;
  private final Rows rows;
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final AtomicBoolean running = new AtomicBoolean(true);
  private final AtomicInteger written = new AtomicInteger();
  private final AtomicInteger late = new AtomicInteger();

  MillionLettersIT(TestDatabase database) {
    this.database = database;
    this.partitions = new Partitions(database);
    this.rows = new Rows(database, "outbox");
  }

  @AfterEach
  void stop() {
    running.set(false);
    threads.shutdownNow();
    partitions.plain();
  }

  /** Each was unresolved, so that the indexes of these are as large as they can be. */
  private void march(int letters) {
    partitions.by(PartitionInterval.MONTH);
    partitions.month(3);
    database.update("alter table " + MARCH + " set (autovacuum_enabled = off)");
    partitions.unresolved(3, 1, letters);
    partitions.script("update " + MARCH + " set resolved_at = failed_at");
    partitions.retention(database.plain()).partitionsAhead(1).build().run();
    assertThat(partitions.comment(MARCH)).startsWith("outbox4j closed ");
    partitions.closed(MARCH); // so long ago
  }

  private Void write() {
    DeadLetterWriter writer =
        Letters.TABLE.bind(PostgresOutbox.on(database.plain(), database.table()).store());
    while (running.get()) {
      long id = rows.lease("orders");
      try {
        assertThat(writer.write(List.of(Rows.entry("orders", id))).done()).containsExactly(id);
        written.incrementAndGet();
      } catch (OutboxStoreException e) {
        assertThat(e.fault()).isEqualTo(Fault.TIMEOUT);
        late.incrementAndGet();
      }
    }
    return null;
  }

  private void awaitMore() {
    int before = written.get();
    await().until(() -> written.get() > before + 20);
  }

  /** By the same statements under the same limits. */
  @ParameterizedTest
  @ValueSource(ints = {1_000, 1_000_000})
  void aPartitionIsDroppedBesideWritersHoweverManyLettersItHas(int count) throws Exception {
    march(count);
    assertThat(database.count(MARCH + " where resolved_at is not null")).isEqualTo(count);
    List<Future<Void>> writers = List.of(threads.submit(this::write), threads.submit(this::write));
    awaitMore();

    DeadLetterRetentionReport report =
        partitions.retention(database.plain()).build().run().orElseThrow();
    awaitMore();
    running.set(false);
    for (Future<Void> writer : writers) {
      writer.get();
    }

    assertThat(report.dropped()).containsExactly(MARCH);
    assertThat(report.created()).as("those ahead, beside the writers, too").hasSize(2);
    assertThat(report.ended()).isEmpty();
    assertThat(report.postponed()).isEmpty();
    assertThat(report.deleted()).as("one by one").isZero();
    assertThat(written.get()).isGreaterThan(late.get() * 20); // those of a machine that stood still
    assertThat(database.count("outbox_dlq")).isEqualTo(written.get());
  }
}
