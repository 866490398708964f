package dev.outbox4j.examples.quickstart;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;

/** The server's clock, and where the service's heartbeat is by it. */
final class HeartbeatClock {
  private static final int INTERVAL_SECONDS = 2;
  private static final Duration LONGEST_WAIT = Duration.ofSeconds(30);

  /** Runs are made in the order of their instants, but may end in another. */
  private static final String ENDED =
      """
      select count(*) filter (where r.instant = ?) > 0 and bool_and(r.ended_at is not null)
      from outbox_timer_run r
      where r.application = 'orders' and r.name = 'heartbeat'
        and r.instant > ? and r.instant <= ?
      """;

  private final DataSource dataSource;

  HeartbeatClock(DataSource dataSource) {
    this.dataSource = dataSource;
  }

  /** {@return what the server's clock shows} */
  Instant now() throws SQLException {
    try (Connection connection = dataSource.getConnection();
        Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery("select clock_timestamp()")) {
      row.next();
      return row.getObject(1, OffsetDateTime.class).toInstant();
    }
  }

  /**
   * Waits for the next instant and until the runs since an earlier one have ended. What has not by
   * then is told by the reconciliation.
   *
   * @param after the earlier one
   * @return the time between the two, which has at least one instant of the heartbeat
   */
  Period awaitNext(Instant after) throws SQLException, InterruptedException {
    long intervals = now().getEpochSecond() / INTERVAL_SECONDS;
    Period period = new Period(after, Instant.ofEpochSecond((intervals + 1) * INTERVAL_SECONDS));
    long begun = System.nanoTime();
    while (!ended(period) && System.nanoTime() - begun < LONGEST_WAIT.toNanos()) {
      TimeUnit.MILLISECONDS.sleep(50);
    }
    return period;
  }

  private boolean ended(Period period) throws SQLException {
    try (Connection connection = dataSource.getConnection();
        PreparedStatement query = connection.prepareStatement(ENDED)) {
      query.setObject(1, period.until().atOffset(ZoneOffset.UTC));
      query.setObject(2, period.after().atOffset(ZoneOffset.UTC));
      query.setObject(3, period.until().atOffset(ZoneOffset.UTC));
      try (ResultSet row = query.executeQuery()) {
        row.next();
        return row.getBoolean(1);
      }
    }
  }
}
