package dev.outbox4j.examples.chaos;

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
  private volatile boolean sham;

  Deeds(Set<Fault> shams, DataSource direct) {
    this.shams = shams;
    this.direct = direct;
  }

  /** How something is broken or mended. */
  interface Deed {
    void run() throws IOException, InterruptedException, SQLException;
  }

  /** What comes is done for this fault. */
  void begin(Fault fault) {
    sham = shams.contains(fault);
  }

  /** {@return whether nothing is done for the fault at hand} */
  boolean sham() {
    return sham;
  }

  void act(Deed deed) throws IOException, InterruptedException, SQLException {
    if (!sham) {
      deed.run();
    }
  }

  /** Stops a subscriber gracefully, and tells whether it came to its end. */
  boolean stop(Fleet fleet, int slot) throws IOException, InterruptedException {
    return !sham && fleet.stopSubscriber(slot);
  }

  /** Carries out a statement that returns texts, and does something by it. */
  List<String> texts(String sql, @Nullable Object... parameters) throws SQLException {
    return sham ? List.of() : Database.texts(direct, sql, parameters);
  }
}
