package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.ServerCounters;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.OpenDeadLetters;
import java.sql.SQLException;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What is read to find the keys on hold, counted by the server. One session runs everything. */
@ExtendWith(PostgresExtension.class)
@Tag("plans")
class OpenDeadLettersPlanIT {
  private static final int LETTERS = 50_000;
  private static final int KEYS = 100;

  private final TestDatabase database;

  OpenDeadLettersPlanIT(TestDatabase database) {
    this.database = database;
  }

  @Test
  void keysAreFoundByTheirIndexHoweverStaleTheStatisticsAre() throws SQLException {
    try (ServerCounters counters = new ServerCounters(database, "outbox_dlq")) {
      OpenDeadLetters open =
          DeadLetterQueue.in("outbox_dlq")
              .bind(PostgresOutbox.on(counters.session(), database.table()).store())
              .open()
              .orElseThrow();
      fill(counters, "others", LETTERS, "'others-' || n");
      counters.run("analyze outbox_dlq");
      fill(counters, "orders", LETTERS, "'other-' || n");
      fill(counters, "orders", KEYS, "'key-' || n");
      findsFew(counters, open);
      counters.run("vacuum analyze outbox_dlq");
      findsFew(counters, open);
      for (int seeming : new int[] {0, 1, 100}) {
        counters.run(
            "update pg_class set reltuples = " + seeming + " where relname = 'outbox_dlq'");
        findsFew(counters, open);
      }
    }
  }

  private static void fill(ServerCounters counters, String queue, int count, String key)
      throws SQLException {
    counters.run(
        """
        insert into outbox_dlq (outbox, original_id, lease_token, queue, ordering_key, payload,
          deliveries_count, attempts_count, created_at, available_at, failure_reason)
        select 'public.outbox', n, 1, '%s', %s, 'x', 1, 1, now(), now(), 'rejected'
        from generate_series(1, %d) n"""
            .formatted(queue, key, count));
  }

  private void findsFew(ServerCounters counters, OpenDeadLetters open) throws SQLException {
    Set<String> asked =
        IntStream.rangeClosed(1, 2 * KEYS).mapToObj(n -> "key-" + n).collect(Collectors.toSet());
    long before = counters.reads().pages();
    assertThat(open.among("orders", asked)).hasSize(KEYS);
    assertThat(counters.reads().pages() - before).isBetween(1L, 12L * KEYS);
  }
}
