package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.IfLive;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.ReactiveOutboxPublisher;
import dev.outbox4j.postgres.r2dbc.R2dbcTransactions;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TcpProxy;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.testing.CapturedLogs;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import io.r2dbc.spi.R2dbcException;
import io.r2dbc.spi.R2dbcNonTransientResourceException;
import io.r2dbc.spi.Result;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.SignalType;

/** What a handler writes over R2DBC is there together with its message's end, or not at all. */
@ExtendWith(PostgresExtension.class)
class R2dbcTransactionsIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();

  private final TestDatabase database;
  private final AtomicInteger runs = new AtomicInteger();
  private final List<Integer> attempts = new CopyOnWriteArrayList<>();
  private EngineFixture engine;
  private R2dbcTransactions reactive;
  private String queue;
  private Effects effects;

  R2dbcTransactionsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 4);
    queue = "r2dbc-" + QUEUES.incrementAndGet();
    effects = new Effects(database, queue);
    reactive = R2dbcTransactions.of(factory(Map.of()), database.table());
  }

  @AfterEach
  void tearDown() {
    engine.close();
    await().until(() -> sessions() == 0); // of handlers: none is left behind
  }

  private PostgresqlConnectionFactory factory(Map<String, String> options) {
    return factory(database.server().host(), database.server().port(), options);
  }

  private PostgresqlConnectionFactory factory(String host, int port, Map<String, String> options) {
    return new PostgresqlConnectionFactory(
        PostgresqlConnectionConfiguration.builder()
            .host(host)
            .port(port)
            .username(database.server().user())
            .password(database.server().password())
            .database(database.name())
            .applicationName(queue)
            .options(options)
            .build());
  }

  private long sessions() {
    return database.one(
        Long.class, "select count(*) from pg_stat_activity where application_name = ?", queue);
  }

  private OutboxSubscriber.Builder subscriber() {
    return engine.subscriber(queue).workers(4);
  }

  private Mono<Void> write(Connection connection, String what) {
    return Flux.from(
            connection
                .createStatement("insert into public.effect (queue, what) values ($1, $2)")
                .bind(0, queue)
                .bind(1, what)
                .execute())
        .concatMap(Result::getRowsUpdated)
        .then();
  }

  private static Mono<Void> run(Connection connection, String sql) {
    return Flux.from(connection.createStatement(sql).execute())
        .concatMap(Result::getRowsUpdated)
        .then();
  }

  private static Mono<String> setting(Connection connection, String name) {
    return Flux.from(
            connection.createStatement("select current_setting($1)").bind(0, name).execute())
        .concatMap(result -> result.map(row -> row.get(0, String.class)))
        .next();
  }

  private void awaitAcked(int messages) {
    await()
        .atMost(Duration.ofSeconds(30))
        .untilAsserted(() -> assertThat(engine.events.acked).hasValue(messages));
  }

  private interface Handling {
    Publisher<?> handle(String text, int attempt, Connection connection);
  }

  private OutboxSubscriber start(Handling handling) {
    return start(subscriber(), reactive, handling);
  }

  private OutboxSubscriber start(
      OutboxSubscriber.Builder builder, R2dbcTransactions transactions, Handling handling) {
    return engine.start(
        builder.on(
            "t",
            String.class,
            transactions.transactional(
                (text, delivery, connection) -> {
                  attempts.add(delivery.attempt());
                  return handling.handle(text, delivery.attempt(), connection);
                })));
  }

  @Test
  void effectsCommitWithTheAck() {
    start(
        (text, attempt, connection) ->
            write(connection, text)
                .doOnSuccess(
                    done ->
                        assertThat(effects.all())
                            .as("seen by others before the commit")
                            .isEmpty()));
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(effects.all()).containsExactly("one");
    assertThat(engine.rows(queue)).isZero();
    assertThat(attempts).containsExactly(1);
  }

  /** Its transaction is being committed before the worker's thread has come back from it. */
  @Test
  void handlersThatEndAtOnceAreNotBrokenOff() {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                reactive.transactional(
                    (text, delivery, connection) -> {
                      attempts.add(delivery.deliveries());
                      return Outcome.ack();
                    })));
    engine.publish(queue, "t", 200);
    awaitAcked(200);
    assertThat(attempts).hasSize(200).containsOnly(1);
    assertThat(engine.events.storeFailed).isEmpty();
    assertThat(engine.events.retried).isEmpty();
  }

  @Test
  void stagesAndPlainOutcomesEndTheTransactionAsWell() {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                reactive.transactional(
                    (text, delivery, connection) -> {
                      return write(connection, "attempt " + delivery.attempt())
                          .toFuture()
                          .thenApply(
                              done -> delivery.attempt() == 1 ? Outcome.retry() : Outcome.ack());
                    }))
            .otherwise(
                reactive.transactional(
                    (payload, delivery, connection) -> {
                      return Outcome.ack();
                    })));
    engine.publish(queue, "t", "one");
    engine.publish(queue, "other", "two");
    awaitAcked(2);
    assertThat(effects.all()).containsExactly("attempt 2");
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void whatFailsIsRolledBackAndRetriedByThePolicy(boolean throwsAtOnce) {
    start(
        (text, attempt, connection) -> {
          if (throwsAtOnce && attempt == 1) {
            throw new IllegalStateException("not yet");
          }
          return write(connection, "attempt " + attempt)
              .then(
                  attempt < 3
                      ? Mono.error(new IllegalStateException("not yet"))
                      : Mono.just(Outcome.ack()));
        });
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(effects.all()).containsExactly("attempt 3");
    assertThat(engine.events.retried).hasSize(2);
  }

  @Test
  void aRescheduleCommitsAndARejectionRollsBack() {
    start(
        (text, attempt, connection) ->
            write(connection, text + " " + runs.incrementAndGet())
                .thenReturn(
                    runs.get() == 1
                        ? Outcome.reschedule(Duration.ofMillis(20))
                        : Outcome.reject("bad")));
    long id = engine.publish(queue, "t", "run");
    await().until(() -> engine.deadLetters(queue) == 1);
    assertThat(engine.deadLetter(String.class, "failure_reason", id)).isEqualTo("rejected");
    assertThat(effects.all()).containsExactly("run 1");
    assertThat(engine.events.rescheduled).hasSize(1);
  }

  @Test
  void ifTheLeaseWasLostEverythingIsRolledBack() {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                reactive.transactional(
                    (text, delivery, connection) -> {
                      int run = runs.incrementAndGet();
                      return write(connection, "run " + run)
                          .doOnSuccess(
                              done -> {
                                if (run == 1) { // as if another owner had claimed it
                                  database.update(
                                      "update outbox set lease_token = lease_token + 1,"
                                          + " lease_until = now() where id = ?",
                                      delivery.id());
                                }
                              });
                    })));
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(effects.all()).containsExactly("run 2");
    assertThat(engine.events.leaseLost).containsExactly(Phase.ACK);
  }

  @Test
  @Tag("once")
  void aHandlerThatRunsForManyLeasesKeepsItsRowAndOccupiesNoThread() {
    start(
        subscriber().workers(1).lease(Duration.ofMillis(400)),
        reactive,
        (text, attempt, connection) ->
            write(connection, text).then(run(connection, "select pg_sleep(2)")));
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(attempts).containsExactly(1);
    assertThat(engine.events.renewed.get()).isGreaterThan(3);
  }

  @ParameterizedTest
  @Tag("once")
  @ValueSource(booleans = {true, false})
  void aHandlerPastItsTimeoutIsCancelledAndRolledBack(boolean waitsForTheServer) {
    List<SignalType> ends = new CopyOnWriteArrayList<>();
    start(
        subscriber().handlerTimeout(Duration.ofMillis(300)),
        reactive,
        (text, attempt, connection) ->
            write(connection, "run " + runs.incrementAndGet())
                .then(
                    runs.get() > 1
                        ? Mono.empty()
                        : waitsForTheServer ? run(connection, "select pg_sleep(60)") : Mono.never())
                .doFinally(ends::add));
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(effects.all()).containsExactly("run 2");
    assertThat(engine.events.handlerTimeouts).hasValue(1);
    assertThat(ends)
        .containsExactly(
            waitsForTheServer ? SignalType.ON_ERROR : SignalType.CANCEL, SignalType.ON_COMPLETE);
    await()
        .until(
            () ->
                database.one(
                        Long.class,
                        "select count(*) from pg_stat_activity where query like '%pg_sleep(60)%'"
                            + " and state = 'active' and pid <> pg_backend_pid()")
                    == 0);
  }

  @ParameterizedTest
  @Tag("once")
  @ValueSource(booleans = {true, false})
  void thePolicyIsAskedOnceAboutAHandlerPastItsTimeout(boolean waitsForTheServer) {
    List<String> asked = new CopyOnWriteArrayList<>();
    start(
        subscriber()
            .handlerTimeout(Duration.ofMillis(300))
            .retry(
                RetryPolicy.custom(
                    (attempt, failure) -> {
                      asked.add(Thread.currentThread().getName() + ": " + failure);
                      return Duration.ofSeconds(1);
                    })),
        reactive,
        (text, attempt, connection) ->
            attempt > 1
                ? write(connection, text)
                : waitsForTheServer ? run(connection, "select pg_sleep(60)") : Mono.never());
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(asked).hasSize(1).allMatch(each -> each.contains("-handler-timeout"));
  }

  @Test
  @Tag("once")
  void aStageThatIgnoresItsCancellationHoldsUpNothing() {
    CompletableFuture<Object> never =
        new CompletableFuture<>() {
          @Override
          public boolean cancel(boolean mayInterruptIfRunning) {
            return false;
          }
        };
    engine.start(
        subscriber()
            .workers(1)
            .handlerTimeout(Duration.ofMillis(300))
            .on(
                "t",
                String.class,
                reactive.transactional(
                    (text, delivery, connection) ->
                        delivery.attempt() == 1 ? never : write(connection, "run 2").toFuture())));
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(effects.all()).containsExactly("run 2");
  }

  /** Reactor throws them on from any operator, and what comes after it hears of nothing. */
  @ParameterizedTest
  @ValueSource(
      classes = {NoClassDefFoundError.class, StackOverflowError.class, OutOfMemoryError.class})
  void anErrorThatReactorDoesNotPassOnIsAFailedAttempt(Class<? extends Error> type) {
    engine.start(
        subscriber()
            .workers(1)
            .on(
                "t",
                String.class,
                reactive.transactional(
                    (text, delivery, connection) -> {
                      attempts.add(delivery.attempt());
                      Error error = type.getConstructor().newInstance();
                      if (delivery.attempt() == 1) {
                        throw error;
                      }
                      return CompletableFuture.failedFuture(error);
                    })));
    long id = engine.publish(queue, "t", "one");
    await().until(() -> engine.deadLetters(queue) == 1);
    assertThat(attempts).containsExactly(1, 2, 3);
    assertThat(engine.deadLetter(String.class, "last_exception", id)).contains(type.getName());
  }

  @Test
  void ofAStageThatTellsItsEndTwiceTheFirstTimeCounts() {
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                reactive.transactional(
                    (text, delivery, connection) -> {
                      CompletableFuture<Void> written =
                          write(connection, "run " + delivery.attempt()).toFuture();
                      return delivery.attempt() > 1
                          ? written
                          : new CompletableFuture<Outcome>() {
                            @Override
                            public CompletableFuture<Outcome> whenComplete(
                                BiConsumer<? super Outcome, ? super Throwable> action) {
                              CompletableFuture<Void> unused =
                                  written.thenRun(
                                      () -> {
                                        action.accept(Outcome.retry(), null);
                                        action.accept(Outcome.ack(), null);
                                      });
                              return this;
                            }
                          };
                    })));
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(effects.all()).containsExactly("run 2");
  }

  /** A driver does not cancel what is cancelled here, and sends nothing before its answer. */
  @Test
  void aStatementThatItsHandlerHasGivenUpIsCancelledOnTheServer() {
    start(
        subscriber().retry(RetryPolicy.none()),
        reactive,
        (text, attempt, connection) ->
            write(connection, text)
                .then(run(connection, "select pg_sleep(62)").timeout(Duration.ofMillis(50))));
    engine.publish(queue, "t", "one");
    await().until(() -> engine.deadLetters(queue) == 1);
    await().until(() -> sessions() == 0);
  }

  @Test
  @Tag("once")
  void whatGoesOnPastAStopIsCancelledAndRolledBack() {
    AtomicInteger cancelled = new AtomicInteger();
    CountDownLatch written = new CountDownLatch(1);
    OutboxSubscriber subscriber =
        start(
            subscriber().gracefulTimeout(Duration.ofMillis(200)),
            reactive,
            (text, attempt, connection) ->
                write(connection, text)
                    .doOnSuccess(done -> written.countDown())
                    .then(Mono.never())
                    .doOnCancel(cancelled::incrementAndGet));
    engine.publish(queue, "t", "one");
    await().until(() -> written.getCount() == 0);
    subscriber.stop();
    await().until(() -> sessions() == 0 && cancelled.get() == 1);
    assertThat(effects.all()).isEmpty();
    assertThat(engine.rows(queue)).isEqualTo(1);
    assertThat(engine.events.acked).hasValue(0);
  }

  @Test
  void whatEndsTheTransactionIsRefusedAndAKeptConnectionIsOfNoUse() {
    List<Throwable> refused = new CopyOnWriteArrayList<>();
    AtomicReference<Connection> kept = new AtomicReference<>();
    Function<Publisher<Void>, Mono<Void>> refusal =
        end ->
            Mono.from(end)
                .onErrorResume(
                    e -> {
                      refused.add(e);
                      return Mono.empty();
                    });
    start(
        (text, attempt, connection) -> {
          kept.set(connection);
          return refusal
              .apply(connection.commitTransaction())
              .then(refusal.apply(connection.rollbackTransaction()))
              .then(refusal.apply(connection.setAutoCommit(true)))
              .then(Mono.from(connection.beginTransaction()))
              .then(Mono.from(connection.close()))
              .then(Mono.from(connection.createSavepoint("s")))
              .then(write(connection, "undone"))
              .then(Mono.from(connection.rollbackTransactionToSavepoint("s")))
              .then(write(connection, text));
        });
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(refused)
        .hasSize(3)
        .allSatisfy(each -> assertThat(each).hasMessageContaining("complete to commit it, fail"));
    assertThat(effects.all()).containsExactly("one");
    assertThatThrownBy(() -> kept.get().createStatement("select 1"))
        .isInstanceOf(R2dbcException.class)
        .hasMessageContaining("its transaction is over");
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aStatementThatIsKeptDoesNotRunInTheNextHandlersTransaction(boolean batch) {
    Connection only = factory(Map.of()).create().block();
    String stray = "insert into public.effect values ('" + queue + "', 'stray')";
    AtomicReference<Publisher<? extends Result>> kept = new AtomicReference<>();
    List<Throwable> failures = new CopyOnWriteArrayList<>();
    start(
        subscriber().workers(1),
        R2dbcTransactions.of(
            opening(() -> Mono.just(calling(only, "close", connection -> Mono.empty()))),
            database.table()),
        (text, attempt, connection) -> {
          if (runs.incrementAndGet() == 1) {
            kept.set(
                batch
                    ? connection.createBatch().add(stray).execute()
                    : connection.createStatement(stray).execute());
            return write(connection, text);
          }
          return Flux.from(kept.get())
              .concatMap(Result::getRowsUpdated)
              .then()
              .doOnError(failures::add)
              .onErrorComplete()
              .then(write(connection, text));
        });
    engine.publish(queue, "t", "first");
    awaitAcked(1);
    engine.publish(queue, "t", "second");
    awaitAcked(2);
    Mono.from(only.close()).block();
    assertThat(effects.all()).containsExactly("first", "second");
    assertThat(failures).hasSize(1);
    assertThat(failures.get(0)).hasMessageContaining("its transaction is over");
  }

  @Test
  @Tag("once")
  void aChainOfQueuesLosesNothingAndDoublesNothing() {
    ReactiveOutboxPublisher publisher = PostgresOutbox.publisher(database.table()).buildReactive();
    String second = queue + "-second";
    start(
        (text, attempt, connection) ->
            Mono.from(
                    publisher.publish(
                        connection, OutboxMessage.to(second).type("t").body(text).build()))
                .then(
                    attempt == 1
                        ? Mono.error(new IllegalStateException("after it had published"))
                        : Mono.empty()));
    engine.start(
        engine
            .subscriber(second)
            .workers(2)
            .on(
                "t",
                String.class,
                reactive.transactional(
                    (text, delivery, connection) ->
                        write(connection, text)
                            .thenReturn(
                                delivery.attempt() == 1 ? Outcome.retry() : Outcome.ack()))));
    engine.publish(queue, "t", 10);
    awaitAcked(20);
    assertThat(effects.all()).hasSize(10).doesNotHaveDuplicates();
    assertThat(engine.rows(second)).isZero();
  }

  /** The failure of a nested publish is the handler's own. */
  @Test
  void aPublishThatFailsInTheHandlerIsAFailedAttempt() {
    ReactiveOutboxPublisher elsewhere =
        PostgresOutbox.publisher(OutboxTable.named("missing")).buildReactive();
    start(
        (text, attempt, connection) ->
            Mono.from(elsewhere.publish(connection, OutboxMessage.to("q").body(text).build())));
    long id = engine.publish(queue, "t", "one");
    await().until(() -> engine.deadLetters(queue) == 1);
    assertThat(engine.deadLetter(Integer.class, "attempts_count", id)).isEqualTo(3);
    assertThat(engine.events.storeFailed).isEmpty();
  }

  @Test
  void aConstraintThatFailsAtTheCommitIsAFailureOfTheMessage() {
    database.update(
        "create table if not exists once (what text unique deferrable initially deferred)");
    start(
        (text, attempt, connection) ->
            write(connection, text)
                .then(run(connection, "insert into once values ('same'), ('same')")));
    long id = engine.publish(queue, "t", "one");
    await().until(() -> engine.deadLetters(queue) == 1);
    assertThat(engine.deadLetter(Integer.class, "attempts_count", id)).isEqualTo(3);
    assertThat(engine.deadLetter(String.class, "last_exception", id)).contains("23505");
    assertThat(effects.all()).isEmpty();
  }

  @Test
  void aHandlerThatGoesOnAfterAFailedStatementHasFailed() {
    start(
        (text, attempt, connection) ->
            write(connection, text)
                .then(setting(connection, "no.such.thing"))
                .onErrorResume(R2dbcException.class, e -> Mono.empty()));
    long id = engine.publish(queue, "t", "one");
    await().until(() -> engine.deadLetters(queue) == 1);
    assertThat(engine.deadLetter(Integer.class, "attempts_count", id)).isEqualTo(3);
    assertThat(engine.deadLetter(String.class, "last_exception", id)).contains("25P02");
    assertThat(effects.all()).isEmpty();
  }

  @Test
  void aHandlerThatMakesItsTransactionReadOnlyHasFailed() {
    start((text, attempt, connection) -> run(connection, "set transaction read only"));
    long id = engine.publish(queue, "t", "one");
    await().until(() -> engine.deadLetters(queue) == 1);
    assertThat(engine.deadLetter(Integer.class, "attempts_count", id)).isEqualTo(3);
    assertThat(engine.deadLetter(String.class, "last_exception", id))
        .contains("25006", "the handler has set its transaction read-only");
    assertThat(engine.events.storeFailed).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aServerThatIsReadOnlyCountsNoAttempt(boolean handlerWrites) {
    AtomicInteger opened = new AtomicInteger();
    ConnectionFactory readOnlyAtFirst =
        opening(
            () ->
                opened.incrementAndGet() == 1
                    ? factory(Map.of("default_transaction_read_only", "on")).create()
                    : factory(Map.of()).create());
    start(
        subscriber().retry(RetryPolicy.none()),
        R2dbcTransactions.of(readOnlyAtFirst, database.table()),
        (text, attempt, connection) ->
            handlerWrites
                ? write(connection, text)
                    .onErrorMap(e -> new IllegalStateException("it could not be written"))
                : Mono.empty());
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(attempts).containsExactly(1, 1);
    assertThat(effects.all()).hasSize(handlerWrites ? 1 : 0);
    assertThat(engine.events.storeFailed).anyMatch(each -> each.startsWith("transaction: "));
  }

  @Test
  @Tag("once")
  void aConnectionThatIsCutWhileTheHandlerRunsCostsNoAttempt() {
    start(
        (text, attempt, connection) ->
            write(connection, "run " + runs.incrementAndGet())
                .then(
                    runs.get() == 1
                        ? run(connection, "select pg_terminate_backend(pg_backend_pid())")
                            .onErrorMap(e -> new IllegalStateException("of its own"))
                        : Mono.empty()));
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(effects.all()).containsExactly("run 2");
    assertThat(attempts).containsExactly(1, 1);
    assertThat(engine.events.storeFailed).anyMatch(each -> each.startsWith("transaction: "));
  }

  @Test
  @Tag("once")
  void aCommitWhoseAnswerIsLostIsNotRepeatedIfItTookEffect() {
    AtomicInteger commits = new AtomicInteger();
    ConnectionFactory losing =
        committing(
            connection ->
                Mono.from(connection.commitTransaction())
                    .then(
                        commits.incrementAndGet() == 1
                            ? Mono.error(new R2dbcNonTransientResourceException("lost", "08006"))
                            : Mono.empty()));
    start(
        subscriber(),
        R2dbcTransactions.of(losing, database.table()),
        (text, attempt, connection) -> write(connection, text));
    engine.publish(queue, "t", "one");
    await().untilAsserted(() -> assertThat(engine.events.outcomeUnknown).hasSize(1));
    engine.publish(queue, "t", "two");
    awaitAcked(1);
    assertThat(effects.all()).containsExactly("one", "two");
    assertThat(engine.rows(queue)).isZero();
    assertThat(attempts).hasSize(2);
  }

  @Test
  @Tag("once")
  void aCommitThatNeverReachedTheServerIsRepeatedWithItsHandlerAndCountsNoAttempt() {
    AtomicInteger commits = new AtomicInteger();
    ConnectionFactory losing =
        committing(
            connection ->
                commits.incrementAndGet() == 1
                    ? Mono.error(new R2dbcNonTransientResourceException("lost", "08006"))
                    : Mono.from(connection.commitTransaction()));
    start(
        subscriber(),
        R2dbcTransactions.of(losing, database.table()),
        (text, attempt, connection) -> write(connection, text));
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(effects.all()).containsExactly("one");
    assertThat(attempts).containsExactly(1, 1);
  }

  @Test
  @Tag("once")
  void withoutAConnectionNoHandlerIsCalledAndNoAttemptCounted() {
    AtomicInteger refused = new AtomicInteger();
    ConnectionFactory broken =
        opening(
            () ->
                refused.incrementAndGet() <= 2
                    ? Mono.error(new R2dbcNonTransientResourceException("there is none", "08001"))
                    : factory(Map.of()).create());
    start(
        subscriber(),
        R2dbcTransactions.of(broken, database.table()),
        (text, attempt, connection) -> write(connection, text));
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(attempts).containsExactly(1);
    assertThat(effects.all()).containsExactly("one");
    assertThat(engine.events.storeFailed).anyMatch(each -> each.startsWith("transaction: "));
  }

  @Test
  void handlersRunAtReadCommittedAndTheAckFindsItsTableOnWhateverSearchPath() {
    List<String> seen = new CopyOnWriteArrayList<>();
    start(
        subscriber(),
        R2dbcTransactions.of(
            factory(Map.of("default_transaction_isolation", "serializable")), database.table()),
        (text, attempt, connection) ->
            setting(connection, "transaction_isolation")
                .doOnNext(seen::add)
                .then(setting(connection, "statement_timeout"))
                .doOnNext(seen::add)
                .then(write(connection, text))
                .then(run(connection, "set local search_path to pg_catalog")));
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(seen).containsExactly("read committed", "0");
    assertThat(effects.all()).containsExactly("one");
  }

  @Test
  void inAnOrderedQueueTheBucketsLeaseFencesTheAck() {
    OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
    List<String> order = new CopyOnWriteArrayList<>();
    start(
        subscriber().ordered(),
        reactive,
        (text, attempt, connection) -> {
          if (attempt == 2) {
            order.add(text);
          }
          return write(connection, text + " " + attempt)
              .then(setting(connection, "idle_in_transaction_session_timeout"))
              .doOnNext(before -> assertThat(before).isEqualTo("0"))
              .thenReturn(attempt == 1 ? Outcome.retry() : Outcome.ack());
        });
    engine.inTransaction(
        List.of(
            OutboxMessage.to(queue).type("t").orderingKey("k").body("a").build(),
            OutboxMessage.to(queue).type("t").orderingKey("k").body("b").build()));
    awaitAcked(2);
    assertThat(order).containsExactly("a", "b");
    assertThat(effects.all()).containsExactly("a 2", "b 2");
  }

  @Test
  void aWriteWhoseResultNobodyReadsIsAFailedAttemptThatSaysSo() {
    AtomicReference<String> told = new AtomicReference<>();
    engine.start(
        subscriber()
            .on(
                "t",
                String.class,
                reactive.transactional(
                    (text, delivery, connection) -> {
                      if (delivery.attempt() > 1) {
                        told.set(
                            database.one(
                                String.class,
                                "select last_error from outbox where queue = ?",
                                queue));
                        return write(connection, text);
                      }
                      return Flux.from(
                              connection
                                  .createStatement(
                                      "insert into effect (queue, what) values ($1, $2)")
                                  .bind(0, queue)
                                  .bind(1, "unread")
                                  .execute())
                          .then();
                    })));
    engine.publish(queue, "t", "one");
    awaitAcked(1);
    assertThat(told.get()).contains("has not read 1 result(s) of its statements");
    assertThat(effects.all()).containsExactly("one");
  }

  /** Another schema stands for another database, as its pool finds another table of the name. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aRowOfAnotherDatabaseIsNotAckedThoughItsIdAndTokenAreTheSame(boolean ordered)
      throws Exception {
    database.update("drop schema if exists elsewhere cascade");
    OutboxMigrations.of("elsewhere", "outbox").migrate(database.plain());
    OutboxSubscriber.Builder builder =
        subscriber().lease(Duration.ofSeconds(2)).maxDeliveries(Integer.MAX_VALUE);
    if (ordered) {
      OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
      OrderedMigrations.of("elsewhere", "outbox", queue).migrate(database.plain());
      builder.ordered();
    }
    R2dbcTransactions elsewhere =
        R2dbcTransactions.of(factory(Map.of("search_path", "elsewhere")), database.table());
    try (CapturedLogs logs = new CapturedLogs()) {
      start(
          builder,
          elsewhere,
          (text, attempt, connection) ->
              write(connection, text)
                  .then(
                      runs.incrementAndGet() == 1
                          ? Mono.<Void>fromRunnable(() -> copyElsewhere(ordered))
                          : Mono.empty()));
      engine.publish(queue, "t", "one");
      logs.awaitLine(line -> line.contains("another database than the store's"));
    }
    assertThat(database.one(Long.class, "select count(*) from elsewhere.outbox")).isEqualTo(1);
    assertThat(engine.rows(queue)).isEqualTo(1);
    assertThat(effects.all()).isEmpty();
  }

  /** The same row is leased there by somebody else. */
  private void copyElsewhere(boolean ordered) {
    database.update(
        "insert into elsewhere.outbox select * from public.outbox where queue = ?", queue);
    if (!ordered) {
      database.update("update elsewhere.outbox set leased_by = 'somebody else'");
      return;
    }
    database.update("delete from elsewhere.outbox_buckets");
    database.update("insert into elsewhere.outbox_buckets select * from public.outbox_buckets");
    database.update("update elsewhere.outbox_buckets set owner = 'somebody else'");
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aMessageThatIsReplacedMeanwhileIsHandledAgainAndInAnOrderedQueueTheFirstRunRollsBack(
      boolean ordered) throws Exception {
    OutboxSubscriber.Builder builder = subscriber();
    if (ordered) {
      OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
      builder.ordered();
    }
    CountDownLatch begun = new CountDownLatch(1);
    CompletableFuture<Void> replaced = new CompletableFuture<>();
    start(
        builder,
        reactive,
        (text, attempt, connection) -> {
          begun.countDown();
          return write(connection, text).then(Mono.fromFuture(replaced));
        });
    replace("first");
    begun.await();
    replace("second");
    replaced.complete(null);
    await().until(() -> engine.rows(queue) == 0);
    assertThat(effects.all()).isEqualTo(ordered ? List.of("second") : List.of("first", "second"));
  }

  private void replace(String body) {
    engine.inTransaction(
        List.of(
            OutboxMessage.to(queue)
                .type("t")
                .orderingKey("k")
                .timerId("once", IfLive.REPLACE)
                .body(body)
                .build()));
  }

  @Test
  @Tag("once")
  void aNetworkThatFallsSilentWhileTheHandlerRunsHoldsUpNoWorkerForLong() {
    try (TcpProxy network = new TcpProxy(database.server().host(), database.server().port())) {
      AtomicInteger opened = new AtomicInteger();
      ConnectionFactory source =
          opening(
              () ->
                  opened.incrementAndGet() == 1
                      ? factory(network.host(), network.port(), Map.of()).create()
                      : factory(Map.of()).create());
      start(
          subscriber().workers(1).handlerTimeout(Duration.ofMillis(500)),
          R2dbcTransactions.of(source, database.table()),
          (text, attempt, connection) ->
              write(connection, "run " + runs.incrementAndGet())
                  .then(
                      Mono.defer(
                          () -> {
                            if (runs.get() > 1) {
                              return Mono.empty();
                            }
                            network.blackhole();
                            return run(connection, "select 1");
                          })));
      engine.publish(queue, "t", "one");
      awaitAcked(1);
      network.resume();
    }
    assertThat(effects.all()).containsExactly("run 2");
  }

  @Test
  void transactionsOfAnotherTableAreRefusedWhenTheSubscriberIsBuilt() {
    R2dbcTransactions other = R2dbcTransactions.of(factory(Map.of()), OutboxTable.named("other"));
    assertThatThrownBy(
            () ->
                subscriber()
                    .on(
                        "t",
                        String.class,
                        other.transactional(
                            (text, delivery, connection) -> write(connection, text)))
                    .build())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("take both from the same PostgresOutbox");
  }

  private interface Opening {
    Publisher<? extends Connection> open();
  }

  private ConnectionFactory opening(Opening opening) {
    ConnectionFactoryMetadata metadata = factory(Map.of()).getMetadata();
    return new ConnectionFactory() {
      @Override
      public Publisher<? extends Connection> create() {
        return Mono.defer(() -> Mono.from(opening.open()));
      }

      @Override
      public ConnectionFactoryMetadata getMetadata() {
        return metadata;
      }
    };
  }

  private ConnectionFactory committing(Function<Connection, Publisher<Void>> commit) {
    return opening(
        () ->
            factory(Map.of())
                .create()
                .map(connection -> calling(connection, "commitTransaction", commit)));
  }

  private static Connection calling(
      Connection connection, String name, Function<Connection, Publisher<Void>> instead) {
    return (Connection)
        Proxy.newProxyInstance(
            R2dbcTransactionsIT.class.getClassLoader(),
            new Class<?>[] {Connection.class, io.r2dbc.spi.Wrapped.class},
            (proxy, method, args) -> {
              if (method.getName().equals(name)) {
                return instead.apply(connection);
              }
              if (method.getName().equals("unwrap")) {
                return connection;
              }
              try {
                return method.invoke(connection, args);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }
}
