package dev.outbox4j.examples.monitor;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;

/**
 * Compares the alerts with the instances that have found something, in one snapshot. Once all
 * instances have ended, and unless one that had was started anew, it finds nothing wrong.
 */
final class Reconciliation {
  private static final String COMPARE =
      """
      with met as (
        select m.id, m.execution, count(a.monitor) as alerts
        from outbox_monitor m
        left join issue_alerts a on a.monitor = m.id and a.execution = m.execution
        where m.application = ? and m.outcome = 'condition_met'
        group by m.id, m.execution)
      select
        (select count(*) from met),
        (select count(*) from issue_alerts),
        (select count(*) from met where alerts <> 1),
        (select count(*) from outbox_monitor where ended_at is null),
        (select count(*) from outbox),
        (select count(*) from outbox_dlq)
      """;

  private Reconciliation() {}

  /**
   * What was found.
   *
   * @param met how many instances have found their condition met
   * @param alerts how many alerts there are
   * @param notOnce how many of these instances have no alert, or more than one
   * @param alive how many instances have not ended
   * @param messages how many messages are left, wakes among them
   * @param deadLetters how many dead letters there are
   */
  record Report(long met, long alerts, long notOnce, long alive, long messages, long deadLetters) {

    /** {@return what is wrong; nothing if each met condition has one alert and nothing is left} */
    List<String> faults() {
      List<String> faults = new ArrayList<>();
      if (alerts != met) {
        faults.add(alerts + " alerts of " + met + " met conditions");
      }
      add(faults, notOnce, "met conditions have no alert, or more than one");
      add(faults, alive, "instances have not ended");
      add(faults, messages, "messages are left");
      add(faults, deadLetters, "dead letters");
      return faults;
    }

    private static void add(List<String> faults, long count, String what) {
      if (count != 0) {
        faults.add(count + " " + what);
      }
    }
  }

  static Report compare(DataSource dataSource) throws SQLException {
    try (Connection connection = dataSource.getConnection();
        PreparedStatement compare = connection.prepareStatement(COMPARE)) {
      compare.setString(1, IssueWatcher.APPLICATION);
      try (ResultSet row = compare.executeQuery()) {
        row.next();
        return new Report(
            row.getLong(1),
            row.getLong(2),
            row.getLong(3),
            row.getLong(4),
            row.getLong(5),
            row.getLong(6));
      }
    }
  }
}
