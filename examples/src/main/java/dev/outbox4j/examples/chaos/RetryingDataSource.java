package dev.outbox4j.examples.chaos;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

// tag::retrying
/** Connections for a pool that is to go on at once when the server is back. */
public class RetryingDataSource extends PGSimpleDataSource {
  private static final long serialVersionUID = 1;
  private static final Logger log = LoggerFactory.getLogger(RetryingDataSource.class);
  private static final long PAUSE = TimeUnit.MILLISECONDS.toNanos(200);
  private static final long PATIENCE = TimeUnit.SECONDS.toNanos(10);

  @Override
  public Connection getConnection(@Nullable String user, @Nullable String password)
      throws SQLException {
    long begun = System.nanoTime();
    for (boolean first = true; ; first = false) {
      try {
        return super.getConnection(user, password);
      } catch (SQLException failure) {
        boolean tooLong = System.nanoTime() - begun > PATIENCE;
        if (!serverIsAway(failure) || tooLong || Thread.currentThread().isInterrupted()) {
          throw failure;
        }
        if (first) {
          log.warn(
              "no connection, trying again: {}: {}", failure.getSQLState(), failure.getMessage());
        }
        LockSupport.parkNanos(PAUSE);
      }
    }
  }

  /** Nobody there, or gone meanwhile, or a server that starts or stops; not a wrong password. */
  private static boolean serverIsAway(SQLException failure) {
    return Set.of("08001", "08006", "57P03").contains(String.valueOf(failure.getSQLState()));
  }
}
// end::retrying
