package dev.outbox4j.benchmarks.raw;

import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Publisher;
import dev.outbox4j.benchmarks.spi.Publishing;
import dev.outbox4j.migrations.OutboxMigrations;
import java.sql.Array;
import java.sql.PreparedStatement;
import java.sql.SQLException;

/**
 * A multi-row insert into the outbox table, with the notification that the option {@code gate}
 * says: {@code never}, {@code always}, {@code advisory} (unless the shared lock of an awake
 * subscriber is there to be had) or {@code sleepers} (if a subscriber said that it sleeps).
 */
public final class BareInsert implements Publishing {
  private static final String INSERT =
      "insert into outbox (queue, payload) select ?, p from unnest(?) as p";
  private static final String INSERTED =
      "with inserted as (" + INSERT + " returning queue, available_at) ";

  /** Made by the service loader. */
  public BareInsert() {}

  @Override
  public String name() {
    return "raw-insert";
  }

  @Override
  public String contract() {
    return "publishes only: a bare multi-row insert, with the notification gate named";
  }

  @Override
  public void prepare(Bench bench) throws SQLException {
    OutboxMigrations.standard().migrate(bench.dataSource());
  }

  @Override
  public Publisher publisher(Bench bench) {
    String sql = sql(bench.option("gate", "never"));
    return (transaction, payloads, delay) -> {
      try (PreparedStatement statement = transaction.prepareStatement(sql)) {
        Array array = transaction.createArrayOf("bytea", payloads.toArray(new byte[0][]));
        statement.setString(1, TwoThreads.QUEUE);
        statement.setArray(2, array);
        statement.execute();
        array.free();
      }
    };
  }

  private static String sql(String gate) {
    return switch (gate) {
      case "never" -> INSERT;
      case "always" ->
          INSERTED
              + "select pg_notify('outbox_outbox', queue) from (select distinct queue from inserted) i";
      case "advisory" ->
          INSERTED
              + "select case when not pg_try_advisory_xact_lock_shared(7, hashtext(queue))"
              + " then pg_notify('outbox_outbox', queue) end"
              + " from (select distinct queue from inserted) i";
      case "sleepers" ->
          INSERTED
              + "select pg_notify('outbox_outbox', queue) from (select distinct i.queue from inserted i"
              + " where exists (select from outbox_sleepers s where s.queue = i.queue"
              + " and s.wake_at > i.available_at)) i";
      default -> throw new IllegalArgumentException("unknown gate " + gate);
    };
  }
}
