package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;
import static org.jooq.impl.DSL.field;
import static org.jooq.impl.DSL.table;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.jooq.JooqOutboxPublisher;
import dev.outbox4j.postgres.jooq.JooqTransactions;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jooq.Configuration;
import org.jooq.SQLDialect;
import org.jooq.exception.DataAccessException;
import org.jooq.impl.DSL;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What a handler writes with jOOQ is there together with its message's end, or not at all. */
@ExtendWith(PostgresExtension.class)
class JooqTransactionsIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();

  private final TestDatabase database;
  private final AtomicInteger runs = new AtomicInteger();
  private final List<Integer> attempts = new CopyOnWriteArrayList<>();
  private EngineFixture engine;
  private JooqTransactions jooq;
  private String queue;
  private Effects effects;

  JooqTransactionsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 8);
    queue = "jooq-" + QUEUES.incrementAndGet();
    effects = new Effects(database, queue);
    Configuration own = DSL.using(SQLDialect.POSTGRES).configuration();
    own.data("tenant", "north");
    jooq =
        JooqTransactions.of(PostgresOutbox.on(engine.pool, database.table()).transactions(), own);
  }

  @AfterEach
  void tearDown() {
    engine.close();
  }

  private OutboxSubscriber.Builder subscriber() {
    return engine.subscriber(queue).workers(4);
  }

  private void write(Configuration tx, String what) {
    tx.dsl().insertInto(table("effect")).values(queue, what).execute();
  }

  private void awaitAcked(int messages) {
    await()
        .atMost(Duration.ofSeconds(20))
        .untilAsserted(() -> assertThat(engine.events.acked).hasValue(messages));
  }

  @Test
  void effectsCommitWithTheAckAndTheConfigurationIsOfTheGivenOne() {
    AtomicReference<Object> seen = new AtomicReference<>();
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                jooq.transactional(
                    (text, delivery, tx) -> {
                      seen.set(tx.data("tenant") + " " + tx.dialect());
                      write(tx, text);
                      assertThat(effects.all()).as("seen by others before the commit").isEmpty();
                    })));
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(effects.all()).containsExactly("one");
    assertThat(engine.rows(queue)).isZero();
    assertThat(seen).hasValue("north POSTGRES");
  }

  @Test
  void whatAFailedAttemptWroteIsRolledBack() {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                jooq.transactional(
                    (text, delivery, tx) -> {
                      write(tx, "attempt " + delivery.attempt());
                      if (delivery.attempt() == 1) {
                        throw new IllegalStateException("not yet");
                      }
                      return delivery.attempt() == 2 ? Outcome.retry() : Outcome.ack();
                    })));
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(effects.all()).containsExactly("attempt 3");
  }

  @Test
  void ifTheLeaseWasLostEverythingIsRolledBack() {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                jooq.transactional(
                    (text, delivery, tx) -> {
                      write(tx, "run " + runs.incrementAndGet());
                      if (runs.get() == 1) { // as if another owner had claimed it
                        database.update(
                            "update outbox set lease_token = lease_token + 1, lease_until = now()"
                                + " where id = ?",
                            delivery.id());
                      }
                    })));
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(effects.all()).containsExactly("run 2");
    assertThat(engine.events.leaseLost).containsExactly(Phase.ACK);
  }

  @Test
  void transactionsInAHandlerAreSavepoints() {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                jooq.transactional(
                    (text, delivery, tx) -> {
                      String attempt = " of attempt " + delivery.attempt();
                      tx.dsl()
                          .transaction(
                              nested -> {
                                write(nested, "1 nested" + attempt);
                                nested
                                    .dsl()
                                    .transaction(deeper -> write(deeper, "2 deeper" + attempt));
                              });
                      assertThat(
                              catchThrowable(
                                  () ->
                                      tx.dsl()
                                          .transaction(
                                              nested -> {
                                                write(nested, "rolled back");
                                                nested.dsl().execute("select no_such_column");
                                              })))
                          .isInstanceOf(DataAccessException.class);
                      write(tx, "3 after" + attempt);
                      if (delivery.attempt() == 1) {
                        throw new IllegalStateException("and all of it with the handler");
                      }
                    })));
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(effects.all())
        .containsExactly("1 nested of attempt 2", "2 deeper of attempt 2", "3 after of attempt 2");
  }

  @Test
  void aConstraintThatFailsAtTheCommitIsAFailureOfTheMessage() {
    database.update(
        "create table if not exists once (what text unique deferrable initially deferred)");
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                jooq.transactional(
                    (text, delivery, tx) -> {
                      write(tx, text);
                      tx.dsl()
                          .insertInto(table("once"), field("what"))
                          .values("same")
                          .values("same")
                          .execute();
                    })));
    long id = engine.publish(queue, "t", "one");
    await().until(() -> engine.deadLetters(queue) == 1);
    assertThat(engine.deadLetter(Integer.class, "attempts_count", id)).isEqualTo(3);
    assertThat(engine.deadLetter(String.class, "last_exception", id)).contains("23505");
    assertThat(effects.all()).isEmpty();
  }

  @Test
  void aConnectionThatIsCutWhileTheHandlerRunsCostsNoAttempt() {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                jooq.transactional(
                    (text, delivery, tx) -> {
                      attempts.add(delivery.attempt());
                      write(tx, "run " + runs.incrementAndGet());
                      if (runs.get() == 1) {
                        int pid = tx.dsl().fetchSingle("select pg_backend_pid()").get(0, int.class);
                        database.one(Boolean.class, "select pg_terminate_backend(?)", pid);
                        write(tx, "on a dead connection");
                      }
                    })));
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(effects.all()).containsExactly("run 2");
    assertThat(attempts).containsExactly(1, 1);
  }

  @Test
  void aChainOfQueuesLosesNothingAndDoublesNothing() {
    JooqOutboxPublisher publisher = JooqOutboxPublisher.of(engine.publisher);
    String second = queue + "-second";
    String third = queue + "-third";
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                jooq.transactional(
                    (text, delivery, tx) -> {
                      publisher.publish(tx, OutboxMessage.to(second).type("t").body(text).build());
                      if (delivery.attempt() == 1) {
                        throw new IllegalStateException("after it had published");
                      }
                    })));
    engine.start(
        engine
            .subscriber(second)
            .workers(1)
            .otherwise(
                jooq.transactional(
                    (payload, delivery, tx) -> {
                      publisher.publish(
                          tx, OutboxMessage.to(third).type("t").body(payload).build());
                      return delivery.attempt() == 1 ? Outcome.retry() : Outcome.ack();
                    })));
    engine.start(
        engine
            .subscriber(third)
            .workers(1)
            .on(
                "t",
                String.class,
                jooq.transactional(
                    (text, delivery, tx) -> {
                      write(tx, text);
                    })));
    engine.publish(queue, "t", 10);
    awaitAcked(30);
    assertThat(effects.all()).hasSize(10).doesNotHaveDuplicates();
    assertThat(engine.rows(third)).isZero();
  }

  @Test
  void aConfigurationThatWasKeptIsOfNoUse() {
    AtomicReference<Configuration> kept = new AtomicReference<>();
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                jooq.transactional(
                    (text, delivery, tx) -> {
                      kept.set(tx);
                    })));
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThatThrownBy(() -> write(kept.get(), "later"))
        .hasStackTraceContaining("its transaction is over");
    assertThat(effects.all()).isEmpty();
  }

  @Test
  void transactionsOfAnotherTableAreRefusedWhenTheSubscriberIsBuilt() {
    JooqTransactions other =
        JooqTransactions.of(
            PostgresOutbox.on(engine.pool, OutboxTable.named("other")).transactions(),
            DSL.using(SQLDialect.POSTGRES).configuration());
    assertThatThrownBy(
            () ->
                subscriber()
                    .on(
                        "t",
                        String.class,
                        other.transactional(
                            (text, delivery, tx) -> {
                              write(tx, text);
                            }))
                    .build())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("take both from the same PostgresOutbox");
  }
}
