package dev.outbox4j.examples.chaos;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Function;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * Writes effects to the ledger, those of all handlers of a process that come at the same time in
 * one statement: the ledger should cost less than what it is about. Thread-safe.
 */
final class EffectWriter {
  /** Notes beside each effect whose the row is at this instant. */
  private static final String INSERT =
      "insert into handled (no, outbox_id, token, owner, began, in_order, row_token, lease_until)"
          + " select e.no, e.id, e.token, ?, true_now() - make_interval(secs => e.took), e.in_order,"
          + " o.lease_token, case when o.lease_token = e.token then o.lease_until - clock_offset() end"
          + " from unnest(?, ?, ?, ?, ?) with ordinality as e (no, id, token, took, in_order, place)"
          // one row at a time, by its id
          + " left join lateral (select r.lease_token, r.lease_until from outbox r where r.id = e.id"
          + " limit 1) o on true order by e.place";

  private final String owner;
  private final DataSource connections;
  private final BlockingQueue<Asked> asked = new LinkedBlockingQueue<>();

  private EffectWriter(String owner, DataSource connections) {
    this.owner = owner;
    this.connections = connections;
  }

  /**
   * An effect.
   *
   * @param no the number of the message
   * @param row the message's id
   * @param token under which it is handled
   * @param began when its handler began, by {@link System#nanoTime}
   * @param inOrder whether it is one of the ordered queue
   */
  record Effect(long no, long row, long token, long began, boolean inOrder) {
    private double seconds() {
      return (System.nanoTime() - began) / 1e9;
    }
  }

  private record Asked(List<Effect> effects, CompletableFuture<@Nullable Void> written) {}

  /** Starts one that writes as somebody. */
  static EffectWriter start(String owner, DataSource connections) {
    EffectWriter writer = new EffectWriter(owner, connections);
    Thread thread = new Thread(writer::run, "chaos-effects");
    thread.setDaemon(true);
    thread.start();
    return writer;
  }

  /**
   * Writes effects, all or none. Waits for the answer whoever interrupts: one that was written must
   * not look as if it had failed.
   */
  void write(List<Effect> effects) throws SQLException {
    CompletableFuture<@Nullable Void> written = new CompletableFuture<>();
    asked.add(new Asked(effects, written));
    try {
      written.join();
    } catch (CompletionException e) {
      throw new SQLException("the effects were not written, as far as is known", e.getCause());
    }
  }

  private void run() {
    while (true) {
      List<Asked> group = new ArrayList<>();
      try {
        group.add(asked.take());
      } catch (InterruptedException e) {
        return; // nobody interrupts it
      }
      asked.drainTo(group);
      try (Connection connection = connections.getConnection()) {
        write(connection, owner, group.stream().flatMap(each -> each.effects().stream()).toList());
      } catch (SQLException | RuntimeException e) {
        group.forEach(each -> each.written().completeExceptionally(e));
        continue;
      }
      group.forEach(each -> each.written().complete(null));
    }
  }

  /** Writes in a transaction of somebody else's. */
  static void write(Connection connection, String owner, List<Effect> effects) throws SQLException {
    try (PreparedStatement insert = connection.prepareStatement(INSERT)) {
      insert.setString(1, owner);
      setArray(insert, 2, "int8", effects, Effect::no);
      setArray(insert, 3, "int8", effects, Effect::row);
      setArray(insert, 4, "int8", effects, Effect::token);
      setArray(insert, 5, "float8", effects, Effect::seconds);
      setArray(insert, 6, "bool", effects, Effect::inOrder);
      insert.executeUpdate();
    }
  }

  private static void setArray(
      PreparedStatement insert,
      int parameter,
      String type,
      List<Effect> effects,
      Function<Effect, Object> value)
      throws SQLException {
    insert.setArray(
        parameter,
        insert.getConnection().createArrayOf(type, effects.stream().map(value).toArray()));
  }
}
