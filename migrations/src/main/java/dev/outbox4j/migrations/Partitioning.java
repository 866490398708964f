package dev.outbox4j.migrations;

import dev.outbox4j.OutboxException;
import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.internal.schema.PassingCheck;
import dev.outbox4j.internal.schema.Period;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;

/**
 * Partitions a dead-letter table while it is written to, and makes it a plain one again. Each step
 * is one execution and one transaction, so that no lock outlives its statement, whatever becomes of
 * this process; and whoever calls again goes on from what is there.
 */
final class Partitioning {
  private static final int ATTEMPTS = 60;
  private static final long LONGEST_PAUSE_MILLIS = 2_000;

  /** A lock that was not had in time, a statement that took too long, and lost races. */
  private static final Set<String> OF_THE_MOMENT = Set.of("55P03", "57014", "40001", "40P01");

  private static final String TOO_LONG = "57014";

  /**
   * How often a statement may take too long: writers wait for as long, and what the server has to
   * read for it does not get less.
   */
  private static final int MOST_TOO_LONG = 5;

  /** Of a statement without a limit, which only a person cancels, who does not want it again. */
  private static final Set<String> UNLESS_CANCELLED = Set.of("55P03", "40001", "40P01");

  /** Writers wait as long as the lock is waited for, and as long as the statement takes. */
  private static final String SHORT_LOCKS = limits("50ms", "2s");

  /** Nobody waits behind it. */
  private static final String UNHURRIED = limits("10s", "0");

  private final Connection connection;
  private final DeadLetterMigrations letters;

  private Partitioning(Connection connection, DeadLetterMigrations letters) {
    this.connection = connection;
    this.letters = letters;
  }

  private interface Work {
    boolean on(Partitioning partitioning) throws SQLException;
  }

  /** Partitions the table; false if it was already. */
  static boolean partition(DataSource dataSource, DeadLetterMigrations letters, Period period) {
    return run(dataSource, letters, partitioning -> partitioning.partition(period));
  }

  /** Makes the table a plain one; false if it was already. */
  static boolean unpartition(DataSource dataSource, DeadLetterMigrations letters) {
    return run(dataSource, letters, Partitioning::unpartition);
  }

  private static boolean run(DataSource dataSource, DeadLetterMigrations letters, Work work) {
    try (Connection connection = dataSource.getConnection()) {
      boolean autoCommit = connection.getAutoCommit();
      connection.setAutoCommit(true);
      try {
        return work.on(new Partitioning(connection, letters));
      } finally {
        if (!autoCommit && !connection.isClosed()) {
          connection.setAutoCommit(false);
        }
      }
    } catch (SQLException e) {
      throw new OutboxException(
          "The partitions of dead-letter table '%s' could not be changed: %s"
              .formatted(letters.table(), e.getMessage()),
          e);
    }
  }

  /** The SQL that partitions, for a table with a boundary that the server reckons. */
  static String sql(DeadLetterMigrations letters, Period period) {
    return sql(
        letters,
        period,
        "(date_trunc('%s', now() at time zone 'UTC') + interval '2 %ss') at time zone 'UTC'"
            .formatted(period.unit(), period.unit()));
  }

  private static String sql(DeadLetterMigrations letters, Period period, String until) {
    Map<String, String> placeholders = new HashMap<>(letters.placeholders());
    placeholders.put("outbox_dlq_unit", period.unit());
    placeholders.put("outbox_dlq_until", until);
    return Scripts.PARTITION.sql(0, 1, placeholders);
  }

  static String plainSql(DeadLetterMigrations letters) {
    return Scripts.UNPARTITION.sql(0, 1, letters.placeholders());
  }

  private boolean partition(Period period) throws SQLException {
    State state = state();
    if (state.partitioned()) {
      requireSame(period, state);
      return false;
    }
    Instant end = // a whole period to spare
        Period.midnight(period.after(period.firstDay(state.now()), 2));
    String until = Period.literal(end);
    String constraint = Names.quoted(Names.deadLetterUntil(letters.table()));
    String function = Names.qualified(letters.schema(), Names.deadLetterUntil(letters.table()));
    try {
      patiently(
          SHORT_LOCKS
              + ofPlain(
                  hasConstraint(until),
                  PassingCheck.add(name(), function, constraint, "failed_at < " + until, end),
                  "comment on constraint %s on %s is %s;"
                      .formatted(constraint, name(), Names.literal(until))));
      patiently(
          UNHURRIED + "alter table %s validate constraint %s".formatted(name(), constraint),
          UNLESS_CANCELLED);
      patiently(SHORT_LOCKS + sql(letters, period, until));
    } catch (SQLException | OutboxException e) {
      String drop = PassingCheck.drop(name(), function, constraint);
      if (!withdrawn(SHORT_LOCKS + ofPlain("false", drop), e)) {
        requireSame(period, state());
        return false; // somebody else was faster
      }
      throw e;
    }
    requireSame(period, state());
    return true;
  }

  /**
   * Whether somebody else has added the constraint, and may have validated it: it is not to be
   * added anew then, or the letters would be read in the last step, which keeps writers out.
   */
  private String hasConstraint(String until) {
    return """
        exists (
          select from pg_catalog.pg_constraint k
          where k.conrelid = %s::regclass and k.conname = %s
            and pg_catalog.obj_description(k.oid, 'pg_constraint') = %s)"""
        .formatted(
            Names.literal(name()),
            Names.literal(Names.deadLetterUntil(letters.table())),
            Names.literal(until));
  }

  /** Statements on the table, unless they are done, or somebody else has partitioned it. */
  private String ofPlain(String done, String... statements) {
    return """
        do $outbox4j$
        begin
          if {done} then
            return;
          end if;
          lock table only {table} in access exclusive mode;
          if (select c.relkind from pg_catalog.pg_class c where c.oid = {literal}::regclass) = 'r' then
            {statements}
          end if;
        end
        $outbox4j$"""
        .replace("{done}", done)
        .replace("{table}", name())
        .replace("{literal}", Names.literal(name()))
        .replace("{statements}", String.join("\n    ", statements));
  }

  /** Takes the constraint back; false if somebody else has partitioned the table. */
  private boolean withdrawn(String drop, Exception failure) throws SQLException {
    try {
      if (state().partitioned()) {
        return false;
      }
      patiently(drop);
    } catch (SQLException | OutboxException e) {
      failure.addSuppressed(e);
    }
    return true;
  }

  private void requireSame(Period period, State state) {
    if (!state.comment().contains(period.phrase())) {
      throw new OutboxException(
          "Dead-letter table '%s' is not %s, by its comment '%s'; give its own interval, or change the comment"
              .formatted(letters.table(), period.phrase(), state.comment()));
    }
  }

  private boolean unpartition() throws SQLException {
    if (!state().partitioned()) {
      return false;
    }
    patiently(limits("50ms", "0") + plainSql(letters), UNLESS_CANCELLED);
    return true;
  }

  private record State(boolean partitioned, String comment, Instant now) {}

  private State state() throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet row =
            statement.executeQuery(
                """
                select c.relkind = 'p', coalesce(obj_description(c.oid, 'pg_class'), ''), now()
                from pg_catalog.pg_class c where c.oid = %s::regclass
                """
                    .formatted(Names.literal(name())))) {
      row.next();
      return new State(
          row.getBoolean(1), row.getString(2), row.getObject(3, OffsetDateTime.class).toInstant());
    }
  }

  private String name() {
    return Names.qualified(letters.schema(), letters.table());
  }

  /** Each statement of a block sees what was committed before its lock was had. */
  private static String limits(String lock, String statement) {
    return """
        set transaction_isolation = 'read committed';
        select set_config('lock_timeout', '%s', true), set_config('statement_timeout', '%s', true);
        """
        .formatted(lock, statement);
  }

  private void patiently(String sql) throws SQLException {
    patiently(sql, OF_THE_MOMENT);
  }

  /** Others go first between the attempts, so that none waits longer than one of them. */
  private void patiently(String sql, Set<String> ofTheMoment) throws SQLException {
    long pause = 100;
    int tooLong = 0;
    for (int attempt = 1; ; attempt++) {
      try (Statement statement = connection.createStatement()) {
        statement.execute(sql);
        return;
      } catch (SQLException e) {
        if (TOO_LONG.equals(e.getSQLState())) {
          tooLong++;
        }
        if (attempt == ATTEMPTS
            || tooLong == MOST_TOO_LONG
            || !ofTheMoment.contains(Optional.ofNullable(e.getSQLState()).orElse(""))) {
          throw e;
        }
      }
      try {
        TimeUnit.MILLISECONDS.sleep(pause);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new OutboxException("Interrupted while waiting for a lock on " + name(), e);
      }
      pause = Math.min(LONGEST_PAUSE_MILLIS, pause * 2);
    }
  }
}
