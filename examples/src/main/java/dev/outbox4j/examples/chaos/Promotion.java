package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.Tally.Count;
import dev.outbox4j.examples.chaos.Watch.Since;
import java.io.IOException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Map;

/**
 * A synchronous replica takes over under load. The former primary goes on beside it, read-only: who
 * is connected to it is not told, and must find the new one.
 */
final class Promotion {
  private static final Duration UNDER_LOAD = Duration.ofSeconds(3);

  /** Rises with each promotion. */
  private static final String TIMELINE =
      "select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int";

  private final Scene scene;

  Promotion(Scene scene) {
    this.scene = scene;
  }

  Episode run() throws IOException, InterruptedException, SQLException {
    Map<Count, Long> before = scene.fleet().tally();
    long timeline = scene.number(TIMELINE);
    Evidence evidence = new Evidence();
    try {
      scene.deeds().act(this::startSynchronousReplica);
      Watch.pause(UNDER_LOAD);
      scene.deeds().act(this::makeReadOnly);
      evidence.sign("sessions_left_behind", sessions());
      scene.deeds().act(scene.server()::promoteReplica);
      if (scene.pooler() != null) {
        scene.deeds().act(scene.pooler()::reconnect); // nothing tells it by itself
      }
      Since promoted = scene.watch().since();
      double seconds = scene.watch().untilHandled(promoted);
      Recovery recovery = new Recovery(seconds, scene.watch().untilAllAreWell(promoted));
      boolean happened = scene.number(TIMELINE) > timeline;
      evidence.sign("promotions", happened ? 1 : 0);
      if (happened) {
        scene.report().recoveryAfterPromotion(seconds);
        watchBesideTheFormer(evidence, promoted);
      }
      scene.addCounts(evidence, before, Count.REFUSED_AS_READ_ONLY);
      return new Episode(recovery, evidence);
    } finally {
      scene.server().removeOther();
    }
  }

  private void startSynchronousReplica() throws IOException, InterruptedException, SQLException {
    scene.server().startReplica();
    awaitReplica("state = 'streaming'");
    scene.set("synchronous_standby_names", Server.REPLICA);
    awaitReplica("sync_state = 'sync'");
  }

  private void awaitReplica(String state) {
    scene
        .watch()
        .until(
            () -> scene.number("select count(*) from pg_stat_replication where " + state) == 1,
            "a replica whose " + state,
            scene.watch().since());
  }

  private void makeReadOnly() throws SQLException {
    scene.set("default_transaction_read_only", "on");
  }

  private long sessions() throws SQLException {
    return scene.number(
        "select count(*) from pg_stat_activity where usename ~ '^listener'"
            + " or application_name ~ '^(s|publisher-)[0-9][.]'");
  }

  /** What slept must be woken by the new one, though the LISTEN sessions of the former one live. */
  private void watchBesideTheFormer(Evidence evidence, Since promoted) throws SQLException {
    String from = scene.watch().now();
    Watch.pause(Fault.Length.CALM.time());
    String to = scene.watch().now();
    evidence.sign("quiet_messages", scene.ledger().quietMessages(from, to));
    evidence.countersign(
        "quiet_messages_late",
        scene.ledger().quietMessagesSlowerThan(scene.settings().late(), from, to));
    evidence.countersign(
        "deletions_by_the_former_primary",
        Database.number(
            scene.server().former(),
            "select count(*) from deleted where at > ?::timestamptz",
            promoted.instant()));
  }
}
