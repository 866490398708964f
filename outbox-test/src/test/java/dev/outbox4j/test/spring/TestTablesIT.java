package dev.outbox4j.test.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.spring.OutboxProperties;
import dev.outbox4j.test.internal.kit.TestDatabase;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.jdbc.core.JdbcTemplate;

/** Whatever was checked before, the tables of another database are not emptied. */
@Tag("once")
class TestTablesIT {
  private static final TestDatabase DATABASE = TestDatabase.embedded();
  private final JdbcTemplate jdbc = new JdbcTemplate(DATABASE.dataSource());

  @BeforeAll
  static void migrate() {
    OutboxMigrations.of("public", "outbox").migrate(DATABASE.dataSource());
  }

  @AfterAll
  static void drop() {
    DATABASE.close();
  }

  @BeforeEach
  void fill() {
    jdbc.update("delete from outbox");
    jdbc.update("insert into outbox (queue, payload) values ('mail', '')");
  }

  private static TestTables tablesOf(ContextDatabase context) {
    return new TestTables(
        PostgresOutbox.on(DATABASE.dataSource(), OutboxTable.named("outbox")).store(),
        new Binder().bindOrCreate("outbox4j", OutboxProperties.class),
        context);
  }

  private int rows() {
    return jdbc.queryForObject("select count(*) from outbox", Integer.class);
  }

  @Test
  void refusesADatabaseThatIsNotTheContexts() {
    assertThatThrownBy(() -> tablesOf(new ContextDatabase("outbox_test_other")).empty())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContainingAll("'" + DATABASE.name() + "'", "nothing was deleted");

    assertThat(rows()).isEqualTo(1);
  }

  @Test
  void emptiesThatOfTheContext() {
    tablesOf(new ContextDatabase(DATABASE.name())).empty();

    assertThat(rows()).isZero();
  }

  @Test
  void emptiesAnyThatTheTestSaysIsItsOwn() {
    tablesOf(null).empty();

    assertThat(rows()).isZero();
  }
}
