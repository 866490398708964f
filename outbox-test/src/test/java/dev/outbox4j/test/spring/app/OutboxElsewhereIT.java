package dev.outbox4j.test.spring.app;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.test.internal.kit.TestDatabase;
import dev.outbox4j.test.spring.OutboxTest;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.test.context.TestContextManager;

/** A service whose own data source does not ask the properties where to connect. */
@Tag("once")
class OutboxElsewhereIT {
  private static final TestDatabase REAL = TestDatabase.embedded();

  @TestConfiguration
  static class OwnDataSource {
    @Bean
    DataSource realDataSource() {
      return REAL.dataSource();
    }
  }

  /** Is run by the test below alone. */
  @OutboxTest
  @Import(OwnDataSource.class)
  static class TestOfTheService {
    void test() {}
  }

  @BeforeAll
  static void fill() {
    OutboxMigrations.of("public", "outbox").migrate(REAL.dataSource());
    JdbcTemplate jdbc = new JdbcTemplate(REAL.dataSource());
    jdbc.update("insert into outbox (queue, payload) values ('mail', '')");
    jdbc.update(
        "insert into outbox_dlq (outbox, original_id, lease_token, queue, payload,"
            + " deliveries_count, attempts_count, created_at, available_at, failure_reason)"
            + " values ('public.outbox', 1, 1, 'mail', '', 1, 1, now(), now(), 'rejected')");
  }

  @AfterAll
  static void drop() {
    REAL.close();
  }

  @Test
  void keepsItsRowsAndTheTestIsToldWhatToDo() throws Exception {
    TestContextManager tests = new TestContextManager(TestOfTheService.class);
    TestOfTheService instance = new TestOfTheService();

    Throwable failure =
        catchThrowable(
            () -> {
              tests.prepareTestInstance(instance);
              tests.beforeTestMethod(instance, TestOfTheService.class.getDeclaredMethod("test"));
            });

    assertThat(rows("outbox")).isEqualTo(1);
    assertThat(rows("outbox_dlq")).isEqualTo(1);
    assertThat(failure)
        .rootCause()
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContainingAll(
            "'" + REAL.name() + "'",
            "nothing was deleted",
            "spring.datasource.*",
            "database = OWN");
  }

  private static int rows(String table) {
    return new JdbcTemplate(REAL.dataSource())
        .queryForObject("select count(*) from " + table, Integer.class);
  }
}
