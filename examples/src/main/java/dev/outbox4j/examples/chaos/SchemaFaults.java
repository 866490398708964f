package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.Deeds.Deed;
import dev.outbox4j.examples.chaos.Tally.Count;
import java.io.IOException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Map;

/** Faults of those who change the tables while all run. */
final class SchemaFaults {
  private static final Duration BROKEN = Duration.ofSeconds(4);

  private final Scene scene;

  SchemaFaults(Scene scene) {
    this.scene = scene;
  }

  Episode dropDeadLetters() throws IOException, InterruptedException, SQLException {
    LedgerSchema schema = scene.schema();
    return during(
        schema::dropDeadLetters,
        schema::createDeadLetters,
        "outbox_dlq",
        "original_id",
        Count.MOVES_FAILED);
  }

  Episode alterDeadLetters() throws IOException, InterruptedException, SQLException {
    return during(
        () -> scene.update("alter table outbox_dlq drop column last_exception"),
        () -> scene.update("alter table outbox_dlq add column last_exception text"),
        "outbox_dlq",
        "last_exception",
        Count.MOVES_FAILED);
  }

  /** The outbox's leases go with their column. */
  Episode dropLeases() throws IOException, InterruptedException, SQLException {
    LedgerSchema schema = scene.schema();
    return during(
        () -> scene.alone(schema::dropLeases),
        () -> scene.alone(schema::addLeases),
        "outbox",
        "lease_until",
        Count.STATEMENTS_FAILED);
  }

  Episode longOutageOfDeadLetters() throws IOException, InterruptedException, SQLException {
    Map<Count, Long> before = scene.fleet().tally();
    Recovery recovery = new DeadLetterOutage(scene).last();
    Evidence evidence = new Evidence();
    scene.addCounts(evidence, before, Count.MOVES_FAILED);
    return new Episode(recovery, evidence);
  }

  /** Breaks a table for a while: meanwhile a column of it must not be there. */
  private Episode during(Deed breaks, Deed mends, String table, String column, Count count)
      throws IOException, InterruptedException, SQLException {
    Map<Count, Long> before = scene.fleet().tally();
    Evidence evidence = new Evidence();
    scene.deeds().act(breaks);
    try {
      Watch.pause(BROKEN);
      evidence.countersign(
          "columns_there_meanwhile",
          scene.number(
              "select count(*) from pg_attribute where attrelid = to_regclass(?)"
                  + " and attname = ? and not attisdropped",
              table,
              column));
    } finally {
      scene.deeds().act(mends);
    }
    Recovery recovery = scene.recovery();
    scene.addCounts(evidence, before, count);
    return new Episode(recovery, evidence);
  }
}
