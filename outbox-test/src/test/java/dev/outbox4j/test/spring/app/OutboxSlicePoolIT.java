package dev.outbox4j.test.spring.app;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.test.spring.OutboxTest;
import javax.sql.DataSource;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.test.context.NestedTestConfiguration;
import org.springframework.test.context.NestedTestConfiguration.EnclosingConfiguration;

/** What the properties say to the pool itself. */
@NestedTestConfiguration(EnclosingConfiguration.OVERRIDE)
@Tag("once")
class OutboxSlicePoolIT {

  @Nested
  @OutboxTest(
      properties = {
        "spring.datasource.hikari.jdbc-url=jdbc:postgresql://localhost:1/real",
        "spring.datasource.hikari.username=nobody",
        "spring.datasource.hikari.password=wrong",
        "spring.datasource.hikari.driver-class-name=no.such.Driver",
        "spring.datasource.hikari.minimum-idle=3"
      })
  class ToldWhereToConnect {
    @Autowired DataSource pool;
    @Autowired JdbcTemplate jdbc;

    @Test
    void connectsToTheDatabaseOfTheTestAllTheSame() {
      assertThat(jdbc.queryForObject("select current_database()", String.class))
          .startsWith("outbox_test_");
    }

    @Test
    void keepsTheIdleConnectionsThatItIsTold() {
      assertThat(((HikariDataSource) pool).getMinimumIdle()).isEqualTo(3);
    }
  }

  @Nested
  @OutboxTest
  class ToldNothing {
    @Autowired DataSource pool;

    @Test
    void keepsOneIdleConnection() {
      assertThat(((HikariDataSource) pool).getMinimumIdle()).isEqualTo(1);
    }
  }
}
