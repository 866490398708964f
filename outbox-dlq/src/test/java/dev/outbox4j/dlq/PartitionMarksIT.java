package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.migrations.PartitionInterval;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The marks of closed partitions in their comments, beside other clocks and other people. */
@ExtendWith(PostgresExtension.class)
class PartitionMarksIT {
  private final TestDatabase database;
  private final Partitions partitions;

  PartitionMarksIT(TestDatabase database) {
    this.database = database;
    this.partitions = new Partitions(database);
  }

  /** A server whose clock is behind by hours for a while: no mark gets older than it was. */
  @Test
  void aMarkOfTheRightClockIsNotMadeOlderByOneThatIsBehind() {
    partitions.by(PartitionInterval.MONTH);
    String march = partitions.month(3);
    partitions.resolved(3, 1, 1);
    // by the right clock, three hours ahead of this server's: resolved, and then found so
    database.update("update outbox_dlq set resolved_at = now() + interval '170 minutes'");
    database.update(
        "do $$ begin execute format('comment on table "
            + march
            + " is %L', 'outbox4j closed ' || to_char((now() + interval '3 hours') at time zone"
            + " 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')); end $$");
    partitions.retention(database.plain()).build().run();

    assertThat(
            database.one(
                Boolean.class,
                "select substr(obj_description('"
                    + march
                    + "'::regclass, 'pg_class'), 17)::timestamptz >= (select max(resolved_at) from "
                    + march
                    + ")"))
        .as("closed no earlier than its last letter was resolved: " + partitions.comment(march))
        .isTrue();
  }

  /** Which the retention waits for, up to 100 ms. */
  @Test
  void aCommentThatIsWrittenMeanwhileStays() throws Exception {
    partitions.by(PartitionInterval.MONTH);
    String march = partitions.month(3);
    PartitionSql sql =
        new PartitionSql(
            "\"public\".\"outbox_dlq\"",
            "\"public\".\"outbox\"",
            "\"public\".\"outbox_dlq_trips\"",
            "\"public\".\"outbox_dlq_audit\"",
            "outbox_dlq_until");
    String patient = sql.close("\"public\".\"" + march + "\"").replace("'100ms'", "'60s'");
    try (Connection ann =
        partitions.transaction("comment on table " + march + " is 'keep for the auditors'")) {
      CompletableFuture<Void> done = CompletableFuture.runAsync(() -> partitions.script(patient));
      await().until(() -> partitions.waiting() > 0);
      ann.commit();
      done.get();
    }
    assertThat(partitions.comment(march)).startsWith("keep for the auditors, outbox4j closed");
  }
}
