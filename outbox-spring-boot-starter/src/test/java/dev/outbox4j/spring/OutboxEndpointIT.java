package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spring.OutboxEndpoint.DeadLetters;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Instant;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** What the endpoint shows where outboxes share dead letters, of many, and in an outage. */
@ExtendWith(PostgresExtension.class)
class OutboxEndpointIT extends StarterFixture {
  private static final Instant OLDEST = Instant.parse("2026-01-01T00:00:01Z");

  OutboxEndpointIT(TestDatabase database) {
    super(database);
  }

  static final class Mail {
    @OutboxHandler(queue = "mail", type = "sent")
    void handle(String body) {}
  }

  private ApplicationContextRunner exposed() {
    return service()
        .withBean(Mail.class)
        .withPropertyValues(
            "management.endpoints.web.exposure.include=outbox", "outbox4j.auto-start=false");
  }

  /** The n-th fails n seconds into the year. */
  private void deadLetters(String outbox, String queue, int count) {
    database.update(
        """
        insert into %s.outbox_dlq (outbox, original_id, lease_token, queue, payload,
          deliveries_count, attempts_count, created_at, available_at, failed_at, failure_reason)
        select ?, i, 1, ?, '', 1, 1, now(), now(),
          timestamptz '2026-01-01 00:00:00Z' + make_interval(secs => i), 'rejected'
        from generate_series(1, ?) i
        """
            .formatted(schema),
        outbox,
        queue,
        count);
  }

  @Test
  void countsTheDeadLettersOfEachQueueOfThisOutbox() {
    exposed()
        .run(
            context -> {
              deadLetters(schema + ".outbox", "many", 10_001);
              deadLetters(schema + ".outbox", "full", 10_000);
              deadLetters(schema + ".outbox", "some", 3);
              deadLetters(schema + ".other", "some", 2);
              deadLetters(schema + ".other", "elsewhere", 2);
              deadLetters(schema + ".outbox", "resolved", 1);
              database.update(
                  "update %s.outbox_dlq set resolved_at = now() where queue = 'resolved'"
                      .formatted(schema));
              OutboxEndpoint.Overview overview = context.getBean(OutboxEndpoint.class).overview();
              assertThat(overview.error()).isNull();
              assertThat(overview.deadLetters())
                  .containsExactly(
                      new DeadLetters("full", 10_000, false, OLDEST, OLDEST.plusSeconds(9_999)),
                      new DeadLetters("many", 10_000, true, OLDEST, OLDEST.plusSeconds(10_000)),
                      new DeadLetters("some", 3, false, OLDEST, OLDEST.plusSeconds(2)));
            });
  }

  @Test
  void lettersOfOtherOutboxesDoNotCountHoweverMany() {
    exposed()
        .run(
            context -> {
              deadLetters(schema + ".other", "others", 20_000);
              deadLetters(schema + ".other", "few", 20_000);
              deadLetters(schema + ".outbox", "few", 1);
              OutboxEndpoint.Overview overview = context.getBean(OutboxEndpoint.class).overview();
              assertThat(overview.error()).isNull();
              assertThat(overview.deadLetters())
                  .containsExactly(new DeadLetters("few", 1, false, OLDEST, OLDEST));
            });
  }

  @Test
  void showsTheQueuesAndSaysSoIfTheDeadLettersCannotBeReadInTime() {
    exposed()
        .run(
            context -> {
              try (Connection stranger = database.plain().getConnection();
                  Statement lock = stranger.createStatement()) {
                stranger.setAutoCommit(false);
                lock.execute("lock table " + schema + ".outbox_dlq");
                OutboxEndpoint.Overview overview = context.getBean(OutboxEndpoint.class).overview();
                assertThat(overview.queues()).isEmpty();
                assertThat(overview.error())
                    .isEqualTo("The dead letters cannot be read within 5 s; count them by SQL");
              }
            });
  }

  @Test
  void showsTheSubscribersAlsoWithoutADatabase() {
    exposed()
        .run(
            context -> {
              context.getBean(HikariDataSource.class).close();
              OutboxEndpoint.Overview overview = context.getBean(OutboxEndpoint.class).overview();
              assertThat(overview.subscribers()).containsOnlyKeys("mail");
              assertThat(overview.queues()).isNull();
              assertThat(overview.deadLetters()).isNull();
              assertThat(overview.error()).contains("counting queues");
            });
  }

  @Test
  void showsTheQueuesAlsoWithoutATableOfDeadLetters() {
    exposed()
        .run(
            context -> {
              database.update("drop table " + schema + ".outbox_dlq");
              OutboxEndpoint.Overview overview = context.getBean(OutboxEndpoint.class).overview();
              assertThat(overview.queues()).isEmpty();
              assertThat(overview.deadLetters()).isNull();
              assertThat(overview.error())
                  .isEqualTo("The dead letters cannot be read (SQLState 42P01)");
            });
  }
}
