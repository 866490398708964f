package dev.outbox4j.examples.misuse;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.AckMode;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.OutboxSubscribers;
import dev.outbox4j.Outcome;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.examples.misuse.Shop.Order;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Settings of a subscriber that cannot be right, and the words in which the user is told. */
@ExtendWith(PostgresExtension.class)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@Tag("once")
class SettingMisusesIT {
  private final TestDatabase database;
  private Shop shop;

  SettingMisusesIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeAll
  void open() {
    shop = new Shop(database);
  }

  @Test
  void whatIsMissingIsToldAtOnce() {
    assertThatIllegalStateException()
        .isThrownBy(() -> OutboxSubscriber.builder("orders").build())
        .withMessage(
            "Subscriber 'orders' cannot be built: store(...) is missing; say where rows are claimed;"
                + " deadLetters(...) is missing; say where messages go that fail for good, or"
                + " deleteTerminalFailures(); there is no handler; add on(...) or otherwise(...)");
  }

  @Test
  void bodyThatNeedsACodecWhereThereIsNone() {
    assertThatIllegalStateException()
        .isThrownBy(
            () ->
                shop.subscriber("orders")
                    .on("order.placed", Order.class, (order, delivery) -> {})
                    .build())
        .withMessageContaining("type 'order.placed' is decoded to " + Order.class.getName())
        .withMessageContaining(
            "there is no codec(...); set one, or take byte[], Payload or String");
  }

  @Test
  void secondHandlerForAType() {
    OutboxSubscriber.Builder builder = shop.subscriber("orders").on("t", (body, delivery) -> {});
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.on("t", (body, delivery) -> {}))
        .withMessage("Type 't' has a handler already; a type has one handler: call both from it");
    builder.otherwise((body, delivery) -> {});
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.otherwise((body, delivery) -> {}))
        .withMessage("otherwise(...) is set already; set it once");
  }

  @Test
  void sameNameTwiceInAGroup() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxSubscribers.of(idle("orders"), idle("orders")))
        .withMessage("Two subscribers are named 'orders'; give each a name of its own");
  }

  /** Names are for people; leases are held under the name and a number of the start. */
  @Test
  void sameNameTwiceStartedApart() throws SQLException {
    Set<String> handled = ConcurrentHashMap.newKeySet();
    try (Told told = new Told();
        OutboxSubscriber one = noting("orders", handled);
        OutboxSubscriber other = noting("orders", handled)) {
      one.start();
      other.start();
      for (int i = 0; i < 20; i++) {
        shop.publish("orders", "t", "body " + i);
      }
      await().until(() -> handled.size() == 20);
      assertThat(told.lines()).isEmpty();
      assertThat(one.health().healthy()).isTrue();
      assertThat(other.health().healthy()).isTrue();
    }
  }

  @Test
  void boundOfDeliveriesWithOneAttempt() {
    try (Told told = new Told()) {
      shop.subscriber("orders")
          .otherwise((body, delivery) -> {})
          .retry(RetryPolicy.none())
          .maxDeliveries(5)
          .build();
      assertThat(told.lines()).isEmpty();
    }
  }

  static Stream<Arguments> badValues() {
    return Stream.of(
        bad("workers is 0; it must be 1 to 10000", builder -> builder.workers(0)),
        bad("batchSize is 0; it must be 1 to 10000", builder -> builder.batchSize(0)),
        bad(
            "lease is PT0.01S; it must be PT0.1S to PT24H",
            builder -> builder.lease(Duration.ofMillis(10))),
        bad(
            "min poll is PT0S; it must be PT0.001S to PT1M",
            builder -> builder.poll(Duration.ZERO, Duration.ofSeconds(1))),
        bad(
            "max poll is PT1S; it must be PT2S to PT1H",
            builder -> builder.poll(Duration.ofSeconds(2), Duration.ofSeconds(1))),
        bad(
            "pollWithoutListener is PT2H; it must be PT0.001S to PT1H",
            builder -> builder.pollWithoutListener(Duration.ofHours(2))),
        bad(
            "gracefulTimeout is PT-1S; it must be PT0S to PT24H",
            builder -> builder.gracefulTimeout(Duration.ofSeconds(-1))),
        bad(
            "handlerTimeout is PT0S; it must be PT0.001S to PT24H",
            builder -> builder.handlerTimeout(Duration.ZERO)),
        bad("maxDeliveries is 0; it must be 1 to 2147483647", builder -> builder.maxDeliveries(0)),
        bad(
            "maxExceptionBytes is 1; it must be 64 to 1048576",
            builder -> builder.maxExceptionBytes(1)),
        bad(
            "attempts is 0; it must be 1 or more",
            builder -> builder.retry(RetryPolicy.standard().attempts(0))),
        bad(
            "jitter is 2.0; it must be 0 to 1",
            builder -> builder.retry(RetryPolicy.standard().jitter(2))),
        bad("name is blank; give it a name", builder -> builder.name("")),
        bad("queue is blank; give it a name", builder -> builder.queues("")),
        bad("type is blank; give it a name", builder -> builder.on("", (body, delivery) -> {})));
  }

  private static Arguments bad(String words, UnaryOperator<OutboxSubscriber.Builder> setting) {
    return Arguments.of(words, setting);
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("badValues")
  void badValue(String words, UnaryOperator<OutboxSubscriber.Builder> setting) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> setting.apply(shop.subscriber("orders")))
        .withMessage(words);
  }

  static Stream<Arguments> contradictions() {
    return Stream.of(
        bad(
            "deadLetters(...) and deleteTerminalFailures() are both set; set one of them",
            builder -> builder.deleteTerminalFailures()),
        bad(
            "handlerTimeout(...) and unlimitedHandlerTime() are both set; set one of them",
            builder -> builder.handlerTimeout(Duration.ofSeconds(1)).unlimitedHandlerTime()),
        bad(
            "maxDeliveries(...) and unlimitedDeliveries() are both set; set one of them",
            builder -> builder.maxDeliveries(10).unlimitedDeliveries()),
        bad(
            "maxDeliveries(1) is below the 2 attempts of a retry policy, each of which is a delivery; raise it, or lower the attempts",
            builder -> builder.maxDeliveries(1)),
        bad(
            "gracefulTimeout is zero while handlerTimeout is set; give handlers time to end",
            builder ->
                builder.gracefulTimeout(Duration.ZERO).handlerTimeout(Duration.ofSeconds(1))));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("contradictions")
  void contradiction(String words, UnaryOperator<OutboxSubscriber.Builder> setting) {
    OutboxSubscriber.Builder builder =
        setting.apply(shop.subscriber("orders").otherwise((body, delivery) -> {}));
    assertThatIllegalStateException()
        .isThrownBy(builder::build)
        .withMessage("Subscriber 'orders' cannot be built: " + words);
  }

  @Test
  @EnabledForJreRange(min = JRE.JAVA_21)
  void virtualThreadsAndAnExecutor() {
    contradiction(
        "executor(...) and virtualThreads() are both set; set one of them",
        builder -> builder.virtualThreads().executor(task -> {}));
  }

  @Test
  void retryPolicyForATypeThatHasNoHandler() {
    assertThatIllegalStateException()
        .isThrownBy(
            () ->
                shop.subscriber("orders")
                    .on("order.placed", (body, delivery) -> {})
                    .retry("order.plcaed", RetryPolicy.none())
                    .build())
        .withMessageContaining(
            "retry(...) is set for type 'order.plcaed', which has no handler; add on(...) or otherwise(...), or correct the type");
  }

  @Test
  @EnabledForJreRange(max = JRE.JAVA_20)
  void virtualThreadsOnAJavaWithoutThem() {
    assertThatIllegalStateException()
        .isThrownBy(() -> shop.subscriber("orders").virtualThreads())
        .withMessageStartingWith("Virtual threads need Java 21 or later, this is Java ")
        .withMessageEndingWith("; run on that, or do without them");
  }

  @Test
  void poolOfOneConnection() {
    OutboxSubscriber subscriber =
        shop.subscriber("orders")
            .store(PostgresOutbox.on(database.pool(1), Shop.TABLE).store())
            .otherwise((body, delivery) -> {})
            .build();
    assertThatExceptionOfType(OutboxException.class)
        .isThrownBy(subscriber::start)
        .withMessage(
            "The pool has 1 connection(s), too few for 1 subscriber(s): each needs 2 (one to claim,"
                + " one to settle), whatever its workers; give the pool 2 or more, plus what the"
                + " service itself uses (with Spring Boot: spring.datasource.hikari.maximum-pool-size)");
  }

  @Test
  void poolThatIsTooSmallForAGroup() {
    OutboxSubscribers group =
        OutboxSubscribers.of(idle("orders"), idle("mails"), idle("returns"), idle("invoices"));
    assertThatExceptionOfType(OutboxException.class)
        .isThrownBy(group::start)
        .withMessageContaining("The pool has 4 connection(s), too few for 4 subscriber(s)")
        .withMessageContaining("give the pool 8 or more, plus what the service itself uses");
  }

  @Test
  void poolThatAGroupUsesUp() {
    try (Told told = new Told();
        OutboxSubscribers group = OutboxSubscribers.of(idle("orders"), idle("mails"))) {
      group.start();
      assertThat(told.lines())
          .filteredOn(line -> line.contains("may use them all at once"))
          .singleElement()
          .asString()
          .contains("[orders, mails] the pool has 4 connection(s), and 2 subscriber(s)")
          .contains("only right for a pool that nothing else uses");
    }
  }

  @Test
  void poolThatOneSubscriberUsesUp() {
    OutboxSubscriber subscriber =
        shop.subscriber("orders")
            .store(PostgresOutbox.on(database.pool(2), Shop.TABLE).store())
            .otherwise((body, delivery) -> {})
            .build();
    try (Told told = new Told()) {
      subscriber.start();
      assertThat(told.lines())
          .filteredOn(line -> line.contains("may use them all at once"))
          .hasSize(1);
    } finally {
      subscriber.stop();
    }
  }

  @Test
  void pooledConnectionsForListen() {
    DataSource pool = shop.pool();
    assertThatIllegalArgumentException()
        .isThrownBy(() -> PgjdbcListen.on(pool))
        .withMessageContaining("LISTEN needs an unpooled connection of its own")
        .withMessageContaining(
            "give an unpooled data source of pgjdbc, such as org.postgresql.ds.PGSimpleDataSource");
  }

  @Test
  void outboxAsItsOwnDeadLetters() {
    assertThatIllegalArgumentException()
        .isThrownBy(
            () ->
                shop.subscriber("orders")
                    .deadLetters(DeadLetterQueue.in("outbox"))
                    .otherwise((body, delivery) -> {})
                    .build())
        .withMessage("The dead-letter table 'outbox' is the outbox itself; name another table");
  }

  @Test
  void doubtfulSettings() {
    try (Told told = new Told()) {
      shop.subscriber("orders")
          .otherwise((body, delivery) -> {})
          .lease(Duration.ofSeconds(10))
          .ackMode(AckMode.REJECT_ON_ERROR)
          .build();
      assertThat(told.lines())
          .anySatisfy(
              line ->
                  assertThat(line)
                      .contains("lease PT10S is not above the longest poll PT10S")
                      .contains("a row whose owner died may wait for a poll"))
          .anySatisfy(
              line ->
                  assertThat(line)
                      .contains("the store's network timeout PT15S is above a quarter of the lease")
                      .contains("lower the one or raise the other"))
          .anySatisfy(
              line ->
                  assertThat(line)
                      .contains("ackMode REJECT_ON_ERROR dead-letters at the first exception")
                      .contains("the retry policy serves only outcomes that ask for a retry"));
    }
  }

  private OutboxSubscriber noting(String queue, Set<String> handled) {
    return shop.subscriber(queue)
        .on(
            "t",
            String.class,
            (body, delivery) -> {
              return handled.add(body) ? Outcome.ack() : Outcome.reject("again");
            })
        .build();
  }

  private OutboxSubscriber idle(String queue) {
    return shop.subscriber(queue).otherwise((body, delivery) -> {}).build();
  }
}
