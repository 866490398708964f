package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import dev.outbox4j.postgres.NotifyMode;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.internal.Plans.Plan;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.Range;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.ScanBound;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What messages cost the server, counted by itself: gates against slow decay. */
@ExtendWith(PostgresExtension.class)
@Tag("plans")
class CostIT {
  private static final String QUEUE = "orders";

  private final TestDatabase database;
  private Plans plans;
  private PostgresStore store;

  CostIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void open() throws SQLException {
    database.update("truncate outbox");
    plans = new Plans(database);
    store = PostgresOutbox.on(plans, database.table()).store();
  }

  @AfterEach
  void close() throws SQLException {
    plans.close();
  }

  /** With a transaction open throughout, no dead index entry can be taken away. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aClaimTouchesNoMorePagesAtTheEndOfADrainThanAtItsBeginning(boolean held)
      throws SQLException {
    int total = 200_000;
    Rows.fill(database, "outbox", QUEUE, total);
    database.update("vacuum analyze outbox");
    try (Connection other = database.plain().getConnection();
        Statement statement = other.createStatement()) {
      if (held) {
        statement.execute("begin isolation level repeatable read");
        statement.execute("select count(*) from pg_class");
      }
      Drain drain = new Drain();
      drain.until(total / 100);
      long early = drain.buffersOfAClaim();
      drain.until(total / 100 * 99);
      long late = drain.buffersOfAClaim();

      // to find 100 rows, to lock them, and to write them on the pages they are on
      assertThat(early).isLessThan(600);
      assertThat(late).isBetween(1L, early + early / 10);
    }
  }

  private final class Drain {
    private @Nullable ScanBound bound;
    private int done;

    void until(int rows) {
      while (done < rows) {
        done += take(Math.min(2_000, rows - done));
      }
      plans.writes();
    }

    long buffersOfAClaim() {
      take(100);
      return plans.writes().get(0).buffers();
    }

    private int take(int limit) {
      ClaimRequest request =
          Requests.claim("drain/1", QUEUE, new Range(bound, null), limit, Idle.UNCHANGED);
      List<ClaimedRow> rows = store.claim(request).rows();
      assertThat(rows).hasSize(limit);
      ClaimedRow last = rows.get(limit - 1);
      bound = new ScanBound(last.message().availableAt(), last.lease().id());
      assertThat(store.ack(rows.stream().map(ClaimedRow::lease).toList()).done()).hasSize(limit);
      return limit;
    }
  }

  @Test
  void theLifeOfAMessageWritesLittleWal() throws SQLException {
    database.update("alter table outbox set (autovacuum_enabled = off)");
    // the next one is minutes away then: after it each page's first change writes the whole page
    database.update("checkpoint");
    OutboxPublisher publisher =
        PostgresOutbox.publisher(database.table()).notify(NotifyMode.AUTO).build();
    int messages = 10_000;
    Random random = new Random(1);
    try (Connection connection = plans.getConnection()) {
      connection.setAutoCommit(false);
      for (int i = 0; i < messages; i += 100) {
        publisher.publish(connection, batch(random));
        connection.commit();
      }
      connection.setAutoCommit(true);
    }
    long published = wal(plans.writes());
    Drain drain = new Drain();
    List<Plan> writes = new ArrayList<>();
    for (int i = 0; i < messages; i += 500) {
      drain.take(500);
      writes.addAll(plans.writes());
    }

    assertThat(published / messages).as("bytes to publish 256").isBetween(256L, 560L);
    assertThat(wal(writes) / messages).as("bytes to claim and ack").isBetween(100L, 260L);
  }

  private static List<OutboxMessage> batch(Random random) {
    List<OutboxMessage> messages = new ArrayList<>(100);
    for (int i = 0; i < 100; i++) {
      byte[] body = new byte[256];
      random.nextBytes(body);
      messages.add(OutboxMessage.to(QUEUE).body(Payload.wrap(body)).build());
    }
    return messages;
  }

  private static long wal(List<Plan> plans) {
    return plans.stream().mapToLong(Plan::walBytes).sum();
  }
}
