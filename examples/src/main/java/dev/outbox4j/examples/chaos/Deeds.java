package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.FaultyProxy.Toll;
import dev.outbox4j.examples.chaos.FaultyProxy.Way;
import dev.outbox4j.examples.chaos.FaultyProxy.Weather;
import java.io.IOException;
import java.sql.SQLException;
import java.util.List;
import java.util.Set;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * All that is done to the processes, the network and the server. Of a fault that is a sham nothing
 * is done: the run must then say that it did not happen.
 */
final class Deeds {
  private final Set<Fault> shams;
  private final DataSource direct;
  private boolean sham;

  Deeds(Set<Fault> shams, DataSource direct) {
    this.shams = shams;
    this.direct = direct;
  }

  /** How something is broken or mended. */
  interface Step {
    void take() throws SQLException;
  }

  /** What comes is done for this fault. */
  void begin(Fault fault) {
    sham = shams.contains(fault);
  }

  void turn(FaultyProxy network, Weather weather, Way way) {
    if (!sham) {
      network.turn(weather, way);
    }
  }

  Toll heal(FaultyProxy network) {
    return sham ? new Toll(0, 0, 0) : network.heal();
  }

  void signal(Worker worker, String signal) throws IOException, InterruptedException {
    if (!sham) {
      worker.signal(signal);
    }
  }

  void kill(Worker worker) throws InterruptedException {
    if (!sham) {
      worker.kill();
    }
  }

  /** Stops a subscriber gracefully, and tells whether it came to its end. */
  boolean stop(Fleet fleet, int slot) throws IOException, InterruptedException {
    return !sham && fleet.stopSubscriber(slot);
  }

  /** Starts a subscriber where one has ended. */
  void start(Fleet fleet, int slot) throws IOException {
    if (!fleet.subscriber(slot).alive()) {
      fleet.startSubscriber(slot);
    }
  }

  void order(Fleet fleet, String order) throws IOException {
    if (!sham) {
      fleet.orderSubscribers(order);
    }
  }

  void step(Step step) throws SQLException {
    if (!sham) {
      step.take();
    }
  }

  void signal(Pooler pooler, String signal) throws IOException, InterruptedException {
    if (!sham) {
      pooler.signal(signal);
    }
  }

  void killBackend(long pid) throws IOException, InterruptedException {
    if (!sham) {
      Signals.send("KILL", pid, "a backend");
    }
  }

  void crash(Server server) throws IOException, InterruptedException {
    if (!sham) {
      server.crash();
    }
  }

  void startAgain(Server server) throws IOException, InterruptedException {
    if (!sham) {
      server.startAgain();
    }
  }

  /** Carries out a statement that returns texts, and does something by it. */
  List<String> texts(String sql, @Nullable Object... parameters) throws SQLException {
    return sham ? List.of() : Database.texts(direct, sql, parameters);
  }
}
