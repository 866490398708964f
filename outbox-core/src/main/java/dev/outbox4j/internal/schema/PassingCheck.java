package dev.outbox4j.internal.schema;

import java.time.Duration;
import java.time.Instant;

/**
 * A constraint that is there while a partition of dead letters is attached, so that the server need
 * not read for it. It says that a table has no letters of a coming time, and refuses nothing once
 * that is near, whatever has become of the process that added it.
 *
 * <p>As a proof the server takes constants only, and functions of constants that are immutable,
 * which it calls while it plans. So the function that reads the clock is said to be immutable. A
 * constraint is planned by each statement that writes, and by the one that attaches: either sees
 * the clock of its own time.
 */
public final class PassingCheck {
  /** Before the time itself, so that no letter of it is refused that a slow statement writes. */
  private static final Duration EARLIER = Duration.ofHours(1);

  /** The table first: its lock orders those who do this at once. */
  private static final String ADD =
      """
      alter table {table} drop constraint if exists {name};
      create or replace function {function}(timestamptz) returns boolean language sql immutable
        as 'select pg_catalog.clock_timestamp() operator(pg_catalog.>=) $1';
      grant execute on function {function}(timestamptz) to public;
      execute format('alter function %s(timestamptz) owner to %I', {function_literal}, (
        select pg_catalog.pg_get_userbyid(c.relowner) from pg_catalog.pg_class c
        where c.oid = cast({table_literal} as regclass)));
      alter table {table} add constraint {name}
        check ({condition} or {function}({over})) not valid;
      """;

  private static final String DROP =
      """
      alter table {table} drop constraint if exists {name};
      drop function if exists {function}(timestamptz);
      """;

  private PassingCheck() {}

  /**
   * Returns what adds it, in place of an earlier one, not validated: statements of a block.
   *
   * @param table the table, as it is written in a statement
   * @param function the function, in its schema, as it is written in a statement
   * @param name the constraint's name, as it is written in a statement
   * @param condition what is true of each letter but those of the coming time
   * @param coming when that time begins
   */
  public static String add(
      String table, String function, String name, String condition, Instant coming) {
    return of(ADD, table, function, name)
        .replace("{over}", Period.literal(coming.minus(EARLIER)))
        .replace("{condition}", condition);
  }

  /** Returns what drops it, with its function: statements of a block. */
  public static String drop(String table, String function, String name) {
    return of(DROP, table, function, name);
  }

  private static String of(String template, String table, String function, String name) {
    return template
        .replace("{table_literal}", Names.literal(table))
        .replace("{function_literal}", Names.literal(function))
        .replace("{table}", table)
        .replace("{function}", function)
        .replace("{name}", name);
  }
}
