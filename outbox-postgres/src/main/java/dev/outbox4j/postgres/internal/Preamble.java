package dev.outbox4j.postgres.internal;

import dev.outbox4j.postgres.OutboxTable;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What comes before every statement of the library on the outbox, in the same execution and so in
 * the same implicit transaction: what it sets is gone with that, also behind a transaction pooler.
 * Thread-safe.
 *
 * <p>How a plan is held, whatever the statistics say of the table: the settings leave only walks of
 * an index and nested loops, and each text leaves only one index. {@code = any (array[x])} is one
 * probe of an index for each row, where a plain equality might become a walk of the whole index;
 * {@code (a = b) is true} is no index condition at all; the predicate of the claim index is true of
 * every row, and keeps writes, which do not name its column, off that index.
 */
public final class Preamble {
  private static final String READ_COMMITTED = "read committed";
  private static final String SERIALIZATION_FAILURE = "40001";

  /** For the server, of whatever the client waits for: it is to give up first. */
  private static final double SHARE_OF_NETWORK_TIMEOUT = 0.8;

  private static final Duration LONGEST_LOCK_WAIT = Duration.ofMillis(100);

  /** The instant is the one that the statements after it call now(). */
  static final String TEXT =
      """
      select now(),
        pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
        current_setting('transaction_isolation'),
        set_config('statement_timeout', :statement_timeout, true),
        set_config('lock_timeout', :lock_timeout, true),
        set_config('jit', 'off', true),
        set_config('plan_cache_mode', 'force_custom_plan', true),
        set_config('enable_seqscan', 'off', true),
        set_config('enable_bitmapscan', 'off', true),
        set_config('enable_sort', 'off', true),
        set_config('enable_hashjoin', 'off', true),
        set_config('enable_mergejoin', 'off', true);
      """;

  /**
   * A setting of the transaction, so that there is nothing to set back; no query may precede it.
   */
  static final String SET_READ_COMMITTED = "set transaction_isolation = 'read committed';\n";

  private final long statementMillis;
  private final String lockMillis;

  /** The pool's connections have another isolation. */
  private volatile boolean setsReadCommitted;

  /**
   * Creates a preamble.
   *
   * @param networkTimeout how long the client waits for an answer
   */
  public Preamble(Duration networkTimeout) {
    this.statementMillis =
        atLeastOne((long) (networkTimeout.toMillis() * SHARE_OF_NETWORK_TIMEOUT));
    this.lockMillis =
        String.valueOf(
            atLeastOne(Math.min(LONGEST_LOCK_WAIT.toMillis(), networkTimeout.toMillis() / 4)));
  }

  /**
   * Renders a text with the preamble before it.
   *
   * @param template statements, as {@link Sql#of} takes them
   * @param table the outbox
   * @return the text to {@link #run}
   */
  public static Sql before(String template, OutboxTable table) {
    return Sql.of(TEXT + template, table);
  }

  private static long atLeastOne(long millis) {
    return Math.max(1, millis); // zero would be no limit
  }

  /**
   * What the preamble told.
   *
   * @param now when the transaction began
   * @param oldest the oldest transaction that was open when the transaction looked first
   */
  public record Start(Instant now, long oldest) {}

  /**
   * Reads the results of an execution.
   *
   * @param <T> what it reads
   */
  @FunctionalInterface
  public interface Reader<T> {
    /**
     * Reads the results.
     *
     * @param start what the preamble told
     * @param results the results, of which the preamble's is the current one
     * @return what was read
     * @throws SQLException if it failed
     */
    T read(Start start, Results results) throws SQLException;
  }

  /**
   * Runs statements behind the preamble, as one execution.
   *
   * @param connection in autocommit mode
   * @param sql the statements, rendered by {@link #before}
   * @param values their parameters
   * @param timeLimit after which time the server ends them; null, or more than the client waits, is
   *     a little less than that
   * @param reader reads the results
   * @param <T> what it reads
   * @return the same
   * @throws SQLException if they failed
   */
  public <T> T run(
      Connection connection,
      Sql sql,
      Map<String, Object> values,
      @Nullable Duration timeLimit,
      Reader<T> reader)
      throws SQLException {
    boolean corrected = setsReadCommitted;
    Map<String, Object> all = new HashMap<>(values);
    all.put("statement_timeout", String.valueOf(statementMillis(timeLimit, sql.statements())));
    all.put("lock_timeout", lockMillis);
    try (PreparedStatement statement =
        connection.prepareStatement(corrected ? SET_READ_COMMITTED + sql.text() : sql.text())) {
      sql.bind(statement, all);
      Results results = Results.of(statement);
      if (corrected) {
        results.next();
      }
      return reader.read(start(results), results);
    } catch (SQLException e) {
      if (SERIALIZATION_FAILURE.equals(SqlFaults.state(e))) {
        setsReadCommitted = true;
      }
      throw e;
    }
  }

  private Start start(Results results) throws SQLException {
    try (ResultSet row = results.rows()) {
      row.next();
      if (!READ_COMMITTED.equals(row.getString(3))) {
        setsReadCommitted = true;
      }
      return new Start(ServerTime.read(row, 1), row.getLong(2));
    }
  }

  /** The server counts anew for each statement, and the client waits for all of them. */
  private long statementMillis(@Nullable Duration timeLimit, int statements) {
    long share = atLeastOne(statementMillis / Math.max(1, statements - 1));
    return timeLimit == null ? share : Math.min(share, atLeastOne(timeLimit.toMillis()));
  }
}
