package dev.outbox4j.test.spring;

import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.spring.OutboxProperties;
import dev.outbox4j.test.internal.kit.FeatureTables;
import dev.outbox4j.test.internal.kit.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.jdbc.core.JdbcTemplate;

/**
 * The tables of a context's outbox.
 *
 * @param database the only one whose tables may be emptied; null if the test says that its own may
 */
record TestTables(
    PostgresStore store, OutboxProperties properties, @Nullable ContextDatabase database) {

  static TestTables of(BeanFactory beans) {
    return new TestTables(
        beans.getBean(PostgresStore.class),
        beans.getBean(OutboxProperties.class),
        beans.getBeanProvider(ContextDatabase.class).getIfAvailable());
  }

  String deadLetters() {
    return Objects.requireNonNullElse(
        properties.deadLetterTable(), Names.deadLetters(properties.table()));
  }

  String deadLetterSchema() {
    return Objects.requireNonNullElse(properties.deadLetterSchema(), properties.schema());
  }

  /**
   * Empties them. Ids go on, since subscribers may run.
   *
   * @throws IllegalStateException if they are in another database than that of the context
   */
  void empty() {
    String schema = properties.schema();
    List<String> tables = new ArrayList<>();
    tables.add(Names.qualified(schema, properties.table()));
    FeatureTables.ofDeadLetters(deadLetterSchema(), deadLetters()).forEach(tables::add);
    FeatureTables.ofWork(schema, properties.table()).forEach(tables::add);
    if (!properties.autoStart()) { // one that runs and is forgotten is not notified
      FeatureTables.ofProcesses(schema, properties.table()).forEach(tables::add);
    }
    TestDatabase emptied = TestDatabase.of(store.dataSource());
    emptied.empty(emptied.existing(tables), false, this::requireContext);
  }

  private void requireContext(Connection connection) throws SQLException {
    if (database != null) {
      database.require(connection);
    }
  }

  private String dedupKeys() {
    return Names.qualified(properties.schema(), Names.dedup(properties.table()));
  }

  /** Tables of what a service does not use may be missing. */
  private boolean exists(String table) {
    return Boolean.TRUE.equals(
        new JdbcTemplate(store.dataSource())
            .queryForObject("select to_regclass(?) is not null", Boolean.class, table));
  }

  long due(String queue) {
    Long due =
        new JdbcTemplate(store.dataSource())
            .queryForObject(
                "select count(*) from %s where queue = ? and available_at <= clock_timestamp()"
                    .formatted(Names.qualified(properties.schema(), properties.table())),
                Long.class,
                queue);
    return Objects.requireNonNull(due);
  }

  /** Moves the instants of all rows back. */
  void advance(Duration time) {
    JdbcTemplate jdbc = new JdbcTemplate(store.dataSource());
    if (exists(dedupKeys())) {
      jdbc.update(
          """
          update %s k
          set published_at = k.published_at - i.passed, kept_until = k.kept_until - i.passed
          from (select make_interval(secs => ?) as passed) i
          """
              .formatted(dedupKeys()),
          time.toNanos() / 1e9);
    }
    jdbc.update(
        """
            update %s o
            set available_at = o.available_at - i.passed, created_at = o.created_at - i.passed,
              first_attempt_at = o.first_attempt_at - i.passed,
              last_attempt_at = o.last_attempt_at - i.passed,
              expires_at = o.expires_at - i.passed
            from (select make_interval(secs => ?) as passed) i
            """
            .formatted(Names.qualified(properties.schema(), properties.table())),
        time.toNanos() / 1e9);
  }
}
