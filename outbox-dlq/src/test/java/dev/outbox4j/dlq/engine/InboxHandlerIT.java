package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Delivery;
import dev.outbox4j.Outcome;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.migrations.InboxMigrations;
import dev.outbox4j.postgres.Inbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Handlers that write to a database of their own, where an inbox tells what they have handled. */
@ExtendWith(PostgresExtension.class)
class InboxHandlerIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();

  private final TestDatabase database;
  private final Inbox inbox = Inbox.in("inbox");
  private final AtomicInteger runs = new AtomicInteger();
  private EngineFixture engine;
  private String queue;
  private Effects effects;

  InboxHandlerIT(TestDatabase database) {
    this.database = database;
    InboxMigrations.of("public", "inbox").migrate(database.plain());
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 6);
    queue = "inbox-" + QUEUES.incrementAndGet();
    effects = new Effects(database, queue);
  }

  @AfterEach
  void tearDown() {
    engine.close();
  }

  @Test
  void aMessageThatComesAgainIsAckedWithoutItsHandler() {
    engine.start(
        engine
            .subscriber(queue)
            .on(
                "t",
                String.class,
                inbox.once(
                    engine.pool,
                    (text, delivery, connection) -> {
                      runs.incrementAndGet();
                      effects.write(connection, text);
                      database.update( // as if another owner had claimed it
                          "update outbox set lease_token = lease_token + 1, lease_until = now()"
                              + " where id = ?",
                          delivery.id());
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(engine.events.leaseLost).containsExactly(Phase.ACK);
    assertThat(runs).hasValue(1);
    assertThat(effects.all()).containsExactly("one");
  }

  @Test
  void aMessageThatWasPublishedTwiceIsHandledOnceByItsKey() {
    engine.start(
        engine
            .subscriber(queue)
            .on(
                "t",
                String.class,
                inbox.once(
                    engine.pool,
                    (text, delivery) -> text,
                    (text, delivery, connection) -> {
                      effects.write(connection, text);
                    })));
    engine.publish(queue, "t", "one");
    engine.publish(queue, "t", "one");
    engine.publish(queue, "t", "two");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(3));
    assertThat(effects.all()).containsExactlyInAnyOrder("one", "two");
  }

  @Test
  void aFailedRunIsNotRemembered() {
    engine.start(
        engine
            .subscriber(queue)
            .on(
                "t",
                String.class,
                inbox.once(
                    engine.pool,
                    (text, delivery, connection) -> {
                      effects.write(connection, "attempt " + delivery.attempt());
                      if (delivery.attempt() == 1) {
                        throw new IllegalStateException("not yet");
                      }
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(effects.all()).containsExactly("attempt 2");
  }

  @Test
  void anOutcomeThatIsNoAckRollsBackAndIsNotRemembered() {
    engine.start(
        engine.subscriber(queue).on("t", String.class, inbox.once(engine.pool, this::decide)));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(engine.events.rescheduled).hasSize(1);
    assertThat(effects.all()).containsExactly("run 2");
  }

  private Outcome decide(String text, Delivery delivery, Connection connection)
      throws SQLException {
    int run = runs.incrementAndGet();
    effects.write(connection, "run " + run);
    return run == 1 ? Outcome.reschedule(Duration.ofMillis(10)) : Outcome.ack();
  }

  @Test
  void aStageIsNotTakenForAnAck() {
    engine.start(
        engine
            .subscriber(queue)
            .retry(RetryPolicy.constant(Duration.ofHours(1)).attempts(3))
            .on("t", String.class, inbox.once(engine.pool, this::send)));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.retried).isNotEmpty());
    assertThat(database.one(String.class, "select last_error from outbox where queue = ?", queue))
        .contains("for which nobody waits");
    assertThat(effects.all()).isEmpty();
    assertThat(engine.events.acked).hasValue(0);
  }

  private CompletableFuture<Void> send(String text, Delivery delivery, Connection connection)
      throws SQLException {
    effects.write(connection, text);
    return CompletableFuture.failedFuture(new IllegalStateException("broker down"));
  }
}
