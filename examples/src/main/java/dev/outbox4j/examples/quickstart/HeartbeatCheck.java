package dev.outbox4j.examples.quickstart;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.ZoneOffset;

/**
 * One rule about the heartbeat. The instants that are due are computed from the server's clock
 * alone, and not by the service's schedule, so that one is found which the timer left out.
 */
enum HeartbeatCheck {
  RUNS("heartbeat: one run that succeeded every 2 s, by the clock"),
  EFFECTS("heartbeat: one effect every 2 s, by the clock");

  /** Nothing is due before the timer was put on record, nor at that very moment. */
  private static final String COUNT =
      """
      insert into beats
      select instant, sum(due), sum(runs), sum(effects)
      from (
        select s.instant, 1 as due, 0 as runs, 0 as effects
        from generate_series(date_trunc('minute', ?::timestamptz), ?::timestamptz,
          interval '2 seconds') as s (instant)
        where s.instant > all (
          select t.registered_at from outbox_timer t
          where t.application = 'orders' and t.name = 'heartbeat')
        union all
        select r.instant, 0, 1, 0
        from outbox_timer_run r
        where r.application = 'orders' and r.name = 'heartbeat' and r.status = 'succeeded'
        union all
        select h.instant, 0, 0, 1 from heartbeats h) counted
      where instant > ?::timestamptz and instant <= ?::timestamptz
      group by instant
      """;

  private final String what;

  HeartbeatCheck(String what) {
    this.what = what;
  }

  /** Counts for each instant of a period what was due, ran and had an effect. */
  static void count(Connection connection, Period period) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute(
          "create temporary table beats (instant timestamptz, due int, runs int, effects int)"
              + " on commit drop");
    }
    try (PreparedStatement insert = connection.prepareStatement(COUNT)) {
      for (int i = 1; i <= 4; i += 2) {
        insert.setObject(i, period.after().atOffset(ZoneOffset.UTC));
        insert.setObject(i + 1, period.until().atOffset(ZoneOffset.UTC));
      }
      insert.executeUpdate();
    }
  }

  /** {@return the rule in words} */
  String what() {
    return what;
  }

  /** Counts the instants it is about and those that break it, and names three of these. */
  String sql() {
    return """
        select count(*),
               count(*) filter (where due <> %1$s),
               (array_agg((instant at time zone 'UTC')::text || ' UTC' order by instant)
                 filter (where due <> %1$s))[1:3]
        from beats where due > 0 or %1$s > 0
        """
        .formatted(this == RUNS ? "runs" : "effects");
  }
}
