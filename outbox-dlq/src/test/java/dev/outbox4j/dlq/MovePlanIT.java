package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.ServerCounters;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.DeadLetterWriter;
import java.sql.SQLException;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What a move reads of the outbox, counted by the server. One session runs everything. */
@ExtendWith(PostgresExtension.class)
@Tag("plans")
class MovePlanIT {
  private static final int ROWS = 200_000;
  private static final int BATCH = 100;

  private final TestDatabase database;

  MovePlanIT(TestDatabase database) {
    this.database = database;
  }

  @Test
  void probesThePrimaryKeyHoweverStaleTheStatisticsAre() throws SQLException {
    try (ServerCounters counters = new ServerCounters(database, "outbox")) {
      DeadLetterWriter writer =
          DeadLetterQueue.in("outbox_dlq")
              .bind(PostgresOutbox.on(counters.session(), database.table()).store());
      counters.run("analyze outbox");
      for (int i = 0; i < 12; i++) {
        assertThat(writer.write(List.of(Rows.entry("orders", i + 1L))).done()).isEmpty();
      }
      counters.run(
          "insert into outbox (id, queue, payload, lease_token, lease_until)"
              + " select n, 'orders', decode(repeat('ab', 256), 'hex'), "
              + Rows.TOKEN
              + ", now() + interval '1 hour' from generate_series(1, "
              + ROWS
              + ") n");

      readsFew(counters, writer, 1);
      counters.run("analyze outbox");
      readsFew(counters, writer, 2);
      counters.run("vacuum outbox");
      readsFew(counters, writer, 3);
      for (int seeming : List.of(0, 1, 100)) { // as after a drain, when the next burst comes
        counters.run("update pg_class set reltuples = " + seeming + " where relname = 'outbox'");
        readsFew(counters, writer, 4 + seeming);
      }
    }
  }

  /** Moves rows that lie far apart; a scan of the table would read thousands of pages. */
  private void readsFew(ServerCounters counters, DeadLetterWriter writer, int offset)
      throws SQLException {
    List<DeadLetterEntry> entries =
        LongStream.range(0, BATCH)
            .mapToObj(n -> Rows.entry("orders", n * (ROWS / BATCH) + offset))
            .toList();
    ServerCounters.Reads before = counters.reads();

    assertThat(writer.write(entries).done()).hasSize(BATCH);

    ServerCounters.Reads after = counters.reads();
    assertThat(after.sequentialScans()).isEqualTo(before.sequentialScans());
    assertThat(after.pages() - before.pages()).isBetween((long) BATCH, BATCH * 8L);
  }
}
