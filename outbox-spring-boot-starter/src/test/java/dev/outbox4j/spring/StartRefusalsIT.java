package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import javax.sql.DataSource;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.test.context.assertj.AssertableApplicationContext;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** What the failure analyzer shows of starts that a value or a bean keeps from succeeding. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class StartRefusalsIT extends StarterFixture {
  private static final String TABLES =
      "select table_name from information_schema.tables where table_schema = ?";

  StartRefusalsIT(TestDatabase database) {
    super(database);
  }

  /** Each has what is wrong and what to do, in words of Spring: no method of a builder. */
  private static String analysis(AssertableApplicationContext context) {
    Throwable failure = context.getStartupFailure();
    assertThat(failure).as("a start that fails").isNotNull();
    FailureAnalysis analysis = new OutboxFailureAnalyzer().analyze(failure);
    assertThat(analysis).as("analysis of %s", failure).isNotNull();
    assertThat(analysis.getAction()).as("what to do about %s", failure).isNotBlank();
    String text = analysis.getDescription() + " " + analysis.getAction();
    assertThat(text).doesNotContainPattern("\\w\\((\\.\\.\\.|\\d*)\\)");
    return text;
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

  /** Has the name of the subscriber that {@link OwnSubscriber} declares. */
  static final class Own {
    @OutboxHandler(queue = "own", type = "sent")
    void handle(String body) {}
  }

  @Test
  void refusesTwoSubscribersOfOneName() {
    ApplicationContextRunner two =
        service().withBean(Own.class).withUserConfiguration(OwnSubscriber.class);
    refuses(two, "Two subscribers are named 'own'", "Give each a name of its own");
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

  record Item(String name) {}

  static class Orders {
    @OutboxHandler(queue = "orders", type = "placed")
    void place(Item item) {}
  }

  private ApplicationContextRunner orders(String... properties) {
    return service().withBean(Orders.class).withPropertyValues(properties);
  }

  private void refusesOrders(String properties, String... texts) {
    refuses(orders(properties.split(" ")), texts);
  }

  @ParameterizedTest
  @CsvSource({
    "workers=0, It must be 1 to 10000.",
    "batch-size=0, It must be 1 to 10000.",
    "concurrency-limit=0, It must be 1 to 1000.",
    "lease=1ms, It must be PT0.1S to PT24H.",
    "poll-min=0, It must be PT0.001S to PT1M.",
    "poll-max=2h, It must be PT0.01S to PT1H.",
    "poll-without-listener=0, It must be PT0.001S to PT1H.",
    "graceful-timeout=-1s, It must be PT0S to PT24H.",
    "handler-timeout=0, It must be PT0.001S to PT24H.",
    "max-deliveries=0, It must be 1 to",
    "retry.attempts=0, It must be 1 or more.",
    "retry.initial=0, It must be PT0.001S to",
    "retry.multiplier=0.5, It must be 1 or more.",
    "retry.max=0, It must be PT0.001S to",
    "retry.jitter=2, It must be 0 to 1.",
    "retry.max-total-time=0, It must be more than zero."
  })
  void namesThePropertyOfASubscriberThatIsOutOfRange(String setting, String action) {
    String property = setting.substring(0, setting.indexOf('='));
    String offline = "outbox4j.migrate=false outbox4j.validate=false ";
    refusesOrders(
        offline + "outbox4j.subscriber." + setting, "outbox4j.subscriber." + property, action);
    refusesOrders(
        offline + "outbox4j.queues.orders." + setting,
        "outbox4j.queues.orders." + property,
        action);
  }

  @Test
  void namesTheDurationWithoutAUnitBeforeItHasTablesMade() {
    refusesOrders(
        "outbox4j.subscriber.handler-timeout=30",
        "outbox4j.subscriber.handler-timeout=30 has no unit.",
        "Give it one, such as 30s, or 500ms for milliseconds.");
    assertThat(database.list(String.class, TABLES, schema)).isEmpty();
  }

  @Test
  void namesBothPollsWhereBothAreSet() {
    refusesOrders(
        "outbox4j.subscriber.poll-min=20s outbox4j.queues.orders.poll-max=10s",
        "outbox4j.subscriber.poll-min, outbox4j.queues.orders.poll-max: max poll is PT10S.",
        "It must be PT20S to PT1H.");
  }

  @Test
  void namesThePropertiesThatDoNotGoTogether() {
    String all = "outbox4j.subscriber.";
    String own = "outbox4j.queues.orders.";
    refusesOrders(
        all + "handler-timeout=1s " + all + "unlimited-handler-time=true",
        all + "handler-timeout and " + all + "unlimited-handler-time are both set.",
        "Set one of them.");
    refusesOrders(
        all + "handler-timeout=1s " + own + "graceful-timeout=0",
        own + "graceful-timeout is zero while " + all + "handler-timeout is set.");
    refusesOrders(
        own + "max-deliveries=5",
        own + "max-deliveries=5 is below the 10 attempts of a retry policy");
    refusesOrders(
        all + "max-deliveries=5 " + all + "unlimited-deliveries=true",
        "cannot be built, for 2 reasons:",
        all + "max-deliveries and " + all + "unlimited-deliveries are both set.",
        all + "max-deliveries=5 is below the 10 attempts");
    refusesOrders(
        "outbox4j.ordered-queues=orders " + own + "concurrency-limit=2",
        own + "concurrency-limit and 'orders' in outbox4j.ordered-queues are both set.");
    refusesOrders(
        own + "hold-key-on-dead-letter=true",
        own + "hold-key-on-dead-letter is set without 'orders' in outbox4j.ordered-queues.");
    refusesOrders(
        "outbox4j.ordered-queues=orders outbox4j.delete-terminal-failures=true "
            + own
            + "hold-key-on-dead-letter=true",
        own + "hold-key-on-dead-letter is set, and there are no dead letters.",
        "Use outbox4j.delete-terminal-failures=false.");
  }

  @Test
  void namesThePropertiesOfWhichOneWouldHaveNoEffect() {
    String all = "outbox4j.subscriber.";
    String own = "outbox4j.queues.orders.";
    refusesOrders(
        "outbox4j.delete-terminal-failures=true outbox4j.dead-letter-table=kept",
        "outbox4j.delete-terminal-failures=true and outbox4j.dead-letter-table=kept: what fails",
        "Drop one of the two.");
    refusesOrders(
        "outbox4j.delete-terminal-failures=true outbox4j.dead-letter-schema=kept",
        "outbox4j.dead-letter-schema=kept");
    refusesOrders(
        all + "hold-key-on-dead-letter=true",
        all + "hold-key-on-dead-letter=true and no outbox4j.ordered-queues",
        "Name the ordered queues, or drop it.");
    refusesOrders(
        all + "retry.initial=10m",
        all + "retry.initial=PT10M is above " + all + "retry.max, which is PT5M",
        "Lower the one, or raise the other.");
    refusesOrders(
        all + "retry.max=1h " + own + "retry.initial=2h",
        own + "retry.initial=PT2H is above " + all + "retry.max, which is PT1H");
    refusesOrders(
        all + "poll-without-listener=2s " + own + "poll-min=3s",
        own + "poll-min=PT3S is above " + all + "poll-without-listener=PT2S");
    refusesOrders(
        "outbox4j.delete-terminal-failures=true outbox4j.dead-letter-table=kept "
            + all
            + "retry.initial=10m",
        "2 settings do not go together:",
        "dead-letter-table=kept",
        "retry.initial=PT10M");
    assertThat(database.list(String.class, TABLES, schema)).as("made before").isEmpty();
  }

  @Test
  void aQueueWithoutSettingsOfItsOwnIsJudgedByThoseOfAllThoughOthersHaveTheirOwn() {
    refusesOrders(
        "outbox4j.subscriber.retry.initial=10m outbox4j.queues.elsewhere.retry.max=1h"
            + " outbox4j.allow-unhandled-queues=true",
        "outbox4j.subscriber.retry.initial=PT10M is above outbox4j.subscriber.retry.max, which is"
            + " PT5M");
  }

  @Test
  void aSwitchThatTurnsAPartOffLeavesItsSettingsAlone() {
    orders(
            "outbox4j.listen.enabled=false",
            "outbox4j.listen.url=jdbc:postgresql://elsewhere/shop",
            "outbox4j.depth-metrics.enabled=false",
            "outbox4j.depth-metrics.interval=20s",
            "outbox4j.auto-start=false",
            "outbox4j.subscriber.workers=2")
        .run(context -> assertThat(context).hasNotFailed());
  }

  static class Dotted {
    @OutboxHandler(queue = "a.b", type = "t")
    void handle(String body) {}
  }

  @Test
  void namesThePropertyOfAQueueWhoseNameHasDotsAsItIsWritten() {
    refuses(
        service().withBean(Dotted.class).withPropertyValues("outbox4j.queues[a.b].workers=0"),
        "outbox4j.queues[a.b].workers: workers is 0.");
  }

  @EnabledForJreRange(max = JRE.JAVA_20)
  @Test
  void namesThePropertyThatAsksForVirtualThreadsOfAnOlderJava() {
    refusesOrders(
        "outbox4j.subscriber.virtual-threads=true",
        "outbox4j.subscriber.virtual-threads: Virtual threads need Java 21 or later");
  }

  private ApplicationContextRunner customized(OutboxSubscriberCustomizer customizer) {
    return orders().withBean(OutboxSubscriberCustomizer.class, () -> customizer);
  }

  @Test
  void namesTheCustomizerThatIsRefused() {
    refuses(
        customized((queue, subscriber) -> subscriber.workers(0)),
        "The OutboxSubscriberCustomizer dev.outbox4j.spring.StartRefusalsIT, called for queue"
            + " 'orders': workers is 0.");
    refuses(
        customized(
            (queue, subscriber) -> subscriber.on("placed", (Payload body, Delivery of) -> {})),
        "@OutboxHandler dev.outbox4j.spring.StartRefusalsIT$Orders.place: Type 'placed' has a"
            + " handler already.");
    refuses(
        customized((queue, subscriber) -> subscriber.deleteTerminalFailures()),
        "outbox4j.delete-terminal-failures and an OutboxSubscriberCustomizer differ",
        "Set the property alone.");
  }

  @Test
  void saysOfATypeThatACustomizerNamesInVainThatAMethodIsMissing() {
    customized((queue, subscriber) -> subscriber.retry("typo", RetryPolicy.none()))
        .run(
            context -> {
              FailureAnalysis analysis =
                  new OutboxFailureAnalyzer().analyze(context.getStartupFailure());
              assertThat(analysis.getDescription()).contains("set for type 'typo'");
              assertThat(analysis.getAction())
                  .isEqualTo("Add an @OutboxHandler method, or correct the type.");
            });
  }

  @EnabledForJreRange(min = JRE.JAVA_21)
  @Test
  void saysHowAnExecutorAndSpringsVirtualThreadsGoTogether() {
    customized((queue, subscriber) -> subscriber.executor(task -> new Thread(task).start()))
        .withPropertyValues("spring.threads.virtual.enabled=true")
        .run(
            context ->
                assertThat(
                        new OutboxFailureAnalyzer()
                            .analyze(context.getStartupFailure())
                            .getDescription())
                    .contains(
                        "spring.threads.virtual.enabled"
                            + " (outbox4j.queues.orders.virtual-threads=false leaves this queue"
                            + " out)"));
  }

  @Test
  void namesTheMethodWhoseBodyHasNoCodec() {
    String method = "@OutboxHandler dev.outbox4j.spring.StartRefusalsIT$Orders.place";
    String[] texts = {
      method + ": type 'placed' is decoded to ",
      "Add Spring Boot's Jackson starter, mark one mapper of several with @Primary, or declare a"
          + " PayloadCodec bean"
    };
    ApplicationContextRunner service =
        new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(OutboxAutoConfiguration.class))
            .withBean(DataSource.class, () -> database.plain())
            .withBean(Orders.class)
            .withPropertyValues("outbox4j.schema=" + schema, "outbox4j.listen.enabled=false");
    refuses(service, texts);
    refuses(
        service
            .withBean("one", ObjectMapper.class, ObjectMapper::new)
            .withBean("other", ObjectMapper.class, ObjectMapper::new),
        texts);
  }

  static class DroppedResult {
    @OutboxHandler(queue = "orders", type = "placed")
    String handle(Item item) {
      return item.name();
    }
  }

  static class SameType {
    @OutboxHandler(queue = "orders", type = "placed")
    void again(Item item) {}
  }

  static class NoArgument {
    @OutboxHandler(queue = "orders", type = "placed")
    void handle() {}
  }

  static class NoSuchProperty {
    @OutboxHandler(queue = "${shop.typo}", type = "placed")
    void handle(Item item) {}
  }

  static class TakesMessage {
    @OutboxHandler(queue = "orders", type = "placed")
    void handle(OutboxMessage message) {}
  }

  @Test
  void namesTheHandlerMethodThatBreaksARule() {
    String here = "@OutboxHandler dev.outbox4j.spring.StartRefusalsIT$";
    refuses(
        service().withBean(TakesMessage.class),
        here + "TakesMessage.handle takes an OutboxMessage, which is what publishers make.",
        "Take the body, and a Delivery");
    refuses(
        service()
            .withBean(Orders.class, Orders::new, definition -> definition.setScope("prototype")),
        here + "Orders.place is on a prototype",
        "Let the bean be a singleton");
    refuses(
        service().withBean(DroppedResult.class),
        here + "DroppedResult.handle returns java.lang.String.",
        "It may return nothing, an Outcome");
    refuses(
        service().withBean(NoArgument.class),
        here + "NoArgument.handle takes nothing.",
        "It must take a body");
    refuses(
        service().withBean(NoSuchProperty.class),
        here + "NoSuchProperty.handle: queue = \"${shop.typo}\"",
        "Set it");
    refuses(
        orders().withBean(SameType.class),
        here + "Orders.place and " + here + "SameType.again both handle type 'placed'",
        "Keep one of them.");
  }

  @Test
  void namesTheQueueThatNothingHandles() {
    refusesOrders(
        "outbox4j.queues.ordres.workers=1",
        "outbox4j.queues has settings for [ordres]",
        "handled are [orders]",
        "Correct the name, or drop it.");
    refusesOrders(
        "outbox4j.ordered-queues=ordres",
        "outbox4j.ordered-queues names [ordres]",
        "Correct the name, or drop it.");
    refusesOrders(
        "outbox4j.queues.ordres.concurrency-limit=1", "outbox4j.queues has settings for [ordres]");
    assertThat(database.list(String.class, TABLES, schema))
        .as("nothing is made for queues that nobody handles")
        .contains("outbox")
        .noneMatch(table -> table.contains("bucket") || table.contains("slot"));
  }

  @Test
  void saysWhatToDoAboutTheDataSource() {
    refuses(
        new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(OutboxAutoConfiguration.class)),
        "needs a DataSource bean, and there is none.",
        "Set spring.datasource.url");
    refuses(
        orders()
            .withBean("one", DataSource.class, () -> database.plain())
            .withBean("other", DataSource.class, () -> database.plain()),
        "there is more than one.",
        "Mark one with @Primary, or with @OutboxDataSource.");
    refuses(
        orders().withBean(DataSource.class, () -> database.plain()),
        "there is no place to listen at.",
        "Set outbox4j.listen.url");
    refusesOrders(
        "spring.datasource.hikari.maximum-pool-size=1",
        "The pool has 1 connection(s), too few for 1 subscriber(s)",
        "spring.datasource.hikari.maximum-pool-size");
  }

  @Test
  void saysWhatToDoIfTheDatabaseCannotBeReached() {
    String soon = "spring.datasource.hikari.connection-timeout=250 ";
    refusesOrders(
        soon + "spring.datasource.url=jdbc:postgresql://localhost:1/shop",
        "could not be made or brought up to date [08001]",
        "Check that the server runs");
    refusesOrders(
        soon + "spring.datasource.username=nobody",
        "could not be made or brought up to date [28",
        "Check user, password and database name.");
    refusesOrders(
        soon + "spring.datasource.username=nobody outbox4j.migrate=false",
        "refused the connection",
        "check user, password and database name");
  }

  @Test
  void saysWhatToDoIfTheTablesAreMissingOrMayNotBeMade() {
    refusesOrders(
        "outbox4j.migrate=false outbox4j.schema=nowhere_" + schema,
        "nowhere_" + schema + ".outbox",
        "set outbox4j.migrate=true, or run the SQL of the migrations by hand");
    orders().run(context -> assertThat(context).hasNotFailed());
    refusesOrders(
        "outbox4j.migrate=false outbox4j.ordered-queues=orders outbox4j.schema=" + schema,
        "outbox_buckets",
        "set outbox4j.migrate=true, or run the SQL of the migrations by hand");
    orders("outbox4j.ordered-queues=orders").run(context -> assertThat(context).hasNotFailed());
    database.update("delete from " + schema + ".outbox_buckets");
    refusesOrders(
        "outbox4j.migrate=false outbox4j.ordered-queues=orders",
        "for ordered queue 'orders'",
        "set outbox4j.migrate=true, or run the SQL of the migrations by hand");
    database.update("drop schema " + schema + " cascade");
    String role = "poor_" + schema.substring(schema.length() - 8);
    database.update("create role " + role + " login password 'p'");
    database.update("create schema " + schema);
    try {
      refusesOrders(
          "spring.datasource.username=" + role + " spring.datasource.password=p",
          "could not be made or brought up to date [42501]: ERROR: permission denied for schema",
          "Let a role migrate that may",
          "spring.flyway.user");
    } finally {
      database.update("drop role " + role);
    }
  }
}
