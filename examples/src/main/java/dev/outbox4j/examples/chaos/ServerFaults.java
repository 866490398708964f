package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.Tally.Count;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;

/** Faults of the server and of its sessions. */
final class ServerFaults {
  private static final int LONGEST_DOWN_SECONDS = 3;
  private static final Duration LOOK_AGAIN = Duration.ofMillis(20);
  private static final String TOO_MANY_CONNECTIONS = "53300";

  /** By role, so that none is spared by chance; sessions for effects belong to the ledger. */
  private static final Map<String, String> ROLES =
      Map.of(
          "subscriber_sessions_ended", "application_name ~ '^s[0-9][.][0-9]+[boq]?$'",
          "handlers_transactions_ended",
              "application_name ~ '^s[0-9][.][0-9]+t$' and state <> 'idle'",
          "publisher_sessions_ended", "application_name ~ '^publisher-'",
          "listen_sessions_ended", "usename ~ '^listener'");

  /** All that subscribers and publishers need, features that they use included. */
  private static final List<String> TABLES =
      List.of(
          "outbox",
          "outbox_sleepers",
          "outbox_dlq",
          "outbox_buckets",
          "outbox_bucket_owners",
          "outbox_pauses",
          "outbox_slots");

  private final Scene scene;

  ServerFaults(Scene scene) {
    this.scene = scene;
  }

  Episode terminateConnections() throws IOException, InterruptedException, SQLException {
    Map<Count, Long> before = scene.fleet().tally();
    Evidence evidence = new Evidence();
    Map<String, Long> ended = new TreeMap<>();
    for (int i = 0; i < 5; i++) {
      for (Map.Entry<String, String> role : ROLES.entrySet()) {
        ended.merge(role.getKey(), terminateTwo(role.getValue()), Long::sum);
      }
      long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(1);
      while (System.nanoTime() < until) {
        Watch.pause(LOOK_AGAIN);
        for (String role : ROLES.keySet()) {
          if (ended.getOrDefault(role, 0L) == 0) { // its sessions may be there for moments only
            ended.merge(role, terminateTwo(ROLES.get(role)), Long::sum);
          }
        }
      }
    }
    ended.forEach(evidence::sign);
    Recovery recovery = scene.recovery();
    scene.addCounts(evidence, before, Count.STATEMENTS_FAILED, Count.LISTENS_LOST);
    return new Episode(recovery, evidence);
  }

  private long terminateTwo(String whose) throws SQLException {
    return scene
        .deeds()
        .texts(
            "select pid::text from (select pid from pg_stat_activity where "
                + whose
                + " order by random() limit 2) x where pg_terminate_backend(pid)")
        .size();
  }

  Episode crash() throws IOException, InterruptedException, SQLException {
    Map<Count, Long> before = scene.fleet().tally();
    String started = started();
    scene.deeds().act(scene.server()::crash);
    Watch.pause(Duration.ofSeconds(scene.random().nextInt(LONGEST_DOWN_SECONDS)));
    scene.deeds().act(scene.server()::startAgain);
    Recovery recovery = scene.recovery();
    scene.report().recoveryAfterServer(recovery.seconds());
    Evidence evidence = new Evidence().sign("servers_started", started().equals(started) ? 0 : 1);
    scene.addCounts(evidence, before, Count.STATEMENTS_FAILED, Count.LISTENS_LOST);
    return new Episode(recovery, evidence);
  }

  /** It comes back behind another port; those who look for its name find it there. */
  Episode move() throws IOException, InterruptedException, SQLException {
    Map<Count, Long> before = scene.fleet().tally();
    int port = scene.server().port();
    scene.deeds().act(scene.server()::shutDown);
    scene.deeds().act(scene.server()::moveToOtherPort);
    scene.deeds().act(scene.server()::startAgain);
    Recovery recovery = scene.recovery();
    scene.report().recoveryAfterServer(recovery.seconds());
    Evidence evidence = new Evidence().sign("ports_changed", scene.server().port() == port ? 0 : 1);
    scene.addCounts(evidence, before, Count.STATEMENTS_FAILED, Count.LISTENS_LOST);
    return new Episode(recovery, evidence);
  }

  /** The server ends all other sessions then, and recovers. */
  Episode killBackend() throws IOException, InterruptedException, SQLException {
    Map<Count, Long> before = scene.fleet().tally();
    List<String> pids =
        scene.texts(
            "select pid::text from pg_stat_activity where application_name ~ '^s[0-9][.][0-9]+$'"
                + " order by random()");
    if (!pids.isEmpty()) {
      long pid = Long.parseLong(pids.get(0));
      scene.deeds().act(() -> Signals.send("KILL", pid, "a backend"));
    }
    scene.deeds().act(scene.server()::forgetConnections);
    Recovery recovery = scene.recovery();
    long left =
        scene.number(
            "select count(*) from pg_stat_activity where pid = any(?::int[])",
            "{" + String.join(",", pids) + "}");
    Evidence evidence =
        new Evidence()
            .sign("sessions_ended", pids.size() - left)
            .countersign("sessions_left", left);
    scene.addCounts(evidence, before, Count.STATEMENTS_FAILED, Count.LISTENS_LOST);
    return new Episode(recovery, evidence);
  }

  /** One after the other, as a migration does. */
  Episode lockTables() throws IOException, InterruptedException, SQLException {
    Map<Count, Long> before = scene.fleet().tally();
    Evidence evidence = new Evidence();
    for (String table : TABLES) {
      try (Connection connection = scene.direct().getConnection();
          Statement statement = connection.createStatement()) {
        connection.setAutoCommit(false);
        scene.deeds().act(() -> scene.alone(() -> statement.execute("lock table " + table)));
        String from = scene.watch().now();
        Watch.pause(scene.settings().tableLock());
        evidence.sign(
            "locks_on_" + table,
            scene.number(
                "select count(*) from pg_locks where granted and mode = 'AccessExclusiveLock'"
                    + " and relation = to_regclass(?)",
                table));
        if (table.equals("outbox")) {
          evidence.countersign(
              "deletions_meanwhile", scene.deletionsBetween(from, scene.watch().now()));
        }
        connection.rollback();
      }
    }
    Recovery recovery = scene.recovery();
    scene.addCounts(evidence, before, Count.STATEMENTS_FAILED);
    return new Episode(recovery, evidence);
  }

  /** Every connection the server has is taken, and those of the subscribers end. */
  Episode exhaustSlots() throws IOException, InterruptedException, SQLException {
    Map<Count, Long> before = scene.fleet().tally();
    Evidence evidence = new Evidence();
    List<Connection> taken = new ArrayList<>();
    try {
      scene.deeds().act(() -> evidence.sign("connections_refused", takeAll(taken)));
      for (String whose : ROLES.values()) {
        terminateTwo(whose);
        scene.deeds().act(() -> takeAll(taken));
      }
      Watch.pause(Fault.Length.USUAL.time());
    } finally {
      for (Connection connection : taken) {
        connection.close();
      }
    }
    evidence.sign("connections_taken", taken.size());
    Recovery recovery = scene.recovery();
    scene.addCounts(evidence, before, Count.STATEMENTS_FAILED);
    return new Episode(recovery, evidence);
  }

  /** Takes connections until the server refuses one; tells that it did for want of slots. */
  private long takeAll(List<Connection> taken) throws SQLException {
    DataSource server = Database.at(scene.server().port());
    while (true) {
      try {
        taken.add(server.getConnection());
      } catch (SQLException refused) {
        return TOO_MANY_CONNECTIONS.equals(refused.getSQLState()) ? 1 : 0;
      }
    }
  }

  private String started() throws SQLException {
    return scene.texts("select pg_postmaster_start_time()::text").get(0);
  }
}
