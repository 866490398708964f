package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** Which grants a service's start asks for, where its role owns nothing. */
@ExtendWith(PostgresExtension.class)
class GrantsAtStartIT extends StarterFixture {
  private static final String[] ALL = {
    "outbox4j.pausable=true",
    "outbox4j.dedup-keys=true",
    "outbox4j.ordered-queues=orders",
    "outbox4j.queues.mail.concurrency-limit=2",
  };

  private final String role = "role_" + schema.substring(schema.length() - 12);

  GrantsAtStartIT(TestDatabase database) {
    super(database);
  }

  @BeforeEach
  void ownerMigrates() {
    database.update("create role " + role + " login password 'p'");
    service()
        .withBean(Handlers.class)
        .withPropertyValues(ALL)
        .withPropertyValues("outbox4j.auto-start=false")
        .run(context -> assertThat(context).hasNotFailed());
  }

  @AfterEach
  void dropRole() {
    database.update("drop owned by " + role);
    database.update("drop role " + role);
  }

  static final class Handlers {
    @OutboxHandler(queue = "orders", type = "placed")
    void place(String body) {}

    @OutboxHandler(queue = "mail", type = "sent")
    void send(String body) {}
  }

  static final class Publishes {
    Publishes(OutboxTemplate template) {
      assertThat(template).isNotNull();
    }
  }

  private ApplicationContextRunner asRole() {
    return service()
        .withPropertyValues(
            "spring.datasource.username=" + role,
            "spring.datasource.password=p",
            "outbox4j.listen.enabled=false",
            "outbox4j.migrate=false");
  }

  /** Returns the statements that the refusal prints. */
  private static List<String> missing(ApplicationContextRunner service) {
    List<String> statements = new ArrayList<>();
    service.run(
        context -> {
          assertThat(context).hasFailed();
          FailureAnalysis analysis =
              new OutboxFailureAnalyzer().analyze(context.getStartupFailure());
          assertThat(analysis).isNotNull();
          assertThat(analysis.getAction()).isNotBlank();
          analysis.getAction().lines().forEach(statements::add);
        });
    assertThat(statements).allMatch(statement -> statement.startsWith("grant "));
    return statements;
  }

  private static void starts(ApplicationContextRunner service) {
    service.run(context -> assertThat(context).hasNotFailed());
  }

  @Test
  void aServiceThatSubscribesStartsOnceTheStatementsOfTheRefusalHaveRun() {
    ApplicationContextRunner service = asRole().withBean(Handlers.class).withPropertyValues(ALL);
    List<String> statements = missing(service);
    assertThat(String.join("\n", statements))
        .contains("outbox_dlq", "outbox_buckets", "outbox_pauses", "outbox_slots", "delete")
        .doesNotContain("outbox_dedup\"");
    statements.forEach(database::update);
    starts(service);
  }

  @Test
  void aServiceThatOnlyPublishesNeedsTheGrantsOfAPublisherOnly() {
    List<String> statements = missing(asRole());
    assertThat(String.join("\n", statements))
        .contains("usage on schema", "insert (")
        .doesNotContain("update", "delete", "outbox_dlq");
    statements.forEach(database::update);
    starts(asRole());
    assertThat(missing(asRole().withBean(Handlers.class))).isNotEmpty();
  }

  @Test
  void aServiceThatSubscribesNeedsThoseOfAPublisherOnceABeanHasTheTemplate() {
    ApplicationContextRunner subscribes = asRole().withBean(Handlers.class);
    missing(subscribes).forEach(database::update);
    starts(subscribes);
    ApplicationContextRunner both = subscribes.withBean(Publishes.class);
    List<String> statements = missing(both);
    assertThat(String.join("\n", statements)).contains("insert (").doesNotContain("delete");
    statements.forEach(database::update);
    starts(both);
  }

  @Test
  void asksForNoGrantsOnTablesWhereThePropertySaysSo() {
    database.update("grant usage on schema " + schema + " to " + role);
    starts(
        asRole()
            .withBean(Handlers.class)
            .withPropertyValues("outbox4j.validate-grants=false", "outbox4j.auto-start=false"));
  }

  @Test
  void needsNoneOfASubscriberWhereHandlersAreNotStarted() {
    ApplicationContextRunner service =
        asRole()
            .withBean(Handlers.class)
            .withBean(Publishes.class)
            .withPropertyValues("outbox4j.auto-start=false");
    List<String> statements = missing(service);
    assertThat(String.join("\n", statements)).contains("insert (").doesNotContain("delete");
  }
}
