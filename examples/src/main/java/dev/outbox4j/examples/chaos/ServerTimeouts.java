package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.Tally.Count;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The server's own time limits, as an operator may set them for all, and much too short. */
final class ServerTimeouts {
  private static final Map<String, String> SETTINGS = new LinkedHashMap<>();

  static {
    SETTINGS.put("statement_timeout", "10ms");
    SETTINGS.put("lock_timeout", "5ms");
    SETTINGS.put("idle_in_transaction_session_timeout", "200ms");
    SETTINGS.put("idle_session_timeout", "500ms");
  }

  private static final int TRIES = 50;

  private final Scene scene;

  ServerTimeouts(Scene scene) {
    this.scene = scene;
  }

  Episode run() throws IOException, InterruptedException, SQLException {
    Map<Count, Long> before = scene.fleet().tally();
    Evidence evidence = new Evidence();
    scene.deeds().act(this::setAll);
    try (Connection idle = Database.at(scene.server().port()).getConnection();
        Connection open = Database.at(scene.server().port()).getConnection();
        Connection holder = scene.direct().getConnection();
        Statement held = holder.createStatement()) {
      open.setAutoCommit(false);
      state(open, "select 1");
      holder.setAutoCommit(false);
      held.execute("lock table dead_letters_pattern");
      evidence.sign("lock_timeouts", timeouts("select from dead_letters_pattern", "55P03"));
      evidence.sign("statement_timeouts", timeouts("select pg_sleep(0.1)", "57014"));
      holder.rollback();
      Watch.pause(Fault.Length.LONG.time());
      evidence.sign(
          "sessions_ended_in_transaction", "25P03".equals(state(open, "select 1")) ? 1 : 0);
      evidence.sign("idle_sessions_ended", "57P05".equals(state(idle, "select 1")) ? 1 : 0);
    } finally {
      scene.deeds().act(this::resetAll);
    }
    Recovery recovery = scene.recovery();
    scene.addCounts(evidence, before, Count.STATEMENTS_CANCELLED, Count.LISTENS_LOST);
    return new Episode(recovery, evidence);
  }

  private void setAll() throws SQLException {
    for (Map.Entry<String, String> setting : SETTINGS.entrySet()) {
      scene.set(setting.getKey(), setting.getValue());
    }
  }

  private void resetAll() throws SQLException {
    for (String setting : SETTINGS.keySet()) {
      scene.reset(setting);
    }
  }

  /**
   * How often it is refused for that reason: once or never. Of two timeouts of a few milliseconds
   * either may come first on a busy machine, so it is tried more than once.
   */
  private long timeouts(String sql, String sqlState) throws SQLException {
    try (Connection connection = Database.at(scene.server().port()).getConnection()) {
      return Stream.generate(() -> state(connection, sql)).limit(TRIES).anyMatch(sqlState::equals)
          ? 1
          : 0;
    }
  }

  /** The state by which a statement is refused; null if it is not. */
  private static @Nullable String state(Connection connection, String sql) {
    try (Statement statement = connection.createStatement()) {
      statement.execute(sql);
      return null;
    } catch (SQLException refusal) {
      return refusal.getSQLState();
    }
  }
}
