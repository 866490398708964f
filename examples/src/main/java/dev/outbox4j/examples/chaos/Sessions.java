package dev.outbox4j.examples.chaos;

import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;

/**
 * The sessions that the server has for the subscribers, by whom they belong to: who listens is told
 * by the user, the rest by the application name. PgBouncer's are of whoever used them last, so
 * those are counted together.
 */
final class Sessions {
  /** Under this name, what a limit says of all that may go through the pooler. */
  static final String POOLER = "the pooler";

  private static final String EXCESS =
      """
      select name || ' has ' || count(*) || ' sessions' from (
        select case
          when usename like 'listener%' then usename
          when cast(? as text) <> '' and application_name ~ ? then 'the pooler'
          else application_name end as name
        from pg_stat_activity
        where usename like 'listener%' or application_name ~ '^(s|publisher-)[0-9]+[.]') x
      left join unnest(?::text[], ?::int[]) as allowed (name, sessions) using (name)
      group by name
      having count(*) > coalesce(max(sessions), 0)""";

  private final DataSource direct;

  Sessions(DataSource direct) {
    this.direct = direct;
  }

  /**
   * Who has more sessions than the limits allow; nobody else may have any. Names that match the
   * pattern, unless it is empty, go through the pooler.
   */
  List<String> excess(Map<String, Integer> limits, String pooled) throws SQLException {
    List<Map.Entry<String, Integer>> entries = List.copyOf(limits.entrySet());
    return Database.texts(
        direct,
        EXCESS,
        pooled,
        pooled,
        entries.stream().map(Map.Entry::getKey).toArray(String[]::new),
        entries.stream().map(Map.Entry::getValue).toArray(Integer[]::new));
  }
}
