package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.migrations.DedupMigrations;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.Published;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The samples of {@code docs/deduplication.md}. */
@ExtendWith(PostgresExtension.class)
class DedupSamplesIT {
  private static final Logger log = LoggerFactory.getLogger(DedupSamplesIT.class);

  private final TestDatabase database;

  DedupSamplesIT(TestDatabase database) {
    this.database = database;
  }

  @Test
  void publishesOnceAndPurges() throws SQLException {
    DataSource dataSource = database.plain();
    OutboxTable table = database.table();
    // tag::migrate
    DedupMigrations.of("public", "outbox").migrate(dataSource);
    // end::migrate
    database.update("truncate outbox, outbox_dedup");
    OutboxPublisher publisher = PostgresOutbox.publisher(table).build();

    assertThat(publish(publisher).deduplicated()).isFalse();
    assertThat(publish(publisher).deduplicated()).isTrue();
    assertThat(database.count("outbox")).isEqualTo(1);

    database.update("update outbox_dedup set kept_until = now()");
    // tag::purge
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    while (outbox.purgeDedupKeys(10_000) >= 10_000) {
      log.info("There is more to purge");
    }
    // end::purge
    assertThat(database.count("outbox_dedup")).isZero();
  }

  private Published publish(OutboxPublisher publisher) throws SQLException {
    try (Connection tx = database.plain().getConnection()) {
      tx.setAutoCommit(false);
      // tag::publish
      OutboxMessage report =
          OutboxMessage.to("reports")
              .type("report.daily")
              .dedupKey("daily-2026-11-27", Duration.ofHours(20))
              .body("2026-11-27")
              .build();
      Published published = publisher.publish(tx, report);
      // end::publish
      tx.commit();
      return published;
    }
  }
}
