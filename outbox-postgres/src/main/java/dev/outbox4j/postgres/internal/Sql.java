package dev.outbox4j.postgres.internal;

import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.postgres.OutboxTable;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A text with parameters by name, for JDBC, which knows them by place only. Immutable.
 *
 * @param text the text, with a question mark for each parameter
 * @param parameters their names, in their order; one may occur often
 * @param statements how many statements the text has
 */
public record Sql(String text, List<String> parameters, int statements) {
  private static final Pattern NAME = Pattern.compile("(?<!:):([a-z_]+)");

  /**
   * Renders a template for a table.
   *
   * @param template with {@code :name} for parameters, {@code {outbox}}, {@code {sleepers}}, {@code
   *     {buckets}}, {@code {owners}}, {@code {pauses}}, {@code {dedup}}, {@code {slots}}, {@code
   *     {timers}}, {@code {timer_runs}}, {@code {monitors}}, {@code {monitor_events}}, {@code
   *     {locks}}, {@code {jobs}}, {@code {job_ends}}, {@code {job_enqueue}}, {@code {pollers}},
   *     {@code {poller_history}} and {@code {poller_quarantine}} for the tables
   * @param table the outbox
   * @return the text
   */
  public static Sql of(String template, OutboxTable table) {
    return of(template, table.schema().orElse(null), table.name());
  }

  static Sql of(String template, @Nullable String schema, String outbox) {
    return of(
        template
            .replace("{outbox}", Names.qualified(schema, outbox))
            .replace("{sleepers}", Names.qualified(schema, Names.sleepers(outbox)))
            .replace("{buckets}", Names.qualified(schema, Names.buckets(outbox)))
            .replace("{pauses}", Names.qualified(schema, Names.pauses(outbox)))
            .replace("{slots}", Names.qualified(schema, Names.slots(outbox)))
            .replace("{timers}", Names.qualified(schema, Names.timers(outbox)))
            .replace("{timer_runs}", Names.qualified(schema, Names.timerRuns(outbox)))
            .replace("{timers_channel}", Names.literal(Names.timersChannel(outbox)))
            .replace("{monitors}", Names.qualified(schema, Names.monitors(outbox)))
            .replace("{monitor_events}", Names.qualified(schema, Names.monitorEvents(outbox)))
            .replace("{locks}", Names.qualified(schema, Names.locks(outbox)))
            .replace("{locks_channel}", Names.literal(Names.locksChannel(outbox)))
            .replace("{jobs}", Names.qualified(schema, Names.jobs(outbox)))
            .replace("{job_ends}", Names.qualified(schema, Names.jobEnds(outbox)))
            .replace("{job_enqueue}", Names.qualified(schema, Names.jobEnqueue(outbox)))
            .replace("{pollers}", Names.qualified(schema, Names.pollers(outbox)))
            .replace("{poller_history}", Names.qualified(schema, Names.pollerHistory(outbox)))
            .replace("{poller_quarantine}", Names.qualified(schema, Names.pollerQuarantine(outbox)))
            .replace("{dedup}", Names.qualified(schema, Names.dedup(outbox)))
            .replace("{owners}", Names.qualified(schema, Names.bucketOwners(outbox))));
  }

  private static Sql of(String template) {
    List<String> names = new ArrayList<>();
    Matcher found = NAME.matcher(template);
    StringBuilder text = new StringBuilder();
    while (found.find()) {
      names.add(found.group(1));
      found.appendReplacement(text, "?");
    }
    found.appendTail(text);
    int statements = 1 + (int) text.chars().filter(each -> each == ';').count();
    return new Sql(text.toString(), List.copyOf(names), statements);
  }

  /**
   * Returns the text for drivers that know parameters by number.
   *
   * @return with {@code $1} for the first of {@link #distinct()}
   */
  String numbered() {
    List<String> distinct = distinct();
    StringBuilder numbered = new StringBuilder();
    int place = 0;
    for (int i = 0; i < text.length(); i++) {
      if (text.charAt(i) == '?') {
        numbered.append('$').append(distinct.indexOf(parameters.get(place++)) + 1);
      } else {
        numbered.append(text.charAt(i));
      }
    }
    return numbered.toString();
  }

  /** Returns the names of the parameters, each once. */
  List<String> distinct() {
    return parameters.stream().distinct().toList();
  }

  /**
   * Sets the parameters.
   *
   * @param statement of this text
   * @param values the parameters' values, by their names
   * @throws SQLException if the driver refuses one
   */
  public void bind(PreparedStatement statement, Map<String, Object> values) throws SQLException {
    boolean pgjdbc = TypedText.isKnownTo(statement);
    for (int i = 0; i < parameters.size(); i++) {
      Object value = values.get(parameters.get(i));
      if (value == null) {
        throw new IllegalArgumentException("Parameter " + parameters.get(i) + " has no value");
      }
      if (!(value instanceof String text)) {
        statement.setObject(i + 1, value);
      } else if (pgjdbc) {
        TypedText.set(statement, i + 1, text);
      } else {
        statement.setString(i + 1, text);
      }
    }
  }
}
