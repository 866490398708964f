package dev.outbox4j.examples.chaos;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;

// tag::retrying
/** Connections for a pool that is to go on at once when the server is back. */
public class RetryingDataSource extends PGSimpleDataSource {
  private static final long serialVersionUID = 1;
  private static final long PAUSE = TimeUnit.MILLISECONDS.toNanos(200);
  private static final long PATIENCE = TimeUnit.SECONDS.toNanos(30);

  @Override
  public Connection getConnection(@Nullable String user, @Nullable String password)
      throws SQLException {
    long begun = System.nanoTime();
    while (true) {
      try {
        return super.getConnection(user, password);
      } catch (SQLException failure) {
        boolean tooLong = System.nanoTime() - begun > PATIENCE;
        if (!serverIsAway(failure) || tooLong || Thread.currentThread().isInterrupted()) {
          throw failure;
        }
        LockSupport.parkNanos(PAUSE);
      }
    }
  }

  /** Class 08 is trouble with the connection, 57P03 a server that starts or stops. */
  private static boolean serverIsAway(SQLException failure) {
    String state = failure.getSQLState();
    return state != null && (state.startsWith("08") || state.equals("57P03"));
  }
}
// end::retrying
