package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.Tally.Count;
import java.io.IOException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Map;

/** Faults of the server and of its sessions. */
final class ServerFaults {
  private static final int LONGEST_DOWN_SECONDS = 3;

  /** By role, so that none is spared by chance; sessions for effects belong to the ledger. */
  private static final Map<String, String> ROLES =
      Map.of(
          "subscriber_sessions_ended", "application_name ~ '^s[0-9][.][0-9]+q?$'",
          "publisher_sessions_ended", "application_name ~ '^publisher-'",
          "listen_sessions_ended", "usename ~ '^listener'");

  private final Scene scene;

  ServerFaults(Scene scene) {
    this.scene = scene;
  }

  Episode terminateConnections() throws IOException, SQLException {
    Map<Count, Long> before = scene.fleet().tally();
    Evidence evidence = new Evidence();
    for (int i = 0; i < 5; i++) {
      for (Map.Entry<String, String> role : ROLES.entrySet()) {
        evidence.sign(role.getKey(), terminateTwo(role.getValue()));
      }
      Watch.pause(Duration.ofSeconds(1));
    }
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
    scene.deeds().crash(scene.server());
    Watch.pause(Duration.ofSeconds(scene.random().nextInt(LONGEST_DOWN_SECONDS)));
    scene.deeds().startAgain(scene.server());
    Recovery recovery = scene.recovery();
    scene.report().recoveryAfterServer(recovery.seconds());
    Evidence evidence = new Evidence().sign("servers_started", started().equals(started) ? 0 : 1);
    scene.addCounts(evidence, before, Count.STATEMENTS_FAILED, Count.LISTENS_LOST);
    return new Episode(recovery, evidence);
  }

  private String started() throws SQLException {
    return scene.texts("select pg_postmaster_start_time()::text").get(0);
  }
}
