package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Payload;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Statement;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.extension.ExtendWith;

/** Handlers on virtual threads, which Java has from 21 on; compiled for 17 like all else. */
@ExtendWith(PostgresExtension.class)
class VirtualThreadsIT {
  private static final int MESSAGES = 500;

  private final TestDatabase database;
  private EngineFixture engine;

  VirtualThreadsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 3);
  }

  @AfterEach
  void tearDown() {
    engine.close();
  }

  @Test
  @EnabledForJreRange(minVersion = 21)
  void asManyHandlersWaitAtOnceAsThereAreWorkersAndAllAreAcked() throws InterruptedException {
    CountDownLatch allWait = new CountDownLatch(MESSAGES);
    Set<Thread> threads = ConcurrentHashMap.newKeySet();
    engine.start(
        engine
            .subscriber("virtual")
            .virtualThreads()
            .workers(MESSAGES)
            .on(
                "t",
                (payload, delivery) -> {
                  threads.add(Thread.currentThread());
                  allWait.countDown();
                  allWait.await();
                }));
    engine.publish("virtual", "t", MESSAGES);

    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(MESSAGES));
    assertThat(threads).hasSize(MESSAGES).allMatch(VirtualThreadsIT::isVirtual);
    assertThat(engine.rows("virtual")).isZero();
    assertThat(engine.events.retried).isEmpty();
  }

  @Test
  @EnabledForJreRange(minVersion = 21)
  void aHandlerThatUsesTheDatabaseAndFailsIsRetriedAndThenDeadLettered() {
    AtomicInteger runs = new AtomicInteger();
    engine.start(
        engine
            .subscriber("virtual-poison")
            .virtualThreads()
            .workers(20)
            .on(
                "t",
                (Payload payload, Delivery delivery) -> {
                  assertThat(isVirtual(Thread.currentThread())).isTrue();
                  assertThat(engine.rows("virtual-poison")).isPositive();
                  runs.incrementAndGet();
                  throw new IllegalStateException("poison");
                }));
    engine.publish("virtual-poison", "t", 20);

    await().untilAsserted(() -> assertThat(engine.events.deadLettered).hasSize(20));
    assertThat(runs).hasValue(60);
    assertThat(engine.deadLetters("virtual-poison")).isEqualTo(20);
  }

  @Test
  @EnabledForJreRange(minVersion = 21)
  void aHandlerThatHangsIsInterruptedByItsTimeoutAndRunsAgain() {
    AtomicInteger interrupts = new AtomicInteger();
    CountDownLatch never = new CountDownLatch(1);
    engine.start(
        engine
            .subscriber("virtual-timeout")
            .virtualThreads()
            .workers(1)
            .handlerTimeout(Duration.ofMillis(300))
            .on(
                "t",
                (payload, delivery) -> {
                  if (delivery.attempt() == 1) {
                    awaitInterrupt(never, interrupts);
                  }
                }));
    engine.publish("virtual-timeout", "t", "x");

    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(interrupts).hasValue(1);
    assertThat(engine.events.handlerTimeouts).hasValue(1);
  }

  /** An interrupt closes the socket under a virtual thread, and the server does not notice. */
  @Test
  @EnabledForJreRange(minVersion = 21)
  void aStatementThatRunsPastTheHandlersTimeoutDoesNotGoOnAtTheServer() {
    PostgresOutbox outbox = PostgresOutbox.on(engine.pool, database.table());
    engine.start(
        engine
            .subscriber("virtual-statement")
            .virtualThreads()
            .workers(1)
            .handlerTimeout(Duration.ofMillis(300))
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      if (delivery.attempt() == 1) {
                        try (Statement statement = connection.createStatement()) {
                          statement.execute("select pg_sleep(60)");
                        }
                      }
                    })));
    engine.publish("virtual-statement", "t", "x");

    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(engine.events.handlerTimeouts).hasValue(1);
    await()
        .untilAsserted(
            () ->
                assertThat(
                        database.one(
                            Long.class,
                            "select count(*) from pg_stat_activity where state = 'active'"
                                + " and query = 'select pg_sleep(60)'"))
                    .as("statements that go on without a client")
                    .isZero());
  }

  @Test
  @EnabledForJreRange(minVersion = 21)
  void aHandlerThatHangsIsInterruptedAtTheEndOfTheDrain() {
    AtomicInteger interrupts = new AtomicInteger();
    CountDownLatch never = new CountDownLatch(1);
    CountDownLatch begun = new CountDownLatch(1);
    OutboxSubscriber subscriber =
        engine.start(
            engine
                .subscriber("virtual-drain")
                .virtualThreads()
                .workers(1)
                .gracefulTimeout(Duration.ofMillis(300))
                .on(
                    "t",
                    (payload, delivery) -> {
                      begun.countDown();
                      awaitInterrupt(never, interrupts);
                    }));
    engine.publish("virtual-drain", "t", "x");

    await().until(() -> begun.getCount() == 0);
    subscriber.stop();
    await().untilAsserted(() -> assertThat(interrupts).hasValue(1));
  }

  private static void awaitInterrupt(CountDownLatch never, AtomicInteger interrupts)
      throws InterruptedException {
    try {
      never.await();
    } catch (InterruptedException e) {
      interrupts.incrementAndGet();
      throw e;
    }
  }

  @Test
  @EnabledForJreRange(max = JRE.JAVA_20)
  void olderJavaIsToldWhatItLacks() {
    OutboxSubscriber.Builder builder = engine.subscriber("virtual");
    assertThatThrownBy(builder::virtualThreads)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("Java 21");
  }

  /** By reflection, since it is compiled for 17. */
  private static boolean isVirtual(Thread thread) {
    try {
      return (Boolean) Thread.class.getMethod("isVirtual").invoke(thread);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }
}
