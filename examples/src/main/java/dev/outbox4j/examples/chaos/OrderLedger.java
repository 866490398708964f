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
 * What the {@link OrderProof} reads from the ledger: beside the effects it has the runs that
 * failed, so that it knows of each key what ran after what. Times and numbers are those of the
 * server, so runs of several processes compare: {@code nth} counts their ends.
 */
final class OrderLedger {
  /** The place of a message in its key, of each run, and the run of the key before it. */
  private static final String STEPS =
      """
      with places as (
        select no, key, due_at, row_number() over (partition by key order by outbox_id) as place
        from committed
      ), runs as (
        select no, owner, began, at, nth, true as done from handled
        union all select no, owner, began, at, nth, false from failed
      ), steps as (
        select p.key, p.place, p.due_at, r.*,
          lag(p.place) over w as place_before, lag(r.done) over w as done_before,
          lag(r.owner) over w as owner_before, lag(r.at) over w as at_before,
          max(r.at) over (partition by p.key order by r.nth
            rows between unbounded preceding and 1 preceding) as latest_before
        from runs r join places p using (no)
        window w as (partition by p.key order by r.nth)
      )
      """;

  /** Whether a message may come again: whoever had the run before was killed since. */
  private static final String AFTER_A_KILL =
      """
      exists (
        select from faults f where f.owner = s.owner_before
          and f.hit_to >= s.at_before and f.hit_from <= s.began)""";

  private static final String LOAD =
      """
      with numbered as (
        select *, row_number() over (order by ended, began) as nth,
          timestamptz 'epoch' + began * interval '1 us' as began_at,
          timestamptz 'epoch' + ended * interval '1 us' as ended_at
        from runs
      ), failures as (
        insert into failed (no, owner, began, at, nth)
        select no, owner, began_at, ended_at, nth from numbered where not done
      )
      insert into handled (no, outbox_id, token, owner, began, at, in_order, nth)
      select no, outbox_id, token, owner, began_at, ended_at, true, nth from numbered where done
      """;

  private final DataSource direct;

  OrderLedger(DataSource direct) {
    this.direct = direct;
  }

  /** Adds the table of failed runs, and that of the buckets whose owner was killed. */
  void create() throws SQLException {
    Database.transaction(
        direct,
        List.of(
            "create table failed (no bigint not null, owner text not null,"
                + " began timestamptz not null, at timestamptz not null, nth bigint not null)",
            "create table orphaned (bucket bigint not null, at timestamptz not null)"));
  }

  /**
   * Takes what the processes have written into the ledger, in the order of the ends of the runs.
   */
  void load(Path directory) throws IOException, SQLException {
    try (Connection connection = direct.getConnection();
        Statement statement = connection.createStatement()) {
      connection.setAutoCommit(false);
      statement.execute(
          "create temporary table runs (done boolean, owner text, no bigint, outbox_id bigint,"
              + " token bigint, began bigint, ended bigint) on commit drop");
      CopyManager copy = connection.unwrap(PGConnection.class).getCopyAPI();
      try (Writer out =
          new BufferedWriter(
              new OutputStreamWriter(
                  new PGCopyOutputStream(copy.copyIn("copy runs from stdin")),
                  StandardCharsets.UTF_8))) {
        copy(directory, RunLog.DONE, true, out);
        copy(directory, RunLog.FAILED, false, out);
      }
      statement.execute(LOAD);
      connection.commit();
    }
  }

  private static void copy(Path directory, String kind, boolean done, Writer out)
      throws IOException {
    RunLog.read(
        directory,
        kind,
        (process, run) ->
            out.write(
                "%s\t%s\t%d\t%d\t%d\t%d\t%d%n"
                    .formatted(
                        done,
                        process,
                        run.no(),
                        run.row(),
                        run.token(),
                        run.began(),
                        run.ended())));
  }

  /** Notes which buckets a process owned that has just been killed, and returns how many. */
  int orphan(String owner) throws SQLException {
    return Database.update(
        direct,
        "insert into orphaned select bucket, clock_timestamp() from outbox_buckets"
            + " where split_part(owner, '/', 1) = ?",
        owner);
  }

  long failedRuns() throws SQLException {
    return Database.number(direct, "select count(*) from failed");
  }

  long keys() throws SQLException {
    return Database.number(direct, "select count(distinct key) from committed");
  }

  /**
   * Runs that do not follow from the run of their key before them: after a message that was done
   * comes the next one, after one that failed the same again, and an earlier one only after the
   * owner was killed. The first run of a key is of its first message.
   */
  long outOfTurn() throws SQLException {
    return Database.number(
        direct,
        STEPS
            + """
            select count(*) from steps s where case
              when place_before is null then place <> 1
              when place = place_before + done_before::int then false
              else place > place_before or not %s end"""
                .formatted(AFTER_A_KILL));
  }

  /** Runs that began before another of their key had ended. */
  long besideAnother() throws SQLException {
    return Database.number(
        direct, STEPS + "select count(*) from steps where began < latest_before");
  }

  /** Effects of messages that had one. */
  long repeated() throws SQLException {
    return Database.number(direct, "select count(*) - count(distinct no) from handled");
  }

  /**
   * The longest time for which a key had a message that was ready, and none of it ran: since the
   * run before, since the message was published, or since the owner of the key was killed,
   * whichever came last: where two owners in a row are killed, each is waited for. A message that
   * failed is ready when its retry is due.
   */
  Duration longestStandstill(Duration retryDelay) throws SQLException {
    return Duration.ofMillis(
        Database.number(
            direct,
            standstills("coalesce(ceil(max(1000 * extract(epoch from began - ready))), 0)"),
            seconds(retryDelay)));
  }

  /** How many times a key stood still for longer than this. */
  long standstillsLongerThan(Duration time, Duration retryDelay) throws SQLException {
    return Database.number(
        direct,
        standstills("count(*)") + " where extract(epoch from began - ready) > ?",
        seconds(retryDelay),
        seconds(time));
  }

  /** The longest of them, for people: which key, since when, for how long, and who ran it. */
  List<String> worstStandstills(Duration retryDelay) throws SQLException {
    return Database.texts(
        direct,
        standstills(
                "concat_ws(' ', 'key', key, 'of', owner_before, 'stood still from', ready::time,"
                    + " 'for', began - ready, 'until', owner, 'ran number', place)")
            + " order by began - ready desc limit 10",
        seconds(retryDelay));
  }

  private static String standstills(String figure) {
    return STEPS
        + """
        select %s from (
          select *, greatest(due_at, case when done_before then at_before
              else at_before + make_interval(secs => ?) end,
            (select max(k.at) from orphaned k
              where k.bucket = (hashtextextended(key, 0) & 63) and k.at < began)) as ready
          from steps) x"""
            .formatted(figure);
  }

  private static double seconds(Duration time) {
    return time.toMillis() / 1e3;
  }
}
