package dev.outbox4j.examples.chaos;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.monitor.Json;
import dev.outbox4j.monitor.MonitorAnswer;
import dev.outbox4j.monitor.MonitorControl;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Random;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Does at random what people do to some of the instances of the {@link MonitorProof}, one thing
 * after the other, and writes down what it was answered. The {@link MonitorLedger} judges that.
 */
final class MonitorPeople {
  /** Of so many instances one is theirs: those whose id it divides. */
  static final int ONE_OF_SO_MANY = 10;

  /** The event that their instances wait for; of any other they hear with their next check. */
  static final String AWAITED = "go";

  /** What became of a call that has no answer: nothing, or it is not known. */
  static final String REFUSED = "REFUSED";

  static final String LOST = "LOST";

  private static final String OTHER = "other";
  private static final String REASON = "somebody wanted it";
  private static final int LONGEST_PAUSE_MILLIS = 40;
  private static final int ENDED_FOR_EACH_ALIVE = 2;

  private final HikariDataSource pool;
  private final MonitorControl control;
  private final MonitorLedger ledger;
  private final Random random;
  private final LongSupplier started;
  private final int alive;
  private final Thread thread = new Thread(this::run, "people");
  private volatile boolean over;
  private volatile @Nullable Exception failure;
  private long events;

  /**
   * Does nothing yet.
   *
   * @param ports the server's
   * @param ledger where to write what they did
   * @param seed fixes what they do
   * @param started up to which number instances were started
   * @param alive how many instances are alive at once
   */
  MonitorPeople(String ports, MonitorLedger ledger, long seed, LongSupplier started, int alive) {
    this.pool = Database.pool(ports, 1, "people", false);
    this.control =
        MonitorControl.of(
            PostgresOutbox.on(pool, OutboxTable.named("outbox")), MonitorNode.APPLICATION);
    this.ledger = ledger;
    this.random = new Random(seed);
    this.started = started;
    this.alive = alive;
  }

  /** What they do. */
  enum Verb {
    SUSPEND,
    RESUME,
    RAISE,
    WAKE,
    TERMINATE,
    RESTART;

    /** Those that are more frequent are here more than once. */
    private static final List<Verb> MIX =
        List.of(
            SUSPEND, SUSPEND, RESUME, RESUME, RESUME, RESUME, RAISE, RAISE, RAISE, RAISE, WAKE,
            WAKE, WAKE, TERMINATE, RESTART, RESTART);

    /** As the ledger has it. */
    String label() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  static boolean have(long id) {
    return id % ONE_OF_SO_MANY == 0;
  }

  void begin() {
    thread.start();
  }

  private void run() {
    try {
      while (!over) {
        long latest = started.getAsLong() / ONE_OF_SO_MANY;
        long back = Math.min(latest, (long) alive * ENDED_FOR_EACH_ALIVE / ONE_OF_SO_MANY);
        if (back > 0) {
          long id = (latest - random.nextLong(back)) * ONE_OF_SO_MANY;
          act(id, Verb.MIX.get(random.nextInt(Verb.MIX.size())));
        }
        Watch.pause(Duration.ofMillis(random.nextInt(LONGEST_PAUSE_MILLIS)));
      }
    } catch (SQLException | RuntimeException e) {
      failure = e;
    }
  }

  private void act(long id, Verb verb) throws SQLException {
    Long event = verb == Verb.RAISE ? Long.valueOf(++events) : null;
    long began = RunLog.now();
    String said;
    try {
      said = call(verb, Long.toString(id), event).name();
    } catch (OutboxStoreException e) { // such as a row that a frozen process has locked
      said = e.outcomeUnknown() ? LOST : REFUSED;
    }
    ledger.deed(pool, id, verb, said, event, began, RunLog.now());
  }

  private MonitorAnswer call(Verb verb, String id, @Nullable Long event) {
    return switch (verb) {
      case SUSPEND -> control.suspend(id, REASON);
      case RESUME -> control.resume(id, REASON);
      case RAISE ->
          control.raiseEvent(
              id, random.nextBoolean() ? AWAITED : OTHER, Json.of(String.valueOf(event)));
      case WAKE -> control.wake(id);
      case TERMINATE -> control.terminate(id, REASON);
      case RESTART -> control.restart(id, REASON);
    };
  }

  /**
   * Ends, and resumes what they have suspended, so that all instances end by themselves.
   *
   * @return why they had to stop before, if they had
   */
  Optional<Exception> end() throws InterruptedException, SQLException {
    over = true;
    thread.join();
    try {
      for (List<Long> left = ledger.suspended(); !left.isEmpty(); left = ledger.suspended()) {
        for (long id : left) {
          act(id, Verb.RESUME);
        }
      }
    } finally {
      pool.close();
    }
    return Optional.ofNullable(failure);
  }
}
