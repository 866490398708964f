package dev.outbox4j.test.spring.app;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.test.spring.OutboxTest;
import dev.outbox4j.test.spring.TestOutbox;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.ComponentScan.Filter;
import org.springframework.context.annotation.FilterType;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.test.context.NestedTestConfiguration;
import org.springframework.test.context.NestedTestConfiguration.EnclosingConfiguration;

/** Which components a slice has, and that slices which differ share no database. */
@NestedTestConfiguration(EnclosingConfiguration.OVERRIDE)
@Tag("once")
class OutboxSliceFiltersIT {
  private static String databaseWithUnrelated;

  private static String database(JdbcTemplate jdbc) {
    return jdbc.queryForObject("select current_database()", String.class);
  }

  @Nested
  @OutboxTest(
      includeFilters = @Filter(type = FilterType.ASSIGNABLE_TYPE, classes = Unrelated.class))
  class Included {
    @Autowired ApplicationContext context;
    @Autowired JdbcTemplate jdbc;

    @Test
    void aComponentThatIsIncludedIsThereBesideTheHandlers() {
      assertThat(context.getBeanNamesForType(Unrelated.class)).hasSize(1);
      assertThat(context.getBeanNamesForType(Mail.class)).hasSize(1);
      assertThat(database(jdbc)).startsWith("outbox_test_").isNotEqualTo(databaseWithUnrelated);
      databaseWithUnrelated = database(jdbc);
    }
  }

  @Nested
  @OutboxTest(excludeFilters = @Filter(type = FilterType.ASSIGNABLE_TYPE, classes = Mail.class))
  class Excluded {
    @Autowired ApplicationContext context;
    @Autowired JdbcTemplate jdbc;
    @Autowired TestOutbox outbox;

    @Test
    void aHandlerThatIsExcludedIsNotThereAndItsQueueIsUnknown() {
      assertThat(context.getBeanNamesForType(Mail.class)).isEmpty();
      assertThatThrownBy(() -> outbox.drain("mail"))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("'mail'");
      assertThat(database(jdbc)).startsWith("outbox_test_").isNotEqualTo(databaseWithUnrelated);
      databaseWithUnrelated = database(jdbc);
    }
  }
}
