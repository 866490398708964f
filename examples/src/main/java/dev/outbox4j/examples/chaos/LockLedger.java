package dev.outbox4j.examples.chaos;

import java.io.BufferedWriter;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import javax.sql.DataSource;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;
import org.postgresql.copy.PGCopyOutputStream;

/**
 * Who held a lock when, by the server; when processes believed to hold it; and what was written by
 * whom. A trigger writes the first, so it does not rest on what the library says of itself.
 */
final class LockLedger {
  private static final List<String> TABLES =
      List.of(
          """
          create table held (
            token bigint primary key, process text, acquired timestamptz, until timestamptz,
            released timestamptz)""",
          "create table believed (token bigint, at timestamptz)",
          "create table refused (token bigint, at timestamptz)",
          """
          create table written (
            id bigint generated always as identity, token bigint, at timestamptz default
            clock_timestamp())""",
          "create table summed (n bigint)",
          "insert into summed values (0)",
          "create table fenced (fence bigint)",
          "insert into fenced values (0)",
          """
          create function note_lock() returns trigger language plpgsql as $$
          begin
            if tg_op = 'INSERT' or new.token <> old.token then
              insert into held (token, process, acquired, until)
              values (new.token, current_setting('application_name'), clock_timestamp(),
                new.held_until);
            elsif new.owner is null then
              update held set released = clock_timestamp() where token = new.token;
            else
              update held set until = new.held_until where token = new.token;
            end if;
            return null;
          end $$""",
          """
          create trigger note_lock after insert or update on outbox_lock
            for each row execute function note_lock()""");

  /** Of a lock that is held, the end is when it was released, or else when its lease is over. */
  private static final String END = "coalesce(h.released, h.until)";

  private final DataSource direct;

  LockLedger(DataSource direct) {
    this.direct = direct;
  }

  void create() throws SQLException {
    Database.transaction(direct, TABLES);
  }

  /** Takes in what processes have left in files: {@code done} is belief, {@code failed} refusal. */
  void load(Path directory) throws IOException, SQLException {
    load(directory, RunLog.DONE, "believed");
    load(directory, RunLog.FAILED, "refused");
  }

  private void load(Path directory, String kind, String table) throws IOException, SQLException {
    try (Connection connection = direct.getConnection();
        Statement statement = connection.createStatement()) {
      connection.setAutoCommit(false);
      statement.execute("create temporary table loaded (token bigint, at bigint) on commit drop");
      CopyManager copy = connection.unwrap(PGConnection.class).getCopyAPI();
      try (Writer out =
          new BufferedWriter(
              new OutputStreamWriter(
                  new PGCopyOutputStream(copy.copyIn("copy loaded from stdin")),
                  StandardCharsets.UTF_8))) {
        RunLog.read(
            directory,
            kind,
            (process, run) -> out.write("%d\t%d%n".formatted(run.token(), run.began())));
      }
      statement.execute(
          "insert into "
              + table
              + " select token, timestamptz 'epoch' + at * interval '1 microsecond' from loaded");
      connection.commit();
    }
  }

  /** The process that has the lock; empty if none has. */
  String holder() throws SQLException {
    return Database.texts(
            direct,
            "select coalesce((select case when released is null and until > clock_timestamp()"
                + " then process end from held order by token desc limit 1), '')")
        .get(0);
  }

  long acquisitions() throws SQLException {
    return Database.number(direct, "select count(*) from held");
  }

  long renewed() throws SQLException {
    return Database.number(
        direct, "select count(*) from held h where h.until > h.acquired + interval '16 seconds'");
  }

  long beliefs() throws SQLException {
    return Database.number(direct, "select count(*) from believed");
  }

  long writes() throws SQLException {
    return Database.number(direct, "select count(*) from written");
  }

  long refused() throws SQLException {
    return Database.number(direct, "select count(*) from refused");
  }

  /** Acquisitions before the one before had ended. */
  long twoHolders() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from (select h.acquired, lag("
            + END
            + ") over (order by h.token) as ended from held h) a where a.acquired < a.ended");
  }

  /** Acquisitions whose token is not above that of the one before. */
  long tokensNotGrowing() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from (select h.token, lag(h.token) over (order by h.acquired, h.token) as"
            + " before from held h) a where a.token <= a.before");
  }

  /** Times at which a process took the lock for its own and another's acquisition was in force. */
  long beliefsBesideAnother() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from believed b where exists (select from held h where h.token <> b.token"
            + " and h.acquired <= b.at and b.at < "
            + END
            + ")");
  }

  /** Times at which a process took the lock for its own and its acquisition was not in force. */
  long beliefsWithoutTheLock() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from believed b where not exists (select from held h where"
            + " h.token = b.token and b.at <= "
            + END
            + ")");
  }

  /** Guarded writes that were committed behind one by a greater token. */
  long writesOutOfTurn() throws SQLException {
    return Database.number(
        direct,
        "select count(*) from (select token, lag(token) over (order by id) as before from written)"
            + " w where w.token < w.before");
  }

  /** How many guarded writes the sum lacks, each of which read it and wrote one more. */
  long lostWrites() throws SQLException {
    return Database.number(
        direct, "select abs((select count(*) from written) - (select n from summed))");
  }

  /** The longest time from the end of a lease that nobody released to the next acquisition. */
  Duration longestVacancy() throws SQLException {
    return Duration.ofMillis(
        Database.number(
            direct,
            """
            select coalesce(max(extract(epoch from n.acquired - h.until) * 1000), 0)::bigint
            from held h
            join lateral (
              select l.acquired from held l where l.token > h.token order by l.token limit 1) n
              on true
            where h.released is null"""));
  }
}
