package dev.outbox4j.examples.poller;

import dev.outbox4j.examples.run.Waits;
import dev.outbox4j.poller.Audit;
import dev.outbox4j.poller.Cursor;
import dev.outbox4j.poller.Deletes;
import dev.outbox4j.poller.Poller;
import dev.outbox4j.poller.PollerControl;
import dev.outbox4j.poller.PollerEvents;
import dev.outbox4j.poller.PollerStatus;
import dev.outbox4j.poller.Pollers;
import dev.outbox4j.poller.Source;
import dev.outbox4j.poller.TickResult;
import dev.outbox4j.postgres.PostgresOutbox;
import java.time.Duration;
import java.util.Optional;
import javax.sql.DataSource;

/** Follows the customers into a queue: a message for each row that changed. */
final class CustomersPoller implements AutoCloseable {
  static final String APPLICATION = "crm";
  static final String QUEUE = "customers";
  static final String NAME = "customers";

  private final PostgresOutbox outbox;
  private final DataSource legacy;
  private final Cursor cursor;
  private final Waits waits;
  private final Pollers pollers;
  private final PollerControl control;

  /**
   * Creates it; nothing is read yet.
   *
   * @param outbox where the queue is
   * @param legacy where the customers are, in the same database or another
   * @param cursor the time of the last change, and how it is kept
   * @param waits what waits for it
   * @param ticks told of each tick
   */
  CustomersPoller(
      PostgresOutbox outbox, DataSource legacy, Cursor cursor, Waits waits, PollerEvents ticks) {
    this.outbox = outbox;
    this.legacy = legacy;
    this.cursor = cursor;
    this.waits = waits;
    this.control = PollerControl.of(outbox, APPLICATION);
    this.pollers = builder(customers()).events(ticks).build();
  }

  private Poller customers() {
    return Poller.of(
            NAME, Source.table("legacy", "customers"), cursor, Deletes.softDelete("deleted_at"))
        .batchSize(200)
        .pollInterval(Duration.ofMillis(100));
  }

  private Pollers.Builder builder(Poller poller) {
    return Pollers.builder(outbox, APPLICATION).source(legacy).publishTo(poller, QUEUE);
  }

  /** Forgets what an earlier run has left on record: the table is another one now. */
  void forget() {
    control.pollers().forEach(status -> control.remove(status.name()));
  }

  void start() {
    pollers.start();
  }

  /** {@return the record, from the database} */
  Optional<PollerStatus> status() {
    return control.status(NAME);
  }

  /**
   * Publishes all rows that there are, also those that were dated back behind the position. The
   * follower is paused meanwhile: what it publishes after that is newer, and stays behind what the
   * backfill has published of the same row.
   *
   * @param name tells this backfill from others
   * @return how many rows were published
   */
  long backfill(String name) throws Exception {
    Audit audit = Audit.of("the example", "backfill " + name);
    control.pause(NAME, audit);
    waits.until(
        "that the follower is quiet", () -> status().flatMap(PollerStatus::holder).isEmpty());
    Poller all = customers().named(name).untilNow().rate(100_000);
    try (Pollers backfill = builder(all).build()) {
      while (control.status(name).flatMap(PollerStatus::finishedAt).isEmpty()) {
        TickResult result = backfill.tick(name);
        if (result.outcome() == TickResult.Outcome.FAILED) {
          throw new IllegalStateException(result.reason().orElse("the backfill failed"));
        }
      }
    } finally {
      control.resume(NAME, audit);
    }
    return control.status(name).orElseThrow().rows();
  }

  @Override
  public void close() {
    pollers.stop();
  }
}
