package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.SubscriberState;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** Who starts and stops the subscribers, and what health and the schema have to do with it. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class OutboxLifecycleIT extends StarterFixture {

  OutboxLifecycleIT(TestDatabase database) {
    super(database);
  }

  /** Handles nothing that is published here. */
  static final class Mail {
    @OutboxHandler(queue = "mail", type = "sent")
    void handle(String body) {}
  }

  private static String status(ApplicationContext context) {
    return ShownHealth.of(context).status();
  }

  private static void publish(ApplicationContext context, String queue) {
    OutboxMessage message = OutboxMessage.to(queue).type("sent").body("x").build();
    new TransactionTemplate(context.getBean(PlatformTransactionManager.class))
        .executeWithoutResult(status -> context.getBean(OutboxTemplate.class).publish(message));
  }

  @Test
  void isHealthyWhileNobodyWasToStartTheSubscribersAndNotAfterTheyWereStopped() {
    service()
        .withBean(Mail.class)
        .withPropertyValues("outbox4j.auto-start=false")
        .run(
            context -> {
              assertThat(status(context)).isEqualTo("UP");
              OutboxLifecycle lifecycle = context.getBean(OutboxLifecycle.class);
              assertThat(lifecycle.health())
                  .singleElement()
                  .satisfies(health -> assertThat(health.state()).isEqualTo(SubscriberState.NEW));
              lifecycle.start();
              await().until(() -> status(context).equals("UP"));
              lifecycle.stop();
              assertThat(status(context)).isEqualTo("DOWN");
            });
  }

  @Test
  void healthLeavesTheSchemaOutIfItIsNotValidated() {
    service()
        .withBean(Mail.class)
        .withPropertyValues("outbox4j.validate=false", "outbox4j.auto-start=false")
        .run(
            context -> {
              database.update("alter table " + schema + ".outbox rename column payload to body");
              assertThat(status(context)).isEqualTo("UP");
              assertThat(ShownHealth.of(context).details())
                  .containsEntry("schema", "not validated");
            });
  }

  @Test
  void whoOnlyPublishesNeedNotSayWhereToListen() {
    new ApplicationContextRunner()
        .withConfiguration(AutoConfigurations.of(OutboxAutoConfiguration.class))
        .withBean(DataSource.class, () -> database.plain())
        .withBean(Mail.class)
        .withPropertyValues("outbox4j.schema=" + schema, "outbox4j.auto-start=false")
        .run(context -> assertThat(context).hasNotFailed());
  }

  @Test
  void refusesASettingOfAQueueThatNobodyWouldRead() {
    service()
        .withBean(Mail.class)
        .withPropertyValues(
            "outbox4j.queues.mail.workers=2", "outbox4j.queues.mail.urgent.workers=8")
        .run(
            context ->
                assertThat(context)
                    .getFailure()
                    .rootCause()
                    .hasMessageContaining("outbox4j.queues.mail.urgent.workers")
                    .hasMessageContaining("brackets"));
  }

  @Test
  void refusesASettingThatDoesNotExistBeforeItMakesATable() {
    service()
        .withBean(Mail.class)
        .withPropertyValues(
            "outbox4j.tabel=mail",
            "outbox4j.listener.url=jdbc:postgresql://db/shop",
            "outbox4j.subscriber.handler-timout=1m")
        .run(
            context ->
                assertThat(context)
                    .getFailure()
                    .rootCause()
                    .hasMessageContaining("outbox4j.tabel (outbox4j.table is near)")
                    .hasMessageContaining("outbox4j.listener.url (outbox4j.listen.url is near)")
                    .hasMessageContaining("(outbox4j.subscriber.handler-timeout is near)"));
    assertThat(
            database.one(Long.class, "select count(*) from pg_namespace where nspname = ?", schema))
        .isZero();
  }

  @Test
  void refusesSettingsOfAQueueThatNobodyHandlesUnlessTheyAreAllowed() {
    ApplicationContextRunner other =
        service().withBean(Mail.class).withPropertyValues("outbox4j.queues.post.workers=2");
    other.run(context -> assertThat(context).getFailure().hasMessageContaining("[post]"));
    other
        .withPropertyValues("outbox4j.allow-unhandled-queues=true")
        .run(context -> assertThat(context).hasNotFailed());
  }

  @Test
  void takesSettingsOfAQueueInEachSpellingAndWithDotsInBrackets() {
    service()
        .withBean(Mail.class)
        .withBean(Dotted.class)
        .withPropertyValues(
            "outbox4j.queues.mail.pollMin=20ms",
            "outbox4j.queues.mail.poll_max=2s",
            "outbox4j.queues.mail.retry.max-total-time=1h",
            "outbox4j.queues[mail.urgent].workers=8")
        .run(context -> assertThat(context).hasNotFailed());
  }

  /** Has a queue with a dot in its name. */
  static final class Dotted {
    @OutboxHandler(queue = "mail.urgent", type = "sent")
    void handle(String body) {}
  }

  @Test
  void leavesTheSubscribersOfAParentContextToTheParent() {
    service()
        .withUserConfiguration(OwnSubscriber.class)
        .run(
            parent -> {
              await().until(() -> status(parent).equals("UP"));
              service()
                  .withParent(parent)
                  .run(
                      child -> assertThat(child.getBean(OutboxLifecycle.class).health()).isEmpty());
              assertThat(parent.getBean(OutboxSubscriber.class).health().state())
                  .isEqualTo(SubscriberState.RUNNING);
            });
  }

  /** Closes the context that calls it. */
  static final class Closing {
    final CountDownLatch closed = new CountDownLatch(1);
    private final ConfigurableApplicationContext context;

    Closing(ConfigurableApplicationContext context) {
      this.context = context;
    }

    @OutboxHandler(queue = "last", type = "sent")
    void handle(String body) {
      context.close();
      closed.countDown();
    }
  }

  @Test
  void aHandlerThatClosesTheContextEndsWithTheGracefulTimeout() {
    service()
        .withBean(Closing.class)
        .withPropertyValues("outbox4j.subscriber.graceful-timeout=1s")
        .run(
            context -> {
              CountDownLatch closed = context.getBean(Closing.class).closed;
              publish(context, "last");
              assertThat(closed.await(30, TimeUnit.SECONDS)).as("closed within 30 s").isTrue();
              assertThat(context.getSourceApplicationContext().isActive()).isFalse();
            });
  }

  @Test
  void neitherAPasswordNorAUrlThatMayHoldOneIsPrinted() {
    String url = "jdbc:postgresql://db/shop?password=secret";
    assertThat(new OutboxProperties.Listen(true, url, "shop", "secret").toString())
        .doesNotContain("secret");
    assertThat(new PoolTarget(url, "shop", "secret", new Properties()).toString())
        .doesNotContain("secret");
  }

  @Test
  void namesTheKindOfAUrlThatOnlyADriverAroundPgjdbcReads() {
    service()
        .withBean(Mail.class)
        .withPropertyValues("outbox4j.listen.url=jdbc:p6spy:postgresql://db/shop?password=secret")
        .run(
            context ->
                assertThat(context)
                    .getFailure()
                    .rootCause()
                    .hasMessageContaining("jdbc:p6spy:")
                    .hasMessageContaining("outbox4j.listen.url")
                    .hasMessageNotContaining("secret"));
  }
}
