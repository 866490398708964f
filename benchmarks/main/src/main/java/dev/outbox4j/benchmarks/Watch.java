package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Notifications;
import dev.outbox4j.benchmarks.spi.Numbers;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * What the server sees of a measured stretch: WAL, updates, dead rows, sizes, connections, its
 * processes' time, and notifications if they are asked for.
 */
final class Watch implements AutoCloseable {
  private static final String TABLES =
      "select coalesce(sum(n_tup_upd), 0), coalesce(sum(n_tup_hot_upd), 0),"
          + " coalesce(sum(n_dead_tup), 0) from pg_stat_user_tables";
  private static final String CONTESTANTS =
      "select pid from pg_stat_activity where datname = current_database()"
          + " and application_name = 'contestant'";
  private static final String SIZES =
      "select coalesce(sum(pg_table_size(oid)), 0), coalesce(sum(pg_indexes_size(oid)), 0)"
          + " from pg_class where relkind = 'r' and relnamespace in (select oid from pg_namespace"
          + " where nspname !~ '^pg_' and nspname <> 'information_schema')";

  private final Connection connection;
  private final Connection sampling;
  private final Thread sampler;
  private final double wal;
  private final ServerCpu cpu;
  private final double cpuBefore;
  private final double sessionsCpuBefore;
  private final @Nullable Notifications notifications;
  private final double updates;
  private final double hotUpdates;
  private volatile boolean running = true;
  private volatile int peak;

  Watch(Server server, String database) throws SQLException {
    this(server, database, null);
  }

  /** Counts the notifications of a channel, too. */
  Watch(Server server, String database, @Nullable String channel) throws SQLException {
    connection = server.connect(database);
    sampling = server.connect(database);
    double[] tables = row(connection, TABLES, 3);
    updates = tables[0];
    hotUpdates = tables[1];
    wal = wal();
    notifications = channel == null ? null : new Notifications(server.connect(database), channel);
    cpu = ServerCpu.of((long) row(connection, "select pg_backend_pid()", 1)[0]);
    cpuBefore = cpu.seconds();
    sessionsCpuBefore = sessionsCpu();
    sampler = new Thread(this::sample, "connection-sampler");
    sampler.setDaemon(true);
    sampler.start();
  }

  private void sample() {
    while (running) {
      try {
        double now =
            row(
                sampling,
                "select count(*) from pg_stat_activity where datname = current_database()"
                    + " and backend_type = 'client backend' and application_name <> 'harness'",
                1)[0];
        peak = Math.max(peak, (int) now);
      } catch (SQLException e) {
        // the database is gone, and so is what was to be sampled
        running = false;
      }
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(200));
    }
  }

  /** Adds what the contestant's sessions used since, while they last; not autovacuum. */
  void readSessions(Numbers into, double messages) throws SQLException {
    double used = sessionsCpu() - sessionsCpuBefore;
    if (Double.isFinite(cpuBefore)) {
      into.with("sessions_cpu_us_per_message", used * 1e6 / Math.max(1, messages));
    }
  }

  private double sessionsCpu() throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery(CONTESTANTS)) {
      double seconds = 0;
      while (row.next()) {
        seconds += cpu.seconds(row.getLong(1));
      }
      return seconds;
    }
  }

  private double wal() throws SQLException {
    return row(connection, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')", 1)[0];
  }

  /** Adds what happened since; call it when the contestant's connections are closed. */
  Numbers read(Numbers into, double messages) throws SQLException {
    running = false;
    double each = Math.max(1, messages);
    double used = cpu.seconds() - cpuBefore;
    if (Double.isFinite(used)) {
      into.with("server_cpu_us_per_message", used * 1e6 / each);
    }
    if (notifications != null) {
      into.with("notifications_per_message", notifications.all() / each);
    }
    into.with("wal_bytes_per_message", (wal() - wal) / each);
    double[] tables = row(connection, TABLES, 3);
    double updated = tables[0] - updates;
    if (updated > 0) {
      into.with("hot_share", (tables[1] - hotUpdates) / updated);
    }
    double[] sizes = row(connection, SIZES, 2);
    return into.with("dead_tuples", tables[2])
        .with("tables_mib", sizes[0] / (1 << 20))
        .with("indexes_mib", sizes[1] / (1 << 20))
        .with("connections_peak", peak);
  }

  private static double[] row(Connection connection, String sql, int columns) throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery(sql)) {
      row.next();
      double[] values = new double[columns];
      for (int i = 0; i < columns; i++) {
        values[i] = row.getDouble(i + 1);
      }
      return values;
    }
  }

  @Override
  public void close() throws SQLException {
    running = false;
    try (connection;
        sampling;
        notifications) {
      sampler.join(1000);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
