package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;

/** A fault of the network, and another one before it has passed. */
final class TwoFaults {
  private static final Duration HEAD_START = Duration.ofSeconds(1);

  /** Only such pairs as leave the signs of both, and the bounds of the second. */
  private static final List<Pair> PAIRS =
      List.of(
          new Pair(Fault.BLACK_HOLE_LISTEN, Fault.CRASH_SERVER),
          new Pair(Fault.BLACK_HOLE_LISTEN, Fault.KILL_SUBSCRIBER),
          new Pair(Fault.SLOW_NETWORK, Fault.FREEZE_SUBSCRIBER),
          new Pair(Fault.SLOW_FROM_SERVER, Fault.ALTER_DEAD_LETTERS),
          new Pair(Fault.BLACK_HOLE_FROM_SERVER, Fault.TERMINATE_CONNECTIONS),
          new Pair(Fault.BLACK_HOLE_TO_SERVER, Fault.KILL_BACKEND),
          new Pair(Fault.SLOW_NETWORK, Fault.DROP_COLUMN));

  private record Pair(Fault first, Fault second) {
    @Override
    public String toString() {
      return first.label() + " and " + second.label();
    }
  }

  /** Does a fault and heals it. */
  interface Runner {
    Episode run(Fault fault) throws IOException, InterruptedException, SQLException;
  }

  private final Runner runner;
  private final Set<Pair> left = new LinkedHashSet<>(PAIRS);
  private int next;
  private List<Fault> last = List.of();

  TwoFaults(Runner runner, Random random) {
    this.runner = runner;
    this.next = random.nextInt(PAIRS.size());
  }

  Episode run() throws IOException, InterruptedException, SQLException {
    Pair pair = PAIRS.get(next++ % PAIRS.size());
    last = List.of(pair.first(), pair.second());
    left.remove(pair);
    FutureTask<Episode> first = new FutureTask<>(() -> runner.run(pair.first()));
    Thread thread = new Thread(first, "chaos-first-of-two");
    thread.setDaemon(true);
    thread.start();
    Watch.pause(HEAD_START);
    Episode second = runner.run(pair.second());
    return both(pair, outcome(first), second);
  }

  /** The two that were done last; what they explain is what each explains alone. */
  List<Fault> last() {
    return last;
  }

  /** The pairs that were not done yet. */
  List<String> left() {
    return left.stream().map(Pair::toString).toList();
  }

  private static Episode outcome(FutureTask<Episode> first)
      throws IOException, InterruptedException, SQLException {
    try {
      return first.get();
    } catch (ExecutionException e) {
      throw new IOException("the first of two faults could not be done", e.getCause());
    }
  }

  private static Episode both(Pair pair, Episode first, Episode second) {
    Recovery one = first.recovery();
    Recovery other = second.recovery();
    return new Episode(
        new Recovery(
            Math.max(one.seconds(), other.seconds()),
            Math.max(one.allWellSeconds(), other.allWellSeconds())),
        new Evidence()
            .add(pair.first().label() + ": ", first.evidence())
            .add(pair.second().label() + ": ", second.evidence()));
  }
}
