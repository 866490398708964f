package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.Deeds.Deed;
import dev.outbox4j.examples.chaos.Tally.Count;
import dev.outbox4j.examples.chaos.Watch.Since;
import java.io.IOException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Random;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** What faults are done to, and what their effects are read from. */
record Scene(
    Server server,
    FaultyProxy network,
    FaultyProxy listenNetwork,
    @Nullable Pooler pooler,
    Fleet fleet,
    Ledger ledger,
    LedgerSchema schema,
    Watch watch,
    Report report,
    Deeds deeds,
    Random random,
    Settings settings) {

  /**
   * The bounds and the pace of a run.
   *
   * @param late from when on a message is late that a notification should bring
   */
  record Settings(
      Duration lease,
      Duration deadLetterOutage,
      Duration tableLock,
      Duration listenCut,
      Duration horizon,
      Duration late,
      int rate) {}

  /** What a transaction takes on a busy machine. */
  private static final Duration BRIEF = Duration.ofSeconds(2);

  /** Processes tell what they counted twice a second. */
  private static final Duration TIME_TO_TELL = Duration.ofSeconds(2);

  DataSource direct() {
    return server.direct();
  }

  /** Waits until a message is handled again and all are well. */
  Recovery recovery() {
    Since healed = watch.since();
    return new Recovery(watch.untilHandled(healed), watch.untilAllAreWell(healed));
  }

  /**
   * Does what needs a table for itself. Such a lock waits for each open transaction, and all others
   * wait behind it: so those that stay open end before.
   */
  void alone(Deed deed) throws IOException, InterruptedException, SQLException {
    fleet.orderPublishers(Orders.BRIEF_TRANSACTIONS);
    try {
      watch.until(
          () ->
              number(
                      "select count(*) from pg_stat_activity where application_name ~ '^publisher-'"
                          + " and clock_timestamp() - xact_start > make_interval(secs => ?)",
                      BRIEF.toSeconds())
                  == 0,
          "long transactions to end",
          watch.since());
      deed.run();
    } finally {
      fleet.orderPublishers(Orders.AS_USUAL);
    }
  }

  void update(String sql) throws SQLException {
    Database.update(direct(), sql);
  }

  /** Sets a setting of the server for all sessions. */
  void set(String setting, String value) throws SQLException {
    update("alter system set " + setting + " = '" + value + "'");
    reload();
  }

  void reset(String setting) throws SQLException {
    update("alter system reset " + setting);
    reload();
  }

  private void reload() throws SQLException {
    texts("select pg_reload_conf()::text");
  }

  long number(String sql, Object... parameters) throws SQLException {
    return Database.number(direct(), sql, parameters);
  }

  List<String> texts(String sql, Object... parameters) throws SQLException {
    return Database.texts(direct(), sql, parameters);
  }

  /** How many outbox rows were deleted meanwhile: none, if no statement comes through. */
  long deletionsBetween(String from, String to) throws SQLException {
    return number(
        "select count(*) from deleted where at > ?::timestamptz and at < ?::timestamptz", from, to);
  }

  /** Adds what the subscribers counted since then as signs; gives them time to tell. */
  void addCounts(Evidence evidence, Map<Count, Long> before, Count... counts) throws IOException {
    long until = System.nanoTime() + TIME_TO_TELL.toNanos();
    while (!allGrew(before, counts) && System.nanoTime() < until) {
      Watch.pause(Duration.ofMillis(50));
    }
    Map<Count, Long> now = fleet.tally();
    for (Count count : counts) {
      evidence.sign(count.label(), now.getOrDefault(count, 0L) - before.getOrDefault(count, 0L));
    }
  }

  private boolean allGrew(Map<Count, Long> before, Count... counts) throws IOException {
    Map<Count, Long> now = fleet.tally();
    for (Count count : counts) {
      if (now.getOrDefault(count, 0L) <= before.getOrDefault(count, 0L)) {
        return false;
      }
    }
    return true;
  }
}
