package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.test.context.assertj.AssertableApplicationContext;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** What the failure analyzer shows of starts that a value or a bean keeps from succeeding. */
@ExtendWith(PostgresExtension.class)
class StartRefusalsIT extends StarterFixture {
  private static final String TABLES =
      "select table_name from information_schema.tables where table_schema = ?";

  StartRefusalsIT(TestDatabase database) {
    super(database);
  }

  private static String analysis(AssertableApplicationContext context) {
    Throwable failure = context.getStartupFailure();
    assertThat(failure).as("a start that fails").isNotNull();
    FailureAnalysis analysis = new OutboxFailureAnalyzer().analyze(failure);
    assertThat(analysis).as("analysis of %s", failure).isNotNull();
    return analysis.getDescription() + " " + analysis.getAction();
  }

  private static void refuses(ApplicationContextRunner service, String... texts) {
    service.run(context -> assertThat(analysis(context)).contains(texts));
  }

  private void refuses(String property, String... texts) {
    refuses(service().withBean(SimpleMeterRegistry.class).withPropertyValues(property), texts);
  }

  @Test
  void namesThePropertyWhoseValueIsNotAllowed() {
    refuses("outbox4j.table=sales.outbox", "outbox4j.schema, outbox4j.table: ", "'sales.outbox'");
    refuses("outbox4j.schema=a.b", "outbox4j.schema, outbox4j.table: ", "'a.b'");
    refuses("outbox4j.dead-letter-table=1st", "outbox4j.dead-letter-table: ", "'1st'");
    refuses("outbox4j.dead-letter-table=outbox", "outbox4j.dead-letter-table: ", "another name");
    refuses("outbox4j.network-timeout=0", "outbox4j.network-timeout: ");
    refuses("outbox4j.depth-metrics.interval=500ms", "outbox4j.depth-metrics.interval: ", "PT1S");
    refuses("outbox4j.depth-metrics.table-tag=", "outbox4j.depth-metrics.table-tag: ");
  }

  @Test
  void refusesAStoreOfAnotherTableThanTheSettingsName() {
    service()
        .withPropertyValues("outbox4j.table=events")
        .run(
            parent -> {
              ApplicationContextRunner child = service().withParent(parent);
              refuses(
                  child.withPropertyValues("outbox4j.table=outbox"),
                  "events",
                  "outbox4j.table say",
                  "parent context");
              assertThat(database.list(String.class, TABLES, schema)).doesNotContain("outbox");
              child
                  .withPropertyValues("outbox4j.table=events")
                  .run(context -> assertThat(context).hasNotFailed());
            });
    refuses(
        service()
            .withBean(
                PostgresStore.class,
                () -> PostgresOutbox.on(database.plain(), OutboxTable.named("other")).store()),
        "other",
        "Set them to the store's table");
  }

  @Test
  void takesAStoreThatLeavesTheSchemaToTheSearchPath() {
    service()
        .withPropertyValues("outbox4j.validate=false")
        .withBean(
            PostgresStore.class,
            () -> PostgresOutbox.on(database.plain(), OutboxTable.named("outbox")).store())
        .run(context -> assertThat(context).hasNotFailed());
  }

  /** Has the name of the subscriber that {@link OutboxLifecycleIT.OwnSubscriber} declares. */
  static final class Own {
    @OutboxHandler(queue = "own", type = "sent")
    void handle(String body) {}
  }

  @Test
  void refusesTwoSubscribersOfOneName() {
    ApplicationContextRunner two =
        service().withBean(Own.class).withUserConfiguration(OutboxLifecycleIT.OwnSubscriber.class);
    refuses(two, "Two subscribers are named 'own'", "name(...)");
    refuses(two.withPropertyValues("outbox4j.auto-start=false"), "Two subscribers");
  }

  @Test
  void aRegistryTakesTheDepthsOfTwoTablesOfOneNameUnderTwoTags() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    ApplicationContextRunner counting =
        service()
            .withBean(SimpleMeterRegistry.class, () -> registry)
            .withPropertyValues("outbox4j.depth-metrics.enabled=true");
    counting.run(
        first -> {
          assertThat(first).hasNotFailed();
          counting
              .withPropertyValues("outbox4j.depth-metrics.table-tag=other")
              .run(
                  second -> {
                    assertThat(second).hasNotFailed();
                    assertThat(registry.find("outbox.depth.asking").gauges()).hasSize(2);
                  });
        });
  }

  @Test
  void saysHowToTellTwoTablesOfOneNameApart() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    ApplicationContextRunner counting =
        service()
            .withBean(SimpleMeterRegistry.class, () -> registry)
            .withPropertyValues("outbox4j.depth-metrics.enabled=true");
    counting.run(first -> refuses(counting, "outbox4j.depth-metrics.table-tag"));
  }
}
