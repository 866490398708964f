package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.Tally.Count;
import java.io.IOException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;

/** Faults of the pooler that is on the way of every other process. */
final class PoolerFaults {
  private static final Duration DOWN = Duration.ofSeconds(2);

  private final Scene scene;

  PoolerFaults(Scene scene) {
    this.scene = scene;
  }

  private Pooler pooler() {
    return Objects.requireNonNull(scene.pooler());
  }

  Episode pause() throws IOException, InterruptedException, SQLException {
    Map<Count, Long> before = scene.fleet().tally();
    scene.deeds().act(() -> pooler().signal("STOP"));
    Watch.pause(Fault.Length.LONG.time());
    boolean stopped = Signals.isStopped(pooler().pid());
    scene.deeds().act(() -> pooler().signal("CONT"));
    Recovery recovery = scene.recovery();
    // a statement may fail for other reasons, too
    Evidence evidence = new Evidence().sign("poolers_stopped", stopped ? 1 : 0);
    scene.addCounts(evidence, before, Count.STATEMENTS_FAILED);
    return new Episode(recovery, evidence);
  }

  Episode restart() throws IOException, InterruptedException, SQLException {
    Map<Count, Long> before = scene.fleet().tally();
    long process = pooler().pid();
    scene.deeds().act(pooler()::kill);
    Watch.pause(DOWN);
    scene.deeds().act(pooler()::startAgain);
    Recovery recovery = scene.recovery();
    Evidence evidence = new Evidence().sign("poolers_started", pooler().pid() == process ? 0 : 1);
    scene.addCounts(evidence, before, Count.STATEMENTS_FAILED);
    return new Episode(recovery, evidence);
  }
}
