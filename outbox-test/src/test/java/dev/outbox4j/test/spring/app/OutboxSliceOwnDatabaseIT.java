package dev.outbox4j.test.spring.app;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.test.internal.kit.TestDatabase;
import dev.outbox4j.test.spring.AutoConfigureOutboxTest.Database;
import dev.outbox4j.test.spring.OutboxTest;
import dev.outbox4j.test.spring.TestOutbox;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Tag;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

/** The test's own properties say where the database is. */
@OutboxTest(database = Database.OWN)
@DirtiesContext // closed while the server still runs
@Tag("once")
class OutboxSliceOwnDatabaseIT {
  private static final TestDatabase OWN = TestDatabase.embedded();

  @Autowired Mail mail;
  @Autowired TestOutbox outbox;
  @Autowired JdbcTemplate jdbc;

  @DynamicPropertySource
  static void connect(DynamicPropertyRegistry properties) {
    properties.add("spring.datasource.url", OWN::url);
    properties.add("spring.datasource.username", () -> "postgres");
    properties.add("spring.datasource.password", () -> "postgres");
  }

  @RepeatedTest(2) // the second sees nothing of the first
  void isTheOneThatIsUsedAndEmptied() {
    assertThat(OWN.url()).contains(jdbc.queryForObject("select current_database()", String.class));
    mail.reset();
    mail.post("a");
    outbox.assertThatOutbox().hasPublishedExactly("mail", 1);
    assertThat(outbox.drain("mail").runs()).isEqualTo(1);
    assertThat(mail.sent()).containsExactly("a");
    mail.post("left for the next test");
  }
}
