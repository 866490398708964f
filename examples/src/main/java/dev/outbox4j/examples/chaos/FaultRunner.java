package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.Fault.Disturbance;
import dev.outbox4j.examples.chaos.Fault.Hits;
import dev.outbox4j.examples.chaos.Fault.Length;
import dev.outbox4j.examples.chaos.FaultyProxy.Way;
import dev.outbox4j.examples.chaos.FaultyProxy.Weather;
import java.io.IOException;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Does a fault, heals it, and reports what it did and how long the fleet took to be well again. */
final class FaultRunner {
  private final Scene scene;
  private final ProcessFaults processes;
  private final NetworkFaults network;
  private final ServerFaults server;
  private final SchemaFaults schema;
  private final PoolerFaults pooler;
  private final DiskFull disk;
  private final TwoFaults two;
  private final @Nullable Path clockFaker;

  /**
   * @param clockFaker libfaketime, if clocks may be turned
   */
  FaultRunner(Scene scene, @Nullable Path clockFaker) {
    this.scene = scene;
    this.processes = new ProcessFaults(scene);
    this.network = new NetworkFaults(scene);
    this.server = new ServerFaults(scene);
    this.schema = new SchemaFaults(scene);
    this.pooler = new PoolerFaults(scene);
    this.disk = new DiskFull(scene);
    this.two = new TwoFaults(this::episode, scene.random());
    this.clockFaker = clockFaker;
  }

  void run(Fault fault) throws IOException, InterruptedException, SQLException {
    long begun = System.nanoTime();
    String from = scene.watch().now();
    scene.deeds().begin(fault);
    Episode episode = episode(fault);
    String to = scene.watch().now();
    for (Fault each : fault == Fault.TWO_AT_ONCE ? two.last() : List.of(fault)) {
      if (each.hits() == Hits.ALL) {
        scene.ledger().hit(each.label(), null, from, to);
      }
    }
    scene.ledger().episode(fault.label(), from, to);
    scene.report().fault(fault, episode, (System.nanoTime() - begun) / 1e9);
  }

  /** The pairs of faults that were not done at once yet. */
  List<String> pairsLeft() {
    return two.left();
  }

  private Episode episode(Fault fault) throws IOException, InterruptedException, SQLException {
    if (fault.network().isPresent()) {
      return network.ofPools(fault.network().get());
    }
    return switch (fault) {
      case KILL_SUBSCRIBER -> processes.killSubscriber();
      case KILL_PUBLISHER -> processes.killPublisher();
      case FREEZE_SUBSCRIBER -> processes.freezeSubscriber();
      case ROLLING_RESTART -> processes.rollingRestart();
      case DEAD_POOL -> processes.deadPool();
      case SLOW_HANDLERS -> processes.slowHandlers();
      case TERMINATE_CONNECTIONS -> server.terminateConnections();
      case CRASH_SERVER -> server.crash();
      case KILL_BACKEND -> server.killBackend();
      case LOCK_TABLES -> server.lockTables();
      case EXHAUST_SLOTS -> server.exhaustSlots();
      case MOVE_SERVER -> server.move();
      case PROMOTE_REPLICA -> new Promotion(scene).run();
      case FILL_DISK -> disk.run();
      case SERVER_TIMEOUTS -> new ServerTimeouts(scene).run();
      case JUMP_CLOCK -> new ClockJump(scene, Objects.requireNonNull(clockFaker)).run();
      case HOLD_HORIZON -> new HorizonHolder(scene).run();
      case PAUSE_POOLER -> pooler.pause();
      case RESTART_POOLER -> pooler.restart();
      case LONG_CUT_LISTEN -> network.longCutOfListen();
      case TWO_AT_ONCE -> two.run();
      case CUT_LISTEN ->
          network.ofListen(new Disturbance(Weather.CUT, Way.BOTH, Length.USUAL.time()));
      case BLACK_HOLE_LISTEN ->
          network.ofListen(new Disturbance(Weather.BLACK_HOLE, Way.BOTH, Length.LONG.time()));
      case DROP_DEAD_LETTERS -> schema.dropDeadLetters();
      case ALTER_DEAD_LETTERS -> schema.alterDeadLetters();
      case BROKEN_DEAD_LETTERS -> schema.longOutageOfDeadLetters();
      case DROP_COLUMN -> schema.dropLeases();
      case CALM -> calm();
      default -> throw new AssertionError(fault);
    };
  }

  private Episode calm() throws SQLException {
    String from = scene.watch().now();
    Watch.pause(Length.CALM.time());
    return new Episode(
        scene.recovery(),
        new Evidence()
            .sign("quiet_messages", scene.ledger().quietMessages(from, scene.watch().now())));
  }
}
