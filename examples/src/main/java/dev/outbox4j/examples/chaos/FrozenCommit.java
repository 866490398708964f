package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * Freezes a process in the middle of the commit of a check: it has written the instance, and not
 * its message yet. A lock of the message makes it wait there; when it is frozen the lock is let go
 * of, so that its transaction stands open on the server, with the instance's row.
 */
final class FrozenCommit {
  /** Messages that processes have; their commits come within milliseconds. */
  private static final String LOCKED =
      """
      select (o.headers ->> 'monitor-id')::bigint
      from outbox o
      where o.queue = 'monitors.proof' and o.lease_until > clock_timestamp()
      limit 50
      for update skip locked""";

  /** Who waits for a lock of a session, and has written an instance. */
  private static final String WAITING =
      """
      select a.pid, a.application_name
      from pg_stat_activity a
      where %d = any (pg_blocking_pids(a.pid)) and exists (
        select
        from pg_locks l
        where l.pid = a.pid and l.relation = 'outbox_monitor'::regclass
          and l.mode = 'RowExclusiveLock' and l.granted)
      limit 1""";

  private static final String STANDS_OPEN =
      "select count(*) from pg_stat_activity where pid = %d and state = 'idle in transaction'";

  private static final Duration LONGEST_LOOK = Duration.ofMillis(400);
  private static final Duration LONGEST_WAIT = Duration.ofSeconds(2);

  private final DataSource direct;
  private final MonitorLedger ledger;
  private final ProofProcesses processes;

  FrozenCommit(DataSource direct, MonitorLedger ledger, ProofProcesses processes) {
    this.direct = direct;
    this.ledger = ledger;
    this.processes = processes;
  }

  /** A session of a process on the server. */
  private record Session(long pid, String process) {}

  /**
   * Tries once.
   *
   * @return the slot of the process, which is frozen; none if no commit was met
   */
  OptionalInt tryOnce() throws IOException, InterruptedException, SQLException {
    try (Connection stranger = direct.getConnection();
        Connection looking = direct.getConnection();
        Statement look = looking.createStatement()) {
      stranger.setAutoCommit(false);
      List<Long> locked = lock(stranger);
      Session met = locked.isEmpty() ? null : met(stranger, look);
      OptionalInt slot = met == null ? OptionalInt.empty() : slot(met.process());
      if (slot.isPresent()) {
        long at = RunLog.now();
        processes.get(slot.getAsInt()).signal("STOP");
        ledger.hit(processes.get(slot.getAsInt()).name(), false, at);
      }
      ledger.hit(locked); // their commits have waited, too
      stranger.rollback(); // the statement goes on, and nobody hears its answer
      if (met == null || slot.isEmpty() || standsOpen(look, met)) {
        return slot;
      }
      processes.get(slot.getAsInt()).signal("CONT"); // it had waited for too long
      return OptionalInt.empty();
    }
  }

  private static List<Long> lock(Connection stranger) throws SQLException {
    List<Long> locked = new ArrayList<>();
    try (Statement statement = stranger.createStatement();
        ResultSet rows = statement.executeQuery(LOCKED)) {
      while (rows.next()) {
        locked.add(rows.getLong(1));
      }
    }
    return locked;
  }

  private static @Nullable Session met(Connection stranger, Statement look) throws SQLException {
    String asked;
    try (Statement statement = stranger.createStatement()) {
      asked = WAITING.formatted(number(statement, "select pg_backend_pid()"));
    }
    long until = System.nanoTime() + LONGEST_LOOK.toNanos();
    while (System.nanoTime() < until) {
      try (ResultSet rows = look.executeQuery(asked)) {
        if (rows.next()) {
          return new Session(rows.getLong(1), rows.getString(2));
        }
      }
    }
    return null;
  }

  private OptionalInt slot(String process) {
    for (int slot = 0; slot < processes.size(); slot++) {
      if (processes.get(slot).name().equals(process)) {
        return OptionalInt.of(slot);
      }
    }
    return OptionalInt.empty(); // a session of one that was killed
  }

  private static boolean standsOpen(Statement look, Session session) throws SQLException {
    String asked = STANDS_OPEN.formatted(session.pid());
    long until = System.nanoTime() + LONGEST_WAIT.toNanos();
    while (System.nanoTime() < until) {
      if (number(look, asked) > 0) {
        return true;
      }
    }
    return false;
  }

  private static long number(Statement statement, String sql) throws SQLException {
    try (ResultSet rows = statement.executeQuery(sql)) {
      rows.next();
      return rows.getLong(1);
    }
  }
}
