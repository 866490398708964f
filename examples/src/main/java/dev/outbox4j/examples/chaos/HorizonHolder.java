package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import org.postgresql.PGConnection;

/**
 * A transaction that keeps its snapshot: no row that is deleted meanwhile can be removed, and
 * messages must flow on all the same.
 */
final class HorizonHolder {
  private static final double LEAST_SHARE = 0.8;

  private final Scene scene;

  HorizonHolder(Scene scene) {
    this.scene = scene;
  }

  Episode run() throws IOException, InterruptedException, SQLException {
    Evidence evidence = new Evidence();
    try (Connection connection = scene.direct().getConnection();
        Statement statement = connection.createStatement()) {
      connection.setAutoCommit(false);
      connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
      scene.deeds().act(() -> statement.execute("select count(*) from outbox"));
      String from = scene.watch().now();
      Watch.pause(scene.settings().horizon());
      String to = scene.watch().now();
      evidence.sign("transactions_held_back", heldBack(connection));
      double share = scene.ledger().shareHandled(from, to);
      scene.report().shareWithHeldHorizon(share);
      if (share < LEAST_SHARE) {
        scene
            .report()
            .breach(
                "while dead rows were held only %.2f of the messages were handled"
                    .formatted(share));
      }
      connection.rollback();
    }
    return new Episode(scene.recovery(), evidence);
  }

  /** How many transactions have begun since the one that it has a snapshot of, if it has one. */
  private long heldBack(Connection connection) throws SQLException {
    return scene.number(
        "select coalesce(max(age(backend_xmin)), 0) from pg_stat_activity where pid = ?",
        connection.unwrap(PGConnection.class).getBackendPID());
  }
}
