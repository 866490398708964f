package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.Transactional;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.internal.transactions.JdbcTransactions;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TcpProxy;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.testing.CapturedLogs;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.PGConnection;
import org.postgresql.ds.PGSimpleDataSource;

/** What a handler writes is there together with its message's end, or not at all. */
@ExtendWith(PostgresExtension.class)
class TransactionalHandlerIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();

  private final TestDatabase database;
  private final AtomicInteger runs = new AtomicInteger();
  private EngineFixture engine;
  private PostgresOutbox outbox;
  private String queue;
  private Effects effects;

  TransactionalHandlerIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 8);
    outbox = PostgresOutbox.on(engine.pool, database.table());
    queue = "transactional-" + QUEUES.incrementAndGet();
    effects = new Effects(database, queue);
  }

  @AfterEach
  void tearDown() {
    engine.close();
  }

  private OutboxSubscriber.Builder subscriber() {
    return engine.subscriber(queue).workers(4);
  }

  @Test
  void effectsCommitWithTheAck() {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      runs.incrementAndGet();
                      effects.write(connection, text);
                      assertThat(effects.all()).as("seen by others before the commit").isEmpty();
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(effects.all()).containsExactly("one");
    assertThat(engine.rows(queue)).isZero();
    assertThat(runs).hasValue(1);
    assertThat(engine.events.leaseLost).isEmpty();
  }

  /** Another schema stands for another database, as its pool finds another table of the name. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aRowOfAnotherDatabaseIsNotAckedThoughItsIdAndTokenAreTheSame(boolean ordered)
      throws Exception {
    database.update("drop schema if exists elsewhere cascade");
    OutboxMigrations.of("elsewhere", "outbox").migrate(database.plain());
    PGSimpleDataSource elsewhere = database.plain();
    elsewhere.setCurrentSchema("elsewhere");
    OutboxSubscriber.Builder builder =
        subscriber().lease(Duration.ofSeconds(2)).maxDeliveries(Integer.MAX_VALUE);
    if (ordered) {
      OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
      OrderedMigrations.of("elsewhere", "outbox", queue).migrate(database.plain());
      builder.ordered();
    }
    engine.start(
        builder.on(
            "t",
            String.class,
            PostgresOutbox.on(elsewhere, database.table())
                .transactional(
                    (text, delivery, connection) -> {
                      effects.write(connection, text);
                      if (runs.incrementAndGet() == 1) {
                        copyElsewhere(delivery.id(), ordered);
                      }
                    })));
    try (CapturedLogs logs = new CapturedLogs()) {
      engine.publish(queue, "t", "one");
      logs.awaitLine(line -> line.contains("another database than the store's"));
    }
    assertThat(database.one(Long.class, "select count(*) from elsewhere.outbox")).isEqualTo(1);
    assertThat(engine.rows(queue)).isEqualTo(1);
    assertThat(effects.all()).isEmpty();
  }

  /** The same row is leased there by somebody else. */
  private void copyElsewhere(long id, boolean ordered) {
    database.update("insert into elsewhere.outbox select * from public.outbox where id = ?", id);
    if (!ordered) {
      database.update("update elsewhere.outbox set leased_by = 'somebody else'");
      return;
    }
    database.update("delete from elsewhere.outbox_buckets");
    database.update("insert into elsewhere.outbox_buckets select * from public.outbox_buckets");
    database.update("update elsewhere.outbox_buckets set owner = 'somebody else'");
  }

  @Test
  void anExceptionRollsBackAndIsRetriedByThePolicy() {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      effects.write(connection, "attempt " + delivery.attempt());
                      if (delivery.attempt() < 3) {
                        throw new IllegalStateException("not yet");
                      }
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(effects.all()).containsExactly("attempt 3");
    assertThat(engine.events.retried).hasSize(2);
  }

  @Test
  void whatARejectedMessageWroteIsRolledBackAndItIsDeadLettered() {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      effects.write(connection, text);
                      return Outcome.reject("bad");
                    })));
    long id = engine.publish(queue, "t", "one");
    await().until(() -> engine.deadLetters(queue) == 1);
    assertThat(engine.deadLetter(String.class, "failure_reason", id)).isEqualTo("rejected");
    assertThat(effects.all()).isEmpty();
  }

  @Test
  void aStageIsNotTakenForAnAck() {
    engine.start(
        subscriber()
            .retry(RetryPolicy.constant(Duration.ofHours(1)).attempts(3))
            .on("t", String.class, outbox.transactional(this::send)));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.retried).hasSize(1));
    assertThat(database.one(String.class, "select last_error from outbox where queue = ?", queue))
        .contains("for which nobody waits: its transaction ends with the return");
    assertThat(effects.all()).isEmpty();
  }

  private CompletableFuture<Void> send(String text, Delivery delivery, Connection connection)
      throws SQLException {
    effects.write(connection, text);
    return CompletableFuture.failedFuture(new IllegalStateException("broker down"));
  }

  @Test
  void aRescheduleCommitsWhatWasWritten() {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      effects.write(connection, text);
                      return runs.incrementAndGet() < 3
                          ? Outcome.reschedule(Duration.ofMillis(20))
                          : Outcome.ack();
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(effects.all()).hasSize(3);
    assertThat(engine.events.rescheduled).hasSize(2);
  }

  @Test
  void ifTheLeaseWasLostEverythingIsRolledBack() {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      effects.write(connection, "run " + runs.incrementAndGet());
                      if (runs.get() == 1) { // as if another owner had claimed it
                        database.update(
                            "update outbox set lease_token = lease_token + 1, lease_until = now()"
                                + " where id = ?",
                            delivery.id());
                      }
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(effects.all()).containsExactly("run 2");
    assertThat(engine.events.leaseLost).containsExactly(Phase.ACK);
  }

  @Test
  @Tag("once")
  void aHandlerThatRunsForManyLeasesKeepsItsRow() {
    engine.start(
        subscriber()
            .lease(Duration.ofMillis(400))
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      runs.incrementAndGet();
                      effects.write(connection, text);
                      sleep(connection, 2);
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(runs).hasValue(1);
    assertThat(effects.all()).containsExactly("one");
    assertThat(engine.events.renewed.get()).isGreaterThan(3);
  }

  @Test
  void aHandlerThatWaitsForTheServerPastItsTimeoutIsBrokenOffAndRolledBack() {
    engine.start(
        subscriber()
            .handlerTimeout(Duration.ofMillis(300))
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      effects.write(connection, "run " + runs.incrementAndGet());
                      if (runs.get() == 1) {
                        sleep(connection, 60);
                      }
                    })));
    engine.publish(queue, "t", "one");
    await()
        .atMost(Duration.ofSeconds(20))
        .untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(effects.all()).containsExactly("run 2");
    assertThat(engine.events.handlerTimeouts).hasValue(1);
    assertThat(sleeping()).as("statements that go on without a client").isZero();
  }

  @Test
  void whatEndsTheTransactionIsRefusedAndClosingDoesNothing() {
    List<Throwable> refused = new CopyOnWriteArrayList<>();
    AtomicReference<Connection> kept = new AtomicReference<>();
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      kept.set(connection);
                      refused.add(catchThrowable(connection::commit));
                      refused.add(catchThrowable(connection::rollback));
                      refused.add(catchThrowable(() -> connection.setAutoCommit(true)));
                      refused.add(catchThrowable(() -> connection.abort(Runnable::run)));
                      connection.setAutoCommit(false);
                      connection.close();
                      assertThat(connection.isClosed()).isFalse();
                      effects.write(connection, text);
                      connection.rollback(connection.setSavepoint());
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(refused)
        .hasSize(4)
        .allSatisfy(
            each ->
                assertThat(each)
                    .isInstanceOf(SQLException.class)
                    .hasMessageContaining("return to commit it, throw"));
    assertThat(effects.all()).containsExactly("one");
    assertThatThrownBy(() -> kept.get().createStatement())
        .isInstanceOf(SQLException.class)
        .hasMessageContaining("its transaction is over");
  }

  @Test
  void aHandlerPublishesInItsTransaction() {
    String next = queue + "-next";
    AtomicInteger arrived = new AtomicInteger();
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      engine.publisher.publish(
                          connection, OutboxMessage.to(next).type("t").body(text).build());
                      if (runs.incrementAndGet() == 1) {
                        throw new IllegalStateException("after it had published");
                      }
                    })));
    engine.start(
        engine
            .subscriber(next)
            .on(
                "t",
                (payload, delivery) -> {
                  arrived.incrementAndGet();
                }));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(2));
    assertThat(arrived).hasValue(1);
    assertThat(engine.rows(next)).isZero();
  }

  @Test
  void theStoresOwnSettingsAreNotInForce() {
    AtomicReference<String> seen = new AtomicReference<>();
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      seen.set(
                          setting(connection, "enable_seqscan")
                              + setting(connection, "statement_timeout")
                              + setting(connection, "lock_timeout"));
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(seen).hasValue("on00");
  }

  @Test
  void inADatabaseOfAnotherIsolationHandlersRunAtReadCommitted() {
    List<String> seen = new CopyOnWriteArrayList<>();
    PGSimpleDataSource plain = database.plain();
    plain.setOptions("-c default_transaction_isolation=serializable");
    PostgresOutbox serializable = PostgresOutbox.on(plain, database.table());
    engine.start(
        subscriber()
            .lease(Duration.ofMillis(400))
            .on(
                "t",
                String.class,
                serializable.transactional(
                    (text, delivery, connection) -> {
                      seen.add(setting(connection, "transaction_isolation"));
                      effects.write(connection, text);
                      sleep(connection, 1); // and its lease is renewed meanwhile
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    engine.publish(queue, "t", "two");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(2));
    assertThat(seen).containsExactly("read committed", "read committed");
    assertThat(effects.all()).containsExactly("one", "two");
  }

  @Test
  void aHandlerThatRaisesItsIsolationComesAgainIfItsLeaseWasRenewedMeanwhile() {
    List<String> seen = new CopyOnWriteArrayList<>();
    engine.start(
        subscriber()
            .lease(Duration.ofMillis(400))
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      execute(connection, "set transaction isolation level repeatable read");
                      seen.add(delivery.attempt() + setting(connection, "transaction_isolation"));
                      effects.write(connection, text);
                      if (runs.incrementAndGet() == 1) {
                        sleep(connection, 1); // and its lease is renewed
                      }
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(seen).containsExactly("1repeatable read", "1repeatable read");
    assertThat(effects.all()).containsExactly("one");
  }

  @Test
  void renewalsDoNotWaitForARowWhoseAckIsNotCommitted() throws Exception {
    database.update("create table if not exists slowly (what text)");
    database.update(
        """
        create or replace function wait_for_gate() returns trigger language plpgsql as
          $$ begin perform pg_advisory_xact_lock_shared(7); return null; end $$""");
    database.update("drop trigger if exists wait_for_gate on slowly");
    database.update(
        """
        create constraint trigger wait_for_gate after insert on slowly
          deferrable initially deferred for each row execute function wait_for_gate()""");
    try (Connection gate = database.plain().getConnection()) {
      execute(gate, "select pg_advisory_lock(7)");
      engine.start(
          subscriber()
              .lease(Duration.ofMillis(400))
              .on(
                  "t",
                  String.class,
                  outbox.transactional(
                      (text, delivery, connection) -> {
                        runs.incrementAndGet();
                        effects.write(connection, text);
                        if (text.equals("slow commit")) {
                          execute(connection, "insert into slowly values ('one')");
                        } else {
                          sleep(connection, 2); // for five leases, which are renewed
                        }
                      })));
      engine.publish(queue, "t", "slow commit");
      await().until(() -> waitingForGate() == 1);
      engine.publish(queue, "t", "long handler");
      await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
      assertThat(effects.all()).containsExactly("long handler");
      execute(gate, "select pg_advisory_unlock(7)");
      await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(2));
    }
    assertThat(runs).hasValue(2);
    assertThat(effects.all()).containsExactlyInAnyOrder("long handler", "slow commit");
    assertThat(engine.events.leaseLost).isEmpty();
    assertThat(engine.rows(queue)).isZero();
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
                outbox.transactional(
                    (text, delivery, connection) -> {
                      effects.write(connection, text);
                      try (Statement statement = connection.createStatement()) {
                        statement.execute("insert into once values ('same'), ('same')");
                      }
                    })));
    long id = engine.publish(queue, "t", "one");
    await().until(() -> engine.deadLetters(queue) == 1);
    assertThat(engine.deadLetter(Integer.class, "attempts_count", id)).isEqualTo(3);
    assertThat(engine.deadLetter(String.class, "last_exception", id)).contains("23505");
    assertThat(effects.all()).isEmpty();
  }

  @Test
  void aHandlerThatGoesOnAfterAFailedStatementHasFailed() {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      effects.write(connection, text);
                      assertThat(catchThrowable(() -> setting(connection, "no.such.thing")))
                          .isInstanceOf(SQLException.class);
                    })));
    long id = engine.publish(queue, "t", "one");
    await().until(() -> engine.deadLetters(queue) == 1);
    assertThat(engine.deadLetter(Integer.class, "attempts_count", id)).isEqualTo(3);
    assertThat(engine.deadLetter(String.class, "last_exception", id)).contains("25P02");
    assertThat(effects.all()).isEmpty();
  }

  /**
   * What the commit did is found out by the next write of the row, and the effect is there once.
   */
  @Test
  @Tag("once")
  void aCommitWhoseAnswerIsLostIsNotRepeatedIfItTookEffect() {
    AtomicInteger commits = new AtomicInteger();
    PostgresOutbox losing =
        committing(
            connection -> {
              connection.commit();
              if (commits.incrementAndGet() == 1) {
                connection.abort(Runnable::run);
                throw new SQLException("the answer was lost", "08006");
              }
            });
    engine.start(subscriber().on("t", String.class, losing.transactional(this::writeText)));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.outcomeUnknown).hasSize(1));
    engine.publish(queue, "t", "two");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(effects.all()).containsExactly("one", "two");
    assertThat(engine.rows(queue)).isZero();
    assertThat(runs).hasValue(2);
  }

  @Test
  @Tag("once")
  void aCommitThatNeverReachedTheServerIsRepeatedWithItsHandlerAndCountsNoAttempt() {
    AtomicInteger commits = new AtomicInteger();
    List<Integer> attempts = new CopyOnWriteArrayList<>();
    PostgresOutbox losing =
        committing(
            connection -> {
              if (commits.incrementAndGet() == 1) {
                connection.abort(Runnable::run);
                throw new SQLException("the connection was lost", "08006");
              }
              connection.commit();
            });
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                losing.transactional(
                    (text, delivery, connection) -> {
                      attempts.add(delivery.attempt());
                      effects.write(connection, text);
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(effects.all()).containsExactly("one");
    assertThat(attempts).containsExactly(1, 1);
  }

  @Test
  @Tag("once")
  void withoutAConnectionNoHandlerIsCalledAndNoAttemptCounted() {
    AtomicInteger refused = new AtomicInteger();
    PostgresOutbox broken =
        borrowing(
            () -> {
              if (refused.incrementAndGet() <= 4) {
                throw new SQLException("there is none", "08001");
              }
              return engine.pool.getConnection();
            });
    List<Integer> attempts = new CopyOnWriteArrayList<>();
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                broken.transactional(
                    (text, delivery, connection) -> {
                      attempts.add(delivery.attempt());
                      effects.write(connection, text);
                    })));
    engine.publish(queue, "t", "one");
    await()
        .atMost(Duration.ofSeconds(20))
        .untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(attempts).containsExactly(1);
    assertThat(engine.events.storeFailed).anyMatch(each -> each.startsWith("transaction: "));
    assertThat(effects.all()).containsExactly("one");
  }

  @Test
  @Tag("once")
  void theWaitForAConnectionTakesNoTimeOfTheHandler() throws Exception {
    CountDownLatch asked = new CountDownLatch(1);
    CountDownLatch answer = new CountDownLatch(1);
    PostgresOutbox slow =
        borrowing(
            () -> {
              if (asked.getCount() == 0) {
                return engine.pool.getConnection();
              }
              asked.countDown();
              Connection connection = database.plain().getConnection();
              awaitUninterruptibly(answer);
              return connection;
            });
    List<Integer> attempts = new CopyOnWriteArrayList<>();
    engine.start(
        subscriber()
            .handlerTimeout(Duration.ofMillis(200))
            .on(
                "t",
                String.class,
                slow.transactional(
                    (text, delivery, connection) -> {
                      attempts.add(delivery.attempt());
                      effects.write(connection, text);
                    })));
    engine.publish(queue, "t", "one");
    asked.await();
    long askedAt = System.nanoTime();
    await().until(() -> System.nanoTime() - askedAt > Duration.ofMillis(500).toNanos());
    assertThat(attempts).isEmpty();
    answer.countDown();
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(attempts).containsExactly(1);
    assertThat(engine.events.handlerTimeouts).hasValue(0);
    assertThat(effects.all()).containsExactly("one");
  }

  private static void awaitUninterruptibly(CountDownLatch latch) {
    while (latch.getCount() > 0) {
      try {
        latch.await();
      } catch (InterruptedException e) {
        // as a driver does
      }
    }
  }

  @Test
  void aRowThatAStrangerHasLockedIsAckedWhenTheLockIsGone() throws Exception {
    CountDownLatch locked = new CountDownLatch(1);
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      engine.start(
          subscriber()
              .on(
                  "t",
                  String.class,
                  outbox.transactional(
                      (text, delivery, connection) -> {
                        locked.await();
                        writeText(text, delivery, connection);
                      })));
      long id = engine.publish(queue, "t", "one");
      await().until(() -> engine.column(Integer.class, "deliveries_count", id) == 1);
      try (Statement statement = stranger.createStatement()) {
        statement.execute("select from outbox where id = " + id + " for update");
      }
      locked.countDown();
      await().until(() -> waitingForLocks() == 1);
      assertThat(engine.events.acked).hasValue(0);
      stranger.commit();
    }
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(effects.all()).containsExactly("one");
    assertThat(runs).hasValue(1);
  }

  @Test
  @Tag("once")
  void aStopRollsBackWhatGoesOnPastItsTimeout() {
    CountDownLatch running = new CountDownLatch(1);
    OutboxSubscriber subscriber =
        engine.start(
            subscriber()
                .gracefulTimeout(Duration.ofMillis(200))
                .on(
                    "t",
                    String.class,
                    outbox.transactional(
                        (text, delivery, connection) -> {
                          effects.write(connection, text);
                          running.countDown();
                          new CountDownLatch(1).await();
                        })));
    engine.publish(queue, "t", "one");
    await().until(() -> running.getCount() == 0);
    subscriber.stop();
    await().until(() -> engine.pool.getHikariPoolMXBean().getActiveConnections() == 0);
    assertThat(effects.all()).isEmpty();
    assertThat(engine.rows(queue)).isEqualTo(1);
    assertThat(engine.events.acked).hasValue(0);
  }

  @Test
  @Tag("once")
  void ifTheRollbackItselfBreaksNothingOfTheFailedRunIsCommitted() {
    AtomicInteger rollbacks = new AtomicInteger();
    PostgresOutbox broken =
        before(
            "rollback",
            connection -> {
              if (runs.get() > 0 && rollbacks.incrementAndGet() == 1) {
                throw new OutOfMemoryError("Java heap space");
              }
            });
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                broken.transactional(
                    (text, delivery, connection) -> {
                      effects.write(connection, "run " + runs.incrementAndGet());
                      if (runs.get() == 1) {
                        throw new IllegalStateException("it failed");
                      }
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(effects.all()).containsExactly("run 2");
    assertThat(engine.events.retried).hasSize(1);
  }

  /** As of a pool without autocommit that tests its connections by a query. */
  @Test
  void aConnectionThatComesWithAnOpenTransactionIsUsedAtReadCommittedAllTheSame() {
    PGSimpleDataSource plain = database.plain();
    plain.setOptions("-c default_transaction_isolation=serializable");
    PostgresOutbox tested =
        borrowing(
            () -> {
              Connection connection = plain.getConnection();
              connection.setAutoCommit(false);
              setting(connection, "transaction_isolation");
              return connection;
            });
    List<String> seen = new CopyOnWriteArrayList<>();
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                tested.transactional(
                    (text, delivery, connection) -> {
                      seen.add(setting(connection, "transaction_isolation"));
                      effects.write(connection, text);
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    engine.publish(queue, "t", "two");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(2));
    assertThat(effects.all()).containsExactly("one", "two");
    assertThat(seen).containsExactly("read committed", "read committed");
    assertThat(engine.events.storeFailed).isEmpty();
  }

  @Test
  void aRescheduleCountsFromTheEndOfTheHandler() {
    AtomicReference<Long> ended = new AtomicReference<>();
    AtomicReference<Long> again = new AtomicReference<>();
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      if (runs.incrementAndGet() > 1) {
                        again.set(System.nanoTime());
                        return Outcome.ack();
                      }
                      sleep(connection, 1);
                      ended.set(System.nanoTime());
                      return Outcome.reschedule(Duration.ofMillis(1_500));
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(Duration.ofNanos(again.get() - ended.get()))
        .isGreaterThanOrEqualTo(Duration.ofMillis(1_400));
  }

  @Test
  void aDeferredTriggerWithACodeOfTheUsersOwnIsAFailureOfTheMessage() {
    database.update("create table if not exists checked (what text)");
    database.update(
        """
        create or replace function refuse() returns trigger language plpgsql as
          $$ begin raise exception 'refused' using errcode = 'OB001'; end $$""");
    database.update("drop trigger if exists refuse on checked");
    database.update(
        """
        create constraint trigger refuse after insert on checked
          deferrable initially deferred for each row execute function refuse()""");
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      effects.write(connection, text);
                      try (Statement statement = connection.createStatement()) {
                        statement.execute("insert into checked values ('one')");
                      }
                    })));
    long id = engine.publish(queue, "t", "one");
    await().until(() -> engine.deadLetters(queue) == 1);
    assertThat(engine.deadLetter(Integer.class, "attempts_count", id)).isEqualTo(3);
    assertThat(engine.deadLetter(String.class, "last_exception", id)).contains("OB001");
    assertThat(effects.all()).isEmpty();
    assertThat(engine.events.storeFailed).isEmpty();
  }

  @Test
  @Tag("once")
  void aHandlerThatWaitsForItsConnectionDoesNotBeginOnceTheSubscriberIsStopped() throws Exception {
    CountDownLatch asked = new CountDownLatch(1);
    CountDownLatch answer = new CountDownLatch(1);
    CountDownLatch answered = new CountDownLatch(1);
    PostgresOutbox slow =
        borrowing(
            () -> {
              asked.countDown();
              awaitUninterruptibly(answer);
              Connection connection = engine.pool.getConnection();
              answered.countDown();
              return connection;
            });
    OutboxSubscriber subscriber =
        engine.start(
            subscriber()
                .gracefulTimeout(Duration.ofMillis(200))
                .on("t", String.class, slow.transactional(this::writeText)));
    engine.publish(queue, "t", "one");
    asked.await();
    subscriber.stop();
    answer.countDown();
    answered.await();
    await().until(() -> engine.pool.getHikariPoolMXBean().getActiveConnections() == 0);
    assertThat(runs).hasValue(0);
    assertThat(engine.rows(queue)).isEqualTo(1);
  }

  @Test
  @Tag("once")
  void aHandlerWhoseLeaseIsLostWhileItWaitsForItsConnectionDoesNotBegin() throws Exception {
    AtomicInteger borrowed = new AtomicInteger();
    CountDownLatch answer = new CountDownLatch(1);
    PostgresOutbox slow =
        borrowing(
            () -> {
              if (borrowed.incrementAndGet() == 1) {
                awaitUninterruptibly(answer);
              }
              return engine.pool.getConnection();
            });
    OutboxSubscriber subscriber =
        engine.start(
            subscriber()
                .lease(Duration.ofSeconds(1))
                .on("t", String.class, slow.transactional(this::writeText)));
    long id = engine.publish(queue, "t", "one");
    await().until(() -> borrowed.get() == 1);
    database.update( // as if another owner had claimed it
        "update outbox set lease_token = lease_token + 1, lease_until = now() where id = ?", id);
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    await().untilAsserted(() -> assertThat(engine.events.leaseLost).contains(Phase.RENEW));
    answer.countDown();
    await().until(() -> subscriber.health().inFlight() == 0);
    assertThat(runs).hasValue(1);
    assertThat(effects.all()).containsExactly("one");
    assertThat(engine.events.storeFailed).isEmpty();
  }

  @Test
  void anotherSearchPathOfTheHandlerDoesNotLeadTheAckToAnotherTable() {
    database.update("create schema if not exists tenant");
    database.update("drop table if exists tenant.outbox");
    database.update("create table tenant.outbox (like public.outbox including all)");
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      runs.incrementAndGet();
                      database.update( // has a row of the same id
                          "insert into tenant.outbox select * from public.outbox where id = ?"
                              + " on conflict do nothing",
                          delivery.id());
                      searchPath(connection, "tenant");
                      effects.write(connection, text);
                      return runs.get() == 1 ? Outcome.reschedule(Duration.ZERO) : Outcome.ack();
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(database.count("tenant.outbox")).isEqualTo(1);
    assertThat(engine.rows(queue)).isZero();
    assertThat(effects.all()).containsExactly("one", "one");
  }

  @Test
  void aSearchPathOfTheHandlerOnWhichThereIsNoOutboxDoesNotKeepItFromItsAck() {
    database.update("create schema if not exists empty");
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      searchPath(connection, "empty");
                      writeText(text, delivery, connection);
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(effects.all()).containsExactly("one");
    assertThat(runs).hasValue(1);
  }

  private static void searchPath(Connection connection, String schema) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute("set local search_path to " + schema);
    }
  }

  /** As at a restart of the server; and handlers wrap what they catch. */
  @Test
  void aConnectionThatIsLostWhileTheHandlerRunsCountsNoAttempt() {
    List<Integer> attempts = new CopyOnWriteArrayList<>();
    engine.start(
        subscriber()
            .retry(RetryPolicy.none())
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      attempts.add(delivery.attempt());
                      effects.write(connection, "run " + runs.incrementAndGet());
                      if (runs.get() < 3) {
                        terminate(connection);
                      }
                      try {
                        effects.write(connection, text);
                      } catch (SQLException e) {
                        throw new IllegalStateException("it could not be written");
                      }
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(attempts).containsExactly(1, 1, 1);
    assertThat(effects.all()).containsExactly("one", "run 3");
    assertThat(engine.deadLetters(queue)).isZero();
    assertThat(engine.events.storeFailed).anyMatch(each -> each.startsWith("transaction: "));
  }

  @Test
  void whatAHandlerThrowsOnASoundConnectionIsAnAttemptThoughItSpeaksOfTheServer() {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      effects.write(connection, text);
                      if (runs.incrementAndGet() > 0) {
                        throw new SQLException("another server is down", "08006");
                      }
                    })));
    long id = engine.publish(queue, "t", "one");
    await().until(() -> engine.deadLetters(queue) == 1);
    assertThat(engine.deadLetter(Integer.class, "attempts_count", id)).isEqualTo(3);
    assertThat(engine.events.storeFailed).isEmpty();
  }

  private void terminate(Connection connection) throws SQLException {
    int pid = connection.unwrap(PGConnection.class).getBackendPID();
    database.one(Boolean.class, "select pg_terminate_backend(?)", pid);
    await()
        .until(
            () ->
                database.one(Long.class, "select count(*) from pg_stat_activity where pid = ?", pid)
                    == 0);
  }

  @Test
  void aDefaultIsolationThatIsChangedLaterIsNoticed() {
    PGSimpleDataSource serializable = database.plain();
    serializable.setOptions("-c default_transaction_isolation=serializable");
    AtomicInteger borrowed = new AtomicInteger();
    PostgresOutbox changing =
        borrowing(
            () ->
                borrowed.incrementAndGet() == 1
                    ? engine.pool.getConnection()
                    : serializable.getConnection());
    List<String> seen = new CopyOnWriteArrayList<>();
    engine.start(
        subscriber()
            .lease(Duration.ofMillis(400))
            .on(
                "t",
                String.class,
                changing.transactional(
                    (text, delivery, connection) -> {
                      seen.add(delivery.attempt() + setting(connection, "transaction_isolation"));
                      effects.write(connection, text);
                      sleep(connection, text.equals("one") ? 0 : 1); // and its lease is renewed
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    engine.publish(queue, "t", "two");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(2));
    assertThat(seen).containsExactly("1read committed", "1serializable", "1read committed");
    assertThat(effects.all()).containsExactly("one", "two");
  }

  @Test
  void aHandlerCannotMakeItsConnectionReadOnlySinceItsAckIsAWrite() {
    AtomicReference<Throwable> refused = new AtomicReference<>();
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      refused.set(catchThrowable(() -> connection.setReadOnly(true)));
                      connection.setReadOnly(false);
                      writeText(text, delivery, connection);
                    })));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(refused.get())
        .isInstanceOf(SQLException.class)
        .hasMessageContaining("leave it as it is");
    assertThat(effects.all()).containsExactly("one");
    assertThat(runs).hasValue(1);
  }

  @Test
  void aHandlerThatSetsItsTransactionReadOnlyHasFailed() {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                outbox.transactional(
                    (text, delivery, connection) -> {
                      try (Statement statement = connection.createStatement()) {
                        statement.execute("set transaction read only");
                      }
                    })));
    long id = engine.publish(queue, "t", "one");
    await().until(() -> engine.deadLetters(queue) == 1);
    assertThat(engine.deadLetter(Integer.class, "attempts_count", id)).isEqualTo(3);
    assertThat(engine.deadLetter(String.class, "last_exception", id))
        .contains("25006", "the handler has set its transaction read-only");
    assertThat(engine.events.storeFailed).isEmpty();
  }

  /** Whatever the handler makes of it; and the pool looks for another server. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aServerThatHasBecomeReadOnlyCountsNoAttemptAndIsLeft(boolean handlerWrites) {
    PGSimpleDataSource server = database.plain();
    server.setOptions("-c default_transaction_read_only=on");
    HikariConfig config = new HikariConfig();
    config.setDataSource(server);
    config.setMaximumPoolSize(4);
    List<Integer> attempts = new CopyOnWriteArrayList<>();
    try (HikariDataSource pool = new HikariDataSource(config)) {
      await().until(() -> pool.getHikariPoolMXBean().getIdleConnections() == 4);
      server.setOptions("-c default_transaction_read_only=off"); // of connections made from now on
      OutboxSubscriber subscriber =
          engine.start(
              subscriber()
                  .retry(RetryPolicy.none())
                  .on(
                      "t",
                      String.class,
                      PostgresOutbox.on(pool, database.table())
                          .transactional(
                              (text, delivery, connection) -> {
                                attempts.add(delivery.attempt());
                                try {
                                  setting(connection, "transaction_read_only");
                                  if (handlerWrites) {
                                    effects.write(connection, text);
                                  }
                                } catch (SQLException e) {
                                  throw new IllegalStateException("it could not be written");
                                }
                              })));
      engine.publish(queue, "t", "one");
      await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
      subscriber.stop();
    }
    assertThat(attempts).containsExactly(1, 1);
    assertThat(effects.all()).hasSize(handlerWrites ? 1 : 0);
    assertThat(engine.deadLetters(queue)).isZero();
    assertThat(engine.events.storeFailed).anyMatch(each -> each.startsWith("transaction: "));
  }

  /** The server is told nothing of a network that is cut. */
  @Test
  void aTransactionThatIsCutOffBeforeItsCommitKeepsItsBucketForALittleWhileOnly() {
    OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
    try (TcpProxy network = new TcpProxy(database.server().host(), database.server().port())) {
      PGSimpleDataSource plain = database.plain();
      plain.setServerNames(new String[] {network.host()});
      plain.setPortNumbers(new int[] {network.port()});
      AtomicInteger borrowed = new AtomicInteger();
      DataSource source =
          source(
              () ->
                  borrowed.incrementAndGet() == 1
                      ? calling(
                          plain.getConnection(), "commit", connection -> network.blackhole(), true)
                      : engine.pool.getConnection());
      engine.start(
          subscriber()
              .ordered()
              .on("t", String.class, Transactional.of(impatient(source), this::writeText)));
      engine.inTransaction(
          List.of(OutboxMessage.to(queue).type("t").orderingKey("k").body("one").build()));
      await().until(() -> runs.get() == 1);
      await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
      await()
          .untilAsserted(
              () ->
                  assertThat(buckets("for update skip locked"))
                      .containsExactlyInAnyOrderElementsOf(buckets("")));
    }
    assertThat(effects.all()).containsExactly("one");
    assertThat(runs).hasValue(2);
  }

  private List<Long> buckets(String locking) {
    return database.list(
        Long.class, "select bucket from outbox_buckets where queue = ? " + locking, queue);
  }

  @ParameterizedTest
  @CsvSource({"0, 2s", "1500, 1500ms", "3600000, 2s"})
  void whatTheServerAllowsAnIdleTransactionIsOnlyShortenedAndAfterTheHandler(
      String before, String atTheCommit) {
    OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
    PGSimpleDataSource plain = database.plain();
    String name = "idle_in_transaction_session_timeout";
    plain.setOptions("-c " + name + "=" + before);
    List<String> seen = new CopyOnWriteArrayList<>();
    DataSource source =
        source(
            () ->
                calling(
                    plain.getConnection(),
                    "commit",
                    connection -> seen.add(setting(connection, name)),
                    true));
    engine.start(
        subscriber()
            .ordered()
            .on("t", String.class, Transactional.of(impatient(source), this::writeText)));
    engine.inTransaction(
        List.of(OutboxMessage.to(queue).type("t").orderingKey("k").body("one").build()));
    await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(seen).containsExactly(atTheCommit);
    assertThat(effects.all()).containsExactly("one");
  }

  @Test
  @Tag("once")
  void aServerThatFallsSilentBeforeTheHandlerBeginsHoldsUpNoWorkerForLong() {
    List<Integer> timeouts = new CopyOnWriteArrayList<>();
    try (TcpProxy network = new TcpProxy(database.server().host(), database.server().port())) {
      PGSimpleDataSource plain = database.plain();
      plain.setServerNames(new String[] {network.host()});
      plain.setPortNumbers(new int[] {network.port()});
      AtomicInteger borrowed = new AtomicInteger();
      DataSource source =
          source(
              () -> {
                Connection connection = plain.getConnection();
                if (borrowed.incrementAndGet() == 1) {
                  network.blackhole();
                }
                return connection;
              });
      engine.start(
          subscriber()
              .workers(1)
              .on(
                  "t",
                  String.class,
                  Transactional.of(
                      impatient(source),
                      (String text, Delivery delivery, Connection connection) -> {
                        timeouts.add(connection.getNetworkTimeout());
                        writeText(text, delivery, connection);
                      })));
      engine.publish(queue, "t", "one");
      await()
          .untilAsserted(
              () ->
                  assertThat(engine.events.storeFailed)
                      .anyMatch(each -> each.startsWith("transaction: ")));
      network.resume();
      await().untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    }
    assertThat(effects.all()).containsExactly("one");
    assertThat(timeouts).as("the handler's own statements are not bounded").containsExactly(0);
  }

  /** The driver keeps its connection locked for the copy, and waits for that without a timeout. */
  @Test
  @Tag("once")
  void aHandlerThatReturnsWithinACopyHoldsUpNoWorkerForLong() {
    List<Boolean> interrupted = new CopyOnWriteArrayList<>();
    List<Integer> attempts = new CopyOnWriteArrayList<>();
    engine.start(
        subscriber()
            .workers(1)
            .unlimitedHandlerTime()
            .on(
                "t",
                String.class,
                Transactional.of(
                    impatient(engine.pool),
                    (String text, Delivery delivery, Connection connection) -> {
                      attempts.add(delivery.attempt());
                      interrupted.add(Thread.currentThread().isInterrupted());
                      effects.write(connection, "run " + runs.incrementAndGet());
                      if (runs.get() == 1) {
                        beginCopy(connection);
                      }
                    })));
    engine.publish(queue, "t", "one");
    await()
        .atMost(Duration.ofSeconds(20))
        .untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(effects.all()).containsExactly("run 2");
    assertThat(attempts).containsExactly(1, 1);
    assertThat(interrupted).containsExactly(false, false);
    await().until(() -> engine.pool.getHikariPoolMXBean().getActiveConnections() == 0);
  }

  @ParameterizedTest
  @Tag("once")
  @ValueSource(booleans = {false, true})
  void aHandlerThatThrowsWithinACopyHoldsUpNoWorkerForLong(boolean afterItsTimeout) {
    List<Boolean> interrupted = new CopyOnWriteArrayList<>();
    OutboxSubscriber.Builder builder = subscriber().workers(1);
    engine.start(
        (afterItsTimeout
                ? builder.handlerTimeout(Duration.ofMillis(300))
                : builder.unlimitedHandlerTime())
            .on(
                "t",
                String.class,
                Transactional.of(
                    impatient(engine.pool),
                    (String text, Delivery delivery, Connection connection) -> {
                      interrupted.add(Thread.currentThread().isInterrupted());
                      effects.write(connection, "run " + runs.incrementAndGet());
                      if (runs.get() == 1) {
                        beginCopy(connection);
                        if (afterItsTimeout) {
                          new CountDownLatch(1).await();
                        }
                        throw new IllegalStateException("while it reads what to copy");
                      }
                    })));
    engine.publish(queue, "t", "one");
    await()
        .atMost(Duration.ofSeconds(20))
        .untilAsserted(() -> assertThat(engine.events.acked).hasValue(1));
    assertThat(effects.all()).containsExactly("run 2");
    assertThat(interrupted).containsExactly(false, false);
    await().until(() -> engine.pool.getHikariPoolMXBean().getActiveConnections() == 0);
  }

  private static void beginCopy(Connection connection) throws SQLException {
    connection.unwrap(PGConnection.class).getCopyAPI().copyIn("copy effect from stdin");
  }

  @Test
  void aPoolWithoutAConnectionForEachWorkerIsRefusedAtTheStart() {
    OutboxSubscriber subscriber =
        engine
            .subscriber(queue)
            .workers(7)
            .on("t", String.class, outbox.transactional(this::writeText))
            .build();
    assertThatThrownBy(subscriber::start)
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("The pool has 8 connection(s)")
        .hasMessageContaining("one for each worker that may run a transactional handler, 7 in all")
        .hasMessageContaining("give the pool 9 or more");
  }

  @Test
  void transactionsOfAnotherTableAreRefusedWhenTheSubscriberIsBuilt() {
    PostgresOutbox other = PostgresOutbox.on(engine.pool, OutboxTable.named("other"));
    assertThatThrownBy(
            () -> subscriber().on("t", String.class, other.transactional(this::writeText)).build())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("take both from the same PostgresOutbox");
  }

  private void writeText(String text, Delivery delivery, Connection connection)
      throws SQLException {
    runs.incrementAndGet();
    effects.write(connection, text);
  }

  private long sleeping() {
    return database.one(
        Long.class,
        "select count(*) from pg_stat_activity where datname = current_database()"
            + " and query like '%pg_sleep%' and state = 'active' and pid <> pg_backend_pid()");
  }

  private long waitingForGate() {
    return database.one(
        Long.class,
        "select count(*) from pg_locks l join pg_database d on d.oid = l.database"
            + " where d.datname = current_database() and l.locktype = 'advisory'"
            + " and not l.granted");
  }

  private static void execute(Connection connection, String sql) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute(sql);
    }
  }

  private long waitingForLocks() {
    return database.one(
        Long.class,
        "select count(*) from pg_stat_activity where datname = current_database()"
            + " and wait_event_type = 'Lock' and query like '%delete from%outbox%'");
  }

  private static void sleep(Connection connection, int seconds) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute("select pg_sleep(" + seconds + ")");
    }
  }

  private static String setting(Connection connection, String name) throws SQLException {
    try (PreparedStatement select = connection.prepareStatement("select current_setting(?)")) {
      select.setString(1, name);
      try (ResultSet row = select.executeQuery()) {
        row.next();
        return row.getString(1);
      }
    }
  }

  private interface Call {
    void on(Connection connection) throws SQLException;
  }

  private interface Borrow {
    Connection get() throws SQLException;
  }

  /** The outbox, with another way to borrow connections of the pool. */
  private PostgresOutbox borrowing(Borrow borrow) {
    return PostgresOutbox.on(source(borrow), database.table());
  }

  private DataSource source(Borrow borrow) {
    return (DataSource)
        Proxy.newProxyInstance(
            getClass().getClassLoader(),
            new Class<?>[] {DataSource.class},
            (proxy, method, args) ->
                method.getName().equals("getConnection")
                    ? borrow.get()
                    : invoke(engine.pool, method, args));
  }

  /** Transactions that wait half a second for the server. */
  private JdbcTransactions impatient(DataSource source) {
    return new JdbcTransactions(source, database.table(), Duration.ofMillis(500));
  }

  /** The outbox, with another way to commit. */
  private PostgresOutbox committing(Call commit) {
    return borrowing(() -> calling(engine.pool.getConnection(), "commit", commit, false));
  }

  /** The outbox, with something that comes before a method of its connections. */
  private PostgresOutbox before(String name, Call call) {
    return borrowing(() -> calling(engine.pool.getConnection(), name, call, true));
  }

  private Connection calling(Connection connection, String name, Call call, boolean goesOn) {
    return (Connection)
        Proxy.newProxyInstance(
            getClass().getClassLoader(),
            new Class<?>[] {Connection.class},
            (proxy, method, args) -> {
              if (method.getName().equals(name)) {
                call.on(connection);
                if (!goesOn) {
                  return null;
                }
              }
              return invoke(connection, method, args);
            });
  }

  private static Object invoke(Object target, java.lang.reflect.Method method, Object[] args)
      throws Throwable {
    try {
      return method.invoke(target, args);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }
}
