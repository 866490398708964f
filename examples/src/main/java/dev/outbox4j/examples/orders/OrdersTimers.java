package dev.outbox4j.examples.orders;

import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.timer.CatchUp;
import dev.outbox4j.timer.OverlapPolicy;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.TimerControl;
import dev.outbox4j.timer.TimerRun;
import dev.outbox4j.timer.Timers;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.DayOfWeek;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What the service does by the clock: a weekly digest, a nightly clean-up and a heartbeat. */
final class OrdersTimers {
  /** Whose timers they are. */
  static final String APPLICATION = "orders";

  /** One for each timer, so that none waits for another. */
  private static final int WORKERS = 3;

  /** One to look at the clock, two for the subscriber, and two for each handler. */
  static final int CONNECTIONS = 3 + 2 * WORKERS;

  private static final Logger LOG = LoggerFactory.getLogger(OrdersTimers.class);

  /** Of the people who read the digest, and who sleep while the clean-up runs. */
  private static final ZoneId ZONE = ZoneId.of("Europe/Berlin");

  private static final Timer WEEKLY_DIGEST =
      Timer.of("weekly-digest", Schedule.weekly(DayOfWeek.MONDAY, LocalTime.of(8, 0)).in(ZONE));

  private static final Timer NIGHTLY_CLEAN_UP =
      Timer.of("nightly-clean-up", Schedule.daily(LocalTime.of(3, 30)).in(ZONE));

  /**
   * Each instant has a run of its own and no run replaces another, so they can be counted against
   * the clock. After a longer stop no hours of it are caught up.
   */
  private static final Timer HEARTBEAT =
      Timer.of("heartbeat", Schedule.every(Duration.ofSeconds(2)))
          .keepState(true) // the default only from a minute on
          .catchUp(CatchUp.ALL)
          .catchUpWindow(Duration.ofMinutes(10))
          .overlap(OverlapPolicy.ALLOW_ALL);

  /** Longer than a week, so that the digest's last run is always there. */
  private static final Duration KEPT = Duration.ofDays(14);

  private static final int PURGED_AT_ONCE = 10_000;

  private static final String WRITE_DIGEST =
      """
      insert into digests (week_end, placed, shipped)
      select ?, count(*), count(s.order_id)
      from orders o left join shipments s on s.order_id = o.id
      where o.placed_at >= ? and o.placed_at < ?
      """;

  private final PostgresOutbox outbox;
  private final TimerControl control;

  OrdersTimers(PostgresOutbox outbox) {
    this.outbox = outbox;
    this.control = TimerControl.of(outbox, APPLICATION);
  }

  /** Returns the timers, which are not started yet. */
  Timers build(NotificationSource notifications, SubscriberEvents meters) {
    return Timers.builder(outbox, APPLICATION)
        .on(WEEKLY_DIGEST, OrdersTimers::writeDigest)
        .on(NIGHTLY_CLEAN_UP, this::cleanUp)
        .on(HEARTBEAT, OrdersTimers::beat)
        .listen(notifications)
        .subscriber(settings -> settings.workers(WORKERS).events(meters))
        .build();
  }

  private static void writeDigest(TimerRun run, Connection transaction) throws SQLException {
    Instant end = run.instant();
    Instant begin = end.atZone(ZONE).minusWeeks(1).toInstant(); // not always 168 hours
    try (PreparedStatement insert = transaction.prepareStatement(WRITE_DIGEST)) {
      insert.setObject(1, parameter(end));
      insert.setObject(2, parameter(begin));
      insert.setObject(3, parameter(end));
      insert.executeUpdate();
    }
  }

  /** Not in one transaction: what is deleted stays so if the rest fails and is tried again. */
  private void cleanUp(TimerRun run) throws SQLException {
    Instant before = run.instant().minus(KEPT);
    int runs = 0;
    int purged;
    do {
      purged = control.purge(before, PURGED_AT_ONCE);
      runs += purged;
    } while (purged == PURGED_AT_ONCE);
    LOG.info("deleted {} timer runs and {} heartbeats", runs, deleteHeartbeats(before));
  }

  private int deleteHeartbeats(Instant before) throws SQLException {
    try (Connection connection = outbox.dataSource().getConnection();
        PreparedStatement delete =
            connection.prepareStatement("delete from heartbeats where instant < ?")) {
      delete.setObject(1, parameter(before));
      return delete.executeUpdate();
    }
  }

  private static void beat(TimerRun run, Connection transaction) throws SQLException {
    try (PreparedStatement insert =
        transaction.prepareStatement("insert into heartbeats (instant) values (?)")) {
      insert.setObject(1, parameter(run.instant()));
      insert.executeUpdate();
    }
  }

  private static OffsetDateTime parameter(Instant instant) {
    return instant.atOffset(ZoneOffset.UTC);
  }
}
