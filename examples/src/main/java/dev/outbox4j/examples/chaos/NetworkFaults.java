package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.Fault.Disturbance;
import dev.outbox4j.examples.chaos.FaultyProxy.Toll;
import dev.outbox4j.examples.chaos.FaultyProxy.Way;
import dev.outbox4j.examples.chaos.FaultyProxy.Weather;
import dev.outbox4j.examples.chaos.Tally.Count;
import java.io.IOException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Map;

/** Faults of the network between the processes and the server. */
final class NetworkFaults {
  /** What the server had received before the fault is carried out. */
  private static final Duration UNDER_WAY = Duration.ofMillis(500);

  private final Scene scene;

  NetworkFaults(Scene scene) {
    this.scene = scene;
  }

  /** On the way of the publishers and of the subscribers' pools. */
  Episode ofPools(Disturbance how) throws IOException, InterruptedException, SQLException {
    Map<Count, Long> before = scene.fleet().tally();
    Evidence evidence = new Evidence();
    scene.deeds().act(() -> scene.network().turn(how.weather(), how.way()));
    Watch.pause(UNDER_WAY);
    String from = scene.watch().now();
    Watch.pause(how.time().minus(UNDER_WAY));
    String to = scene.watch().now();
    addToll(evidence, how.weather(), scene.network().heal());
    if (how.weather() != Weather.SLOW && how.way() != Way.FROM_SERVER) {
      evidence.countersign("deletions_meanwhile", scene.deletionsBetween(from, to));
    }
    Recovery recovery = scene.recovery();
    if (how.weather() != Weather.SLOW) {
      scene.addCounts(evidence, before, Count.STATEMENTS_FAILED);
    }
    return new Episode(recovery, evidence);
  }

  /** On the way of LISTEN alone. */
  Episode ofListen(Disturbance how) throws IOException, InterruptedException, SQLException {
    Map<Count, Long> before = scene.fleet().tally();
    Evidence evidence = new Evidence();
    scene.deeds().act(() -> scene.listenNetwork().turn(how.weather(), how.way()));
    Watch.pause(how.time());
    addToll(evidence, how.weather(), scene.listenNetwork().heal());
    Recovery recovery = scene.recovery();
    scene.addCounts(evidence, before, Count.LISTENS_LOST);
    return new Episode(recovery, evidence);
  }

  /**
   * Those who sleep are not woken, so each message waits for a poll, and no longer. Most wait less:
   * while transactions are open that began before somebody's announcement, it polls shortly.
   */
  Episode longCutOfListen() throws IOException, InterruptedException, SQLException {
    String from = scene.watch().now();
    Episode cut = ofListen(new Disturbance(Weather.CUT, Way.BOTH, scene.settings().listenCut()));
    String to = scene.watch().now();
    Duration late = scene.settings().late();
    Ledger ledger = scene.ledger();
    return new Episode(
        cut.recovery(),
        cut.evidence()
            .sign("quiet_messages", ledger.quietMessages(from, to))
            .countersign(
                "quiet_messages_later_than_a_poll",
                ledger.quietMessagesSlowerThan(late.plus(Subscriber.QUIET_POLL), from, to)));
  }

  private static void addToll(Evidence evidence, Weather weather, Toll toll) {
    switch (weather) {
      case CUT -> evidence.sign("links_cut", toll.linksCut());
      case BLACK_HOLE -> evidence.sign("bytes_held", toll.bytesHeld());
      case SLOW -> evidence.sign("packets_slowed", toll.packetsSlowed());
      default -> throw new AssertionError(weather);
    }
  }
}
