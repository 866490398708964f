package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.metrics.MicrometerMetrics;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.QueuePauses;
import dev.outbox4j.postgres.SchemaValidator;
import dev.outbox4j.postgres.metrics.OutboxDepthMetrics;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.PayloadCodec;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.assertj.AssertableApplicationContext;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.test.util.AopTestUtils;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionTemplate;

@ExtendWith(PostgresExtension.class)
class OutboxAutoConfigurationIT extends StarterFixture {

  OutboxAutoConfigurationIT(TestDatabase database) {
    super(database);
  }

  record Placed(String order, Instant at) {}

  static class Shop {
    final BlockingQueue<Object> seen = new LinkedBlockingQueue<>();

    @OutboxHandler(queue = "orders", type = "placed")
    void ship(Placed placed) {
      seen.add(placed);
    }

    @OutboxHandler(queue = "orders", type = "listed")
    void list(List<Placed> all, Delivery delivery) {
      seen.add(all.get(0));
    }

    @OutboxHandler(queue = "mail", type = "fails")
    void fail(String body) {
      throw new IllegalStateException("no mail today");
    }

    @OutboxHandler(queue = "mail", type = "thread")
    void thread(String body) throws ReflectiveOperationException {
      seen.add(Thread.class.getMethod("isVirtual").invoke(Thread.currentThread()));
    }

    Object next() throws InterruptedException {
      Object next = seen.poll(30, TimeUnit.SECONDS);
      assertThat(next).as("a message within 30 s").isNotNull();
      return next;
    }
  }

  private ApplicationContextRunner shop() {
    return service().withBean(Shop.class);
  }

  private static void publish(ApplicationContext context, OutboxMessage.Builder message) {
    new TransactionTemplate(context.getBean(PlatformTransactionManager.class))
        .executeWithoutResult(
            status -> context.getBean(OutboxTemplate.class).publish(message.build()));
  }

  /** Of the queue of orders. */
  private static SubscriberHealth health(ApplicationContext context) {
    return context.getBean(OutboxLifecycle.class).health().stream()
        .filter(health -> health.subscriber().equals("orders"))
        .findFirst()
        .orElseThrow();
  }

  private static OutboxMessage.Builder placed(Object body) {
    return OutboxMessage.to("orders").type("placed").body(body);
  }

  @Test
  void handsMessagesToMethodsWithTheirBodiesDecoded() {
    shop()
        .run(
            context -> {
              Placed first = new Placed("o-1", Instant.parse("2026-01-02T03:04:05Z"));
              publish(context, placed(first));
              assertThat(context.getBean(Shop.class).next()).isEqualTo(first);
              publish(
                  context, OutboxMessage.to("orders").type("listed").body(List.of(first, first)));
              assertThat(context.getBean(Shop.class).next()).isEqualTo(first);
              await().until(() -> rows("outbox") == 0);
            });
  }

  @Test
  void listensWhereThePoolConnects() {
    shop()
        .withPropertyValues(
            "outbox4j.subscriber.poll-max=1h", "outbox4j.subscriber.poll-without-listener=1h")
        .run(
            context -> {
              await()
                  .until(
                      () ->
                          context.getBean(OutboxLifecycle.class).health().stream()
                              .allMatch(health -> health.listener().name().equals("UP")));
              publish(context, placed(new Placed("o-1", Instant.EPOCH)));
              assertThat(context.getBean(Shop.class).next()).isInstanceOf(Placed.class);
            });
  }

  @Test
  void pollsIfTheListenerIsSwitchedOff() {
    shop()
        .withPropertyValues("outbox4j.listen.enabled=false")
        .run(
            context -> {
              assertThat(context).doesNotHaveBean(NotificationSource.class);
              publish(context, placed(new Placed("o-1", Instant.EPOCH)));
              assertThat(context.getBean(Shop.class).next()).isInstanceOf(Placed.class);
            });
  }

  @Test
  void settingsOfAQueueWinOverThoseOfAll() {
    shop()
        .withPropertyValues(
            "outbox4j.subscriber.retry.attempts=9",
            "outbox4j.subscriber.retry.initial=1h",
            "outbox4j.subscriber.retry.max=1h",
            "outbox4j.queues.mail.retry.attempts=2",
            "outbox4j.queues.mail.retry.initial=1ms")
        .run(
            context -> {
              publish(context, OutboxMessage.to("mail").type("fails").body("x"));
              await().until(() -> rows("outbox_dlq") == 1);
              assertThat(
                      database.one(
                          Integer.class, "select attempts_count from " + schema + ".outbox_dlq"))
                  .isEqualTo(2);
            });
    refusesToStart("workers is 0", "outbox4j.queues.mail.workers=0");
    refusesToStart("batchSize is 0", "outbox4j.subscriber.batch-size=0");
    shop()
        .withPropertyValues(
            "outbox4j.subscriber.handler-timeout=10s",
            "outbox4j.queues.mail.unlimited-handler-time=true",
            "outbox4j.subscriber.unlimited-deliveries=true",
            "outbox4j.queues.mail.max-deliveries=50")
        .run(context -> assertThat(context).hasNotFailed());
  }

  @Test
  void aCustomizerSetsWhatNoPropertySets() {
    shop()
        .withBean(
            OutboxSubscriberCustomizer.class,
            () ->
                (queue, builder) -> {
                  if (queue.equals("mail")) {
                    builder.retry("fails", RetryPolicy.none());
                  }
                })
        .run(
            context -> {
              publish(context, OutboxMessage.to("mail").type("fails").body("x"));
              await().until(() -> rows("outbox_dlq") == 1);
            });
  }

  @Test
  void deletesTerminalFailuresIfThatIsSaid() {
    shop()
        .withPropertyValues(
            "outbox4j.delete-terminal-failures=true", "outbox4j.subscriber.retry.attempts=1")
        .run(
            context -> {
              publish(context, OutboxMessage.to("mail").type("fails").body("x"));
              await().until(() -> rows("outbox") == 0);
              assertThat(rows("outbox_dlq")).isZero();
            });
  }

  @Test
  void refusesToStartWithSettingsOfAQueueThatNothingHandles() {
    refusesToStart(
        "outbox4j.queues has settings for [ordres], and no @OutboxHandler handles that queue"
            + " (handled are [mail, orders])",
        "outbox4j.queues.ordres.workers=2");
  }

  @Test
  void keepsTheOrderOfQueuesThatAreToBeOrdered() {
    shop()
        .withPropertyValues("outbox4j.ordered-queues=orders")
        .run(
            context -> {
              for (int i = 0; i < 20; i++) {
                publish(
                    context,
                    placed(new Placed("o-" + i, Instant.EPOCH)).orderingKey("same customer"));
              }
              for (int i = 0; i < 20; i++) {
                assertThat(context.getBean(Shop.class).next())
                    .isEqualTo(new Placed("o-" + i, Instant.EPOCH));
              }
              assertThat(rows("outbox_buckets where queue = 'orders' and owner is not null"))
                  .isEqualTo(64);
              assertThat(context.getBean(SchemaValidator.class).validateSchema())
                  .hasToString("valid");
            });
  }

  @Test
  void letsKeysOfAnOrderedQueueWaitForTheirDeadLetters() {
    shop()
        .withPropertyValues(
            "outbox4j.ordered-queues=orders",
            "outbox4j.subscriber.hold-key-on-dead-letter=true",
            "outbox4j.subscriber.retry.attempts=1")
        .run(
            context -> {
              publish(
                  context,
                  OutboxMessage.to("orders").type("placed").orderingKey("k").body("no JSON"));
              publish(context, placed(new Placed("waits", Instant.EPOCH)).orderingKey("k"));
              await()
                  .untilAsserted(
                      () ->
                          assertThat(health(context).order())
                              .hasValueSatisfying(order -> assertThat(order.keysOnHold()).isOne()));
              publish(context, placed(new Placed("goes", Instant.EPOCH)).orderingKey("other"));
              assertThat(context.getBean(Shop.class).next())
                  .isEqualTo(new Placed("goes", Instant.EPOCH));
            });
  }

  @Test
  void pausesAndResumesAQueueIfQueuesCanBePaused() {
    shop()
        .withPropertyValues("outbox4j.pausable=true")
        .run(
            context -> {
              QueuePauses pauses = context.getBean(PostgresOutbox.class).pauses();
              assertThat(pauses.pause("orders", "ada", "a try")).isTrue();
              await()
                  .untilAsserted(
                      () -> assertThat(health(context).pausedQueues()).hasValue(Set.of("orders")));
              publish(context, placed(new Placed("waits", Instant.EPOCH)));
              assertThat(rows("outbox where queue = 'orders'")).isOne();
              assertThat(context.getBean(SchemaValidator.class).validateSchema())
                  .hasToString("valid");
              assertThat(pauses.resume("orders", "ada")).isTrue();
              assertThat(context.getBean(Shop.class).next())
                  .isEqualTo(new Placed("waits", Instant.EPOCH));
            });
  }

  @Test
  void aLimitOfAQueueMakesItsSlotsAndNoOthers() {
    shop()
        .withPropertyValues("outbox4j.queues.orders.concurrency-limit=2")
        .run(
            context -> {
              assertThat(context.getBean(SchemaValidator.class).validateSchema())
                  .hasToString("valid");
              publish(context, placed(new Placed("limited", Instant.EPOCH)));
              publish(context, OutboxMessage.to("mail").type("fails").body("x"));
              assertThat(context.getBean(Shop.class).next())
                  .isEqualTo(new Placed("limited", Instant.EPOCH));
              await().until(() -> rows("outbox where queue = 'mail' and attempts_count > 0") == 1);
              assertThat(rows("outbox_slots where queue = 'orders'")).isEqualTo(2);
              assertThat(rows("outbox_slots")).isEqualTo(2);
            });
  }

  @Test
  void namesThePropertyThatDedupKeysNeed() {
    shop()
        .run(
            context ->
                assertThatThrownBy(
                        () ->
                            publish(
                                context,
                                placed(new Placed("once", Instant.EPOCH))
                                    .dedupKey("k", Duration.ofHours(1))))
                    .hasMessageContaining("(with Spring Boot: outbox4j.dedup-keys=true)"));
  }

  @Test
  void publishesOncePerDedupKeyIfThereMayBeSuch() {
    shop()
        .withPropertyValues("outbox4j.dedup-keys=true")
        .run(
            context -> {
              assertThat(context.getBean(SchemaValidator.class).validateSchema())
                  .hasToString("valid");
              publish(
                  context,
                  placed(new Placed("once", Instant.EPOCH)).dedupKey("k", Duration.ofHours(1)));
              assertThat(context.getBean(Shop.class).next())
                  .isEqualTo(new Placed("once", Instant.EPOCH));
              publish(
                  context,
                  placed(new Placed("twice", Instant.EPOCH)).dedupKey("k", Duration.ofHours(1)));
              publish(context, placed(new Placed("another", Instant.EPOCH)));
              assertThat(context.getBean(Shop.class).next())
                  .isEqualTo(new Placed("another", Instant.EPOCH));
            });
  }

  @Test
  void refusesToStartWithAnOrderedQueueThatNothingHandles() {
    refusesToStart(
        "outbox4j.ordered-queues names [ordres], and no @OutboxHandler handles that queue",
        "outbox4j.ordered-queues=ordres");
  }

  @Test
  void refusesToStartWithAPoolThatIsTooSmallForAllSubscribersTogether() {
    refusesToStart("needs", "spring.datasource.hikari.maximum-pool-size=3");
  }

  @Test
  void refusesToStartWithASchemaThatDoesNotFit() {
    refusesToStart("outbox", "outbox4j.migrate=false");
    shop()
        .withPropertyValues("outbox4j.migrate=false", "outbox4j.validate=false")
        .run(context -> assertThat(context).hasNotFailed());
  }

  @Test
  void refusesToStartWithoutADataSourceOrWithTwo() {
    new ApplicationContextRunner()
        .withConfiguration(AutoConfigurations.of(OutboxAutoConfiguration.class))
        .run(
            context ->
                assertThat(rootCause(context.getStartupFailure()))
                    .hasMessageContaining("needs a DataSource bean, and there is none"));
    ApplicationContextRunner two =
        shop()
            .withBean("one", DataSource.class, () -> database.plain())
            .withBean("other", DataSource.class, () -> database.plain())
            .withPropertyValues("outbox4j.listen.enabled=false");
    two.run(
        context ->
            assertThat(rootCause(context.getStartupFailure()))
                .hasMessageContaining("there is more than one; mark one with @Primary"));
    two.withUserConfiguration(Marked.class).run(context -> assertThat(context).hasNotFailed());
  }

  @Configuration(proxyBeanMethods = false)
  static class Marked {
    @Bean
    @OutboxDataSource
    DataSource marked(@Qualifier("one") DataSource one) {
      return one;
    }
  }

  @Test
  void saysWhatToDoIfItCannotSeeWhereToListen() {
    service()
        .withBean(DataSource.class, () -> database.plain())
        .withBean(Shop.class)
        .run(
            context ->
                assertThat(rootCause(context.getStartupFailure()))
                    .hasMessageContaining("set outbox4j.listen.url"));
    service()
        .withBean(DataSource.class, () -> database.plain())
        .withBean(Shop.class)
        .withPropertyValues(
            "outbox4j.listen.url=" + url(),
            "outbox4j.listen.username=" + database.server().user(),
            "outbox4j.listen.password=" + database.server().password())
        .run(
            context -> {
              assertThat(context).hasNotFailed();
              await()
                  .until(
                      () ->
                          context.getBean(OutboxLifecycle.class).health().stream()
                              .allMatch(health -> health.listener().name().equals("UP")));
            });
  }

  @Test
  void migratesAfterTheServicesOwnFlywayAndLeavesThatAlone() {
    shop()
        .withPropertyValues(
            "spring.flyway.enabled=true",
            "spring.flyway.schemas=" + schema,
            "spring.flyway.locations=classpath:starter-test/migration")
        .run(
            context -> {
              assertThat(context).hasNotFailed();
              assertThat(rows("orders")).isZero();
              assertThat(rows("outbox")).isZero();
              assertThat(rows("outbox_dlq")).isZero();
            });
    // and a second start, with nothing left to do
    shop().run(context -> assertThat(context).hasNotFailed());
  }

  @Test
  void takesJackson2sMapperWhereThereIsNoOther() {
    serviceWithoutBootsMapper()
        .withBean(ObjectMapper.class, ObjectMapper::new)
        .run(
            context ->
                assertThat(context).getBean(PayloadCodec.class).isInstanceOf(Jackson2Codec.class));
    serviceWithoutBootsMapper()
        .run(context -> assertThat(context).doesNotHaveBean(PayloadCodec.class));
  }

  private ApplicationContextRunner serviceWithoutBootsMapper() {
    return new ApplicationContextRunner()
        .withConfiguration(AutoConfigurations.of(OutboxAutoConfiguration.class))
        .withBean(DataSource.class, () -> database.plain())
        .withPropertyValues("outbox4j.listen.enabled=false", "outbox4j.schema=" + schema);
  }

  @Test
  void countsInTheRegistryOfTheContext() {
    shop()
        .withBean(SimpleMeterRegistry.class)
        .run(
            context -> {
              assertThat(context).hasSingleBean(MicrometerMetrics.class);
              publish(context, placed(new Placed("o-1", Instant.EPOCH)));
              SimpleMeterRegistry registry = context.getBean(SimpleMeterRegistry.class);
              await()
                  .until(
                      () ->
                          registry.find("outbox.acked").tag("queue", "orders").counters().stream()
                                  .mapToDouble(counter -> counter.count())
                                  .sum()
                              == 1);
            });
  }

  @Test
  void showsTheDepthsOfAllQueuesAlsoOfThoseThatNobodySubscribesTo() {
    shop()
        .withBean(SimpleMeterRegistry.class)
        .withPropertyValues(
            "outbox4j.depth-metrics.enabled=true", "outbox4j.depth-metrics.interval=1s")
        .run(
            context -> {
              publish(context, OutboxMessage.to("nobody").type("t").body("x"));
              SimpleMeterRegistry registry = context.getBean(SimpleMeterRegistry.class);
              await()
                  .atMost(Duration.ofSeconds(30))
                  .until(
                      () ->
                          registry
                              .find("outbox.depth.ready")
                              .tag("queue", "nobody")
                              .gauges()
                              .stream()
                              .anyMatch(gauge -> gauge.value() == 1));
            });
    shop()
        .withBean(SimpleMeterRegistry.class)
        .withPropertyValues("outbox4j.depth-metrics.enabled=false")
        .run(context -> assertThat(context).doesNotHaveBean(OutboxDepthMetrics.class));
  }

  @Test
  void showsHealthWithTheSchemaAndEachSubscriber() {
    shop()
        .run(
            context -> {
              await().until(() -> ShownHealth.of(context).status().equals("UP"));
              assertThat(ShownHealth.of(context).details()).containsEntry("schema", "valid");
              assertThat(ShownHealth.of(context).details().get("subscribers"))
                  .asInstanceOf(InstanceOfAssertFactories.map(String.class, Object.class))
                  .containsOnlyKeys("mail", "orders");

              database.update("alter table " + schema + ".outbox rename column payload to body");
              ShownHealth down = ShownHealth.of(context);
              assertThat(down.status()).isEqualTo("DOWN");
              assertThat(down.details().get("schema").toString()).contains("payload");
              database.update("alter table " + schema + ".outbox rename column body to payload");

              context.getBean(OutboxLifecycle.class).stop();
              assertThat(ShownHealth.of(context).status()).isEqualTo("DOWN");
            });
    shop()
        .withPropertyValues("management.health.outbox.enabled=false")
        .run(context -> assertThat(context).doesNotHaveBean(ShownHealth.INDICATOR));
  }

  @Test
  void showsSubscribersQueuesAndDeadLettersAtTheEndpoint() {
    shop()
        .withPropertyValues(
            "management.endpoints.web.exposure.include=outbox",
            "outbox4j.subscriber.retry.attempts=1")
        .run(
            context -> {
              publish(context, OutboxMessage.to("mail").type("fails").body("x"));
              publish(context, OutboxMessage.to("nobody").type("t").body("x"));
              await().until(() -> rows("outbox_dlq") == 1);
              OutboxEndpoint.Overview overview = context.getBean(OutboxEndpoint.class).overview();
              assertThat(overview.subscribers()).containsOnlyKeys("mail", "orders");
              assertThat(overview.queues())
                  .filteredOn(queue -> queue.queue().equals("nobody"))
                  .singleElement()
                  .satisfies(queue -> assertThat(queue.ready()).isEqualTo(1));
              assertThat(overview.deadLetters())
                  .singleElement()
                  .satisfies(
                      dead -> {
                        assertThat(dead.queue()).isEqualTo("mail");
                        assertThat(dead.count()).isEqualTo(1);
                        assertThat(dead.oldest()).isEqualTo(dead.newest());
                      });
            });
  }

  @Test
  void theEndpointIsNotThereUnlessItIsExposed() {
    shop().run(context -> assertThat(context).doesNotHaveBean(OutboxEndpoint.class));
  }

  @Test
  void publishesOnlyIfSubscribersDoNotStart() {
    shop()
        .withPropertyValues("outbox4j.auto-start=false")
        .run(
            context -> {
              publish(context, placed(new Placed("o-1", Instant.EPOCH)));
              assertThat(context.getBean(OutboxLifecycle.class).isRunning()).isFalse();
              assertThat(rows("outbox")).isEqualTo(1);
              context.getBean(OutboxLifecycle.class).start();
              assertThat(context.getBean(Shop.class).next()).isInstanceOf(Placed.class);
            });
  }

  @Test
  void isNotThereIfItIsSwitchedOff() {
    shop()
        .withPropertyValues("outbox4j.enabled=false")
        .run(context -> assertThat(context).doesNotHaveBean(OutboxTemplate.class));
  }

  @EnabledForJreRange(min = JRE.JAVA_21)
  @Test
  void runsHandlersOnVirtualThreadsAsBootsPropertySays() {
    shop()
        .withPropertyValues("spring.threads.virtual.enabled=true")
        .run(
            context -> {
              publish(context, OutboxMessage.to("mail").type("thread").body("x"));
              assertThat(context.getBean(Shop.class).next()).isEqualTo(true);
            });
    shop()
        .run(
            context -> {
              publish(context, OutboxMessage.to("mail").type("thread").body("x"));
              assertThat(context.getBean(Shop.class).next()).isEqualTo(false);
            });
  }

  static class Slow {
    final CountDownLatch begun = new CountDownLatch(1);
    final CountDownLatch release = new CountDownLatch(1);

    @OutboxHandler(queue = "slow", type = "t")
    void handle(String body) throws InterruptedException {
      begun.countDown();
      release.await();
    }
  }

  /** Stops when it is told to; Spring stops higher phases first. */
  static class WebServer implements SmartLifecycle {
    final Slow slow;
    final TestDatabase database;
    final String schema;
    volatile boolean running;
    volatile long rowsWhenStopped = -1;

    WebServer(Slow slow, TestDatabase database, String schema) {
      this.slow = slow;
      this.database = database;
      this.schema = schema;
    }

    @Override
    public void start() {
      running = true;
    }

    @Override
    public void stop() {
      rowsWhenStopped = database.count(schema + ".outbox");
      running = false;
    }

    @Override
    public boolean isRunning() {
      return running;
    }

    @Override
    public int getPhase() {
      return SmartLifecycle.DEFAULT_PHASE - 1024; // that of the web server's graceful shutdown
    }
  }

  @Test
  void drainsBeforeTheWebServerStops() {
    Slow slow = new Slow();
    WebServer server = new WebServer(slow, database, schema);
    service()
        .withBean(Slow.class, () -> slow)
        .withBean(WebServer.class, () -> server)
        .run(
            context -> {
              publish(context, OutboxMessage.to("slow").type("t").body("x"));
              assertThat(slow.begun.await(30, TimeUnit.SECONDS)).isTrue();
              Thread closer = new Thread(context::close, "test-closer");
              closer.start();
              // draining: health says so while the handler still runs
              await()
                  .until(
                      () ->
                          context
                              .getBean(OutboxLifecycle.class)
                              .health()
                              .get(0)
                              .state()
                              .name()
                              .equals("DRAINING"));
              assertThat(server.running).isTrue();
              slow.release.countDown();
              closer.join(30_000);
              assertThat(server.running).isFalse();
              assertThat(server.rowsWhenStopped).as("acked before the server stopped").isZero();
            });
  }

  @Configuration(proxyBeanMethods = false)
  @EnableTransactionManagement(proxyTargetClass = true)
  static class Transactions {}

  static class Transacted {
    final BlockingQueue<Boolean> seen = new LinkedBlockingQueue<>();
    final OutboxTemplate outbox;

    Transacted(OutboxTemplate outbox) {
      this.outbox = outbox;
    }

    @Transactional
    @OutboxHandler(queue = "chain", type = "first")
    public void first(String body) {
      outbox.publish(OutboxMessage.to("chain").type("second").body(body).build());
    }

    @OutboxHandler(queue = "chain", type = "second")
    public void second(String body) {
      received().add(true);
    }

    BlockingQueue<Boolean> received() {
      return seen;
    }
  }

  @Test
  void aHandlerIsCalledThroughItsProxy() {
    service()
        .withUserConfiguration(Transactions.class)
        .withBean(Transacted.class)
        .run(
            context -> {
              publish(context, OutboxMessage.to("chain").type("first").body("x"));
              Transacted target = AopTestUtils.getTargetObject(context.getBean(Transacted.class));
              assertThat(target.received().poll(30, TimeUnit.SECONDS)).isTrue();
            });
  }

  private void refusesToStart(String text, String... properties) {
    shop()
        .withPropertyValues(properties)
        .run(
            (AssertableApplicationContext context) ->
                assertThat(rootCause(context.getStartupFailure())).hasMessageContaining(text));
  }

  private static Throwable rootCause(@Nullable Throwable failure) {
    assertThat(failure).as("a start that fails").isNotNull();
    Throwable root = failure;
    while (root.getCause() != null) {
      root = root.getCause();
    }
    return root;
  }
}
