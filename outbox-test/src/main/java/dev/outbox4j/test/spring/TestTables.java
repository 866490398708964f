package dev.outbox4j.test.spring;

import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.spring.OutboxProperties;
import dev.outbox4j.test.internal.kit.TestDatabase;
import java.util.List;
import java.util.Objects;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.jdbc.core.JdbcTemplate;

/** The tables of a context's outbox. */
record TestTables(PostgresStore store, OutboxProperties properties) {

  static TestTables of(BeanFactory beans) {
    return new TestTables(
        beans.getBean(PostgresStore.class), beans.getBean(OutboxProperties.class));
  }

  String deadLetters() {
    return Objects.requireNonNullElse(
        properties.deadLetterTable(), Names.deadLetters(properties.table()));
  }

  /** Ids go on, since subscribers may run. */
  void empty() {
    String schema = properties.schema();
    String deadSchema = Objects.requireNonNullElse(properties.deadLetterSchema(), schema);
    List<String> tables =
        List.of(
            Names.qualified(schema, properties.table()),
            Names.qualified(schema, Names.sleepers(properties.table())),
            Names.qualified(deadSchema, deadLetters()));
    TestDatabase.of(store.dataSource()).empty(tables.stream().filter(this::exists).toList(), false);
  }

  /** A service that deletes what fails for good may have no table of dead letters. */
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
}
