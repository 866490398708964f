package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.postgres.jooq.JooqOutboxPublisher;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import io.r2dbc.postgresql.api.PostgresqlConnection;
import io.r2dbc.spi.IsolationLevel;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jooq.ConnectionProvider;
import org.jooq.DSLContext;
import org.jooq.SQLDialect;
import org.jooq.exception.DataAccessException;
import org.jooq.impl.DSL;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;

@ExtendWith(PostgresExtension.class)
class PublishTransactionIT {
  private static final OutboxMessage MESSAGE = OutboxMessage.to("orders").body("x").build();

  private final TestDatabase database;
  private final OutboxPublisher publisher;
  private final JooqOutboxPublisher jooq;
  private final ReactiveOutboxPublisher reactive;

  PublishTransactionIT(TestDatabase database) {
    this.database = database;
    this.publisher = PostgresOutbox.publisher(database.table()).build();
    this.jooq = JooqOutboxPublisher.of(publisher);
    this.reactive = PostgresOutbox.publisher(database.table()).buildReactive();
  }

  @BeforeEach
  void empty() {
    database.update("truncate outbox");
  }

  private static List<OutboxMessage> messages(int count) {
    return IntStream.range(0, count)
        .mapToObj(i -> OutboxMessage.to("q" + i % 5).body("n" + i).build())
        .toList();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 100, 1_000})
  void executesOneStatementWhateverTheNumberOfMessages(int count) throws SQLException {
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      for (NotifyMode mode : NotifyMode.values()) {
        GuardedConnection guarded = new GuardedConnection(connection);
        PostgresOutbox.publisher(database.table())
            .notify(mode)
            .build()
            .publish(guarded.connection(), messages(count));
        assertThat(guarded.executions()).isEqualTo(1);
        assertThat(guarded.openStatements()).isZero();
      }
      connection.commit();
    }
    assertThat(database.count("outbox")).isEqualTo(3L * count);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 100, 1_000})
  void executesOneStatementOverR2dbcToo(int count) {
    AtomicInteger made = new AtomicInteger();
    AtomicInteger executions = new AtomicInteger();
    withR2dbc(
        r2dbc ->
            r2dbc
                .beginTransaction()
                .thenMany(reactive.publish(counting(r2dbc, made, executions), messages(count)))
                .then(r2dbc.commitTransaction()));
    assertThat(executions).hasValue(1);
    assertThat(made).hasValue(1);
    assertThat(database.count("outbox")).isEqualTo(count);
  }

  /** A real connection that counts statements and their executions, and nothing but statements. */
  private static io.r2dbc.spi.Connection counting(
      PostgresqlConnection real, AtomicInteger made, AtomicInteger executions) {
    return proxy(
        io.r2dbc.spi.Connection.class,
        (self, method, arguments) -> {
          if (method.getName().equals("createStatement")) {
            made.incrementAndGet();
            return counting(real.createStatement((String) arguments[0]), executions);
          }
          if (method.getName().startsWith("is") || method.getName().startsWith("get")) {
            return method.invoke(real, arguments);
          }
          throw new AssertionError(method + " on the caller's connection");
        });
  }

  private static io.r2dbc.spi.Statement counting(
      io.r2dbc.spi.Statement real, AtomicInteger executions) {
    return proxy(
        io.r2dbc.spi.Statement.class,
        (self, method, arguments) -> {
          if (method.getName().equals("execute")) {
            executions.incrementAndGet();
          }
          Object result = method.invoke(real, arguments);
          return result == real ? self : result;
        });
  }

  private static <T> T proxy(Class<T> type, InvocationHandler handler) {
    return type.cast(
        Proxy.newProxyInstance(
            PublishTransactionIT.class.getClassLoader(), new Class<?>[] {type}, handler));
  }

  @Test
  void leavesTheConnectionToItsOwner() throws SQLException {
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      GuardedConnection guarded = new GuardedConnection(connection);
      publisher.publish(guarded.connection(), MESSAGE);
      publisher.publish(guarded.connection(), List.of());
      publisher.cancelTimer(guarded.connection(), "orders", "t");
      jooq.publish(DSL.using(guarded.connection()).configuration(), MESSAGE);
      assertThatThrownBy(
              () ->
                  publisher.publish(
                      guarded.connection(), OutboxMessage.to("orders").body(42).build()))
          .isInstanceOf(OutboxException.class);
      assertThatThrownBy(
              () ->
                  PostgresOutbox.publisher(OutboxTable.named("missing"))
                      .build()
                      .publish(guarded.connection(), MESSAGE))
          .isInstanceOf(OutboxStoreException.class);
      assertThatThrownBy(() -> publisher.publish(guarded.connection(), MESSAGE))
          .isInstanceOf(OutboxStoreException.class)
          .hasMessageContaining("[25P02");
      assertThat(guarded.executions()).isEqualTo(5);
      assertThat(guarded.openStatements()).isZero();
      connection.rollback();
    }
  }

  @Test
  void refusesAConnectionInAutocommitMode() throws SQLException {
    try (Connection connection = database.plain().getConnection()) {
      GuardedConnection guarded = new GuardedConnection(connection);
      String message =
          "on table outbox refused: the connection is in autocommit mode, so the outbox would commit without the domain write it belongs to; begin a transaction first, or build the publisher with allowAutoCommit()";
      assertThatThrownBy(() -> publisher.publish(guarded.connection(), MESSAGE))
          .isExactlyInstanceOf(OutboxException.class)
          .hasMessage("publish " + message);
      assertThatThrownBy(() -> publisher.publish(guarded.connection(), List.of()))
          .hasMessage("publish " + message);
      assertThatThrownBy(() -> publisher.cancelTimer(guarded.connection(), "q", "t"))
          .hasMessage("cancelTimer " + message);
      DSLContext dsl = DSL.using(database.plain(), SQLDialect.POSTGRES);
      assertThatThrownBy(() -> jooq.publish(dsl.configuration(), MESSAGE))
          .hasMessage("publish " + message);
      assertThatThrownBy(() -> withR2dbc(r2dbc -> reactive.publish(r2dbc, MESSAGE)))
          .hasMessage("publish " + message);
      assertThatThrownBy(() -> withR2dbc(r2dbc -> reactive.cancelTimer(r2dbc, "q", "t")))
          .hasMessage("cancelTimer " + message);
      assertThat(guarded.executions()).isZero();
    }
    assertThat(database.count("outbox")).isZero();
  }

  @Test
  void publishesInAutocommitModeIfThatWasAllowed() throws SQLException {
    PostgresOutbox.PublisherBuilder builder =
        PostgresOutbox.publisher(database.table()).allowAutoCommit();
    try (Connection connection = database.plain().getConnection()) {
      builder.build().publish(connection, MESSAGE);
      assertThat(connection.getAutoCommit()).isTrue();
    }
    assertThat(database.count("outbox")).isEqualTo(1);
    JooqOutboxPublisher.of(builder.build())
        .publish(DSL.using(database.plain(), SQLDialect.POSTGRES).configuration(), MESSAGE);
    withR2dbc(r2dbc -> builder.buildReactive().publish(r2dbc, MESSAGE));
    assertThat(database.count("outbox")).isEqualTo(3);
  }

  @Test
  void isSeenByNoOneBeforeTheCommitAndNotAfterARollback() throws SQLException {
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      publisher.publish(connection, messages(10));
      assertThat(database.count("outbox")).isZero();
      connection.rollback();
      assertThat(database.count("outbox")).isZero();
      publisher.publish(connection, messages(10));
      connection.commit();
      assertThat(database.count("outbox")).isEqualTo(10);
    }
  }

  @Test
  void livesAndDiesWithTheTransactionOfJooq() {
    DSLContext dsl = DSL.using(database.plain(), SQLDialect.POSTGRES);
    assertThatThrownBy(
            () ->
                dsl.transaction(
                    tx -> {
                      jooq.publish(tx, MESSAGE);
                      throw new IllegalStateException("domain");
                    }))
        .hasMessage("domain");
    assertThat(database.count("outbox")).isZero();
    dsl.transaction(
        tx -> {
          jooq.publish(tx, OutboxMessage.to("q").timerId("outer").build());
          assertThatThrownBy(
                  () ->
                      tx.dsl()
                          .transaction(
                              nested -> {
                                jooq.publish(nested, messages(3));
                                assertThat(jooq.cancelTimer(nested, "q", "outer")).isTrue();
                                throw new IllegalStateException("nested");
                              }))
              .hasMessage("nested");
        });
    assertThat(database.list(String.class, "select timer_id from outbox")).containsExactly("outer");
  }

  @Test
  void saysThatAJooqConfigurationHasNoConnection() {
    assertThatThrownBy(() -> jooq.publish(DSL.using(SQLDialect.POSTGRES).configuration(), MESSAGE))
        .isExactlyInstanceOf(OutboxException.class)
        .hasMessageContaining("the jOOQ configuration gave no JDBC connection");
  }

  @Test
  void saysThatJooqCouldTakeNoConnection() {
    ConnectionProvider refusing =
        new ConnectionProvider() {
          @Override
          public Connection acquire() {
            throw new DataAccessException("no connection", new SQLException("down", "08001"));
          }

          @Override
          public void release(Connection connection) {}
        };
    assertThatThrownBy(
            () -> jooq.publish(DSL.using(refusing, SQLDialect.POSTGRES).configuration(), MESSAGE))
        .isExactlyInstanceOf(OutboxException.class)
        .hasMessageContaining("jOOQ could not take a connection");
  }

  @Test
  void saysThatJooqCouldNotGiveItsConnectionBack() throws SQLException {
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      ConnectionProvider keeping =
          new ConnectionProvider() {
            @Override
            public Connection acquire() {
              return connection;
            }

            @Override
            public void release(Connection given) {
              throw new DataAccessException("not released", new SQLException("down", "08006"));
            }
          };
      assertThatThrownBy(
              () -> jooq.publish(DSL.using(keeping, SQLDialect.POSTGRES).configuration(), MESSAGE))
          .isExactlyInstanceOf(OutboxException.class)
          .hasMessageContaining("could not give its connection back")
          .hasMessageNotContaining("nothing was sent");
      connection.rollback();
    }
  }

  @Test
  void livesAndDiesWithTheTransactionOfR2dbc() {
    withR2dbc(
        r2dbc ->
            r2dbc
                .beginTransaction(IsolationLevel.SERIALIZABLE)
                .thenMany(reactive.publish(r2dbc, messages(3)))
                .then(r2dbc.rollbackTransaction()));
    assertThat(database.count("outbox")).isZero();
    withR2dbc(
        r2dbc ->
            r2dbc
                .beginTransaction()
                .thenMany(reactive.publish(r2dbc, messages(3)))
                .then(r2dbc.commitTransaction()));
    assertThat(database.count("outbox")).isEqualTo(3);
  }

  @Test
  void doesNothingBeforeEachSubscription() {
    withR2dbc(
        r2dbc -> {
          Publisher<Published> one = reactive.publish(r2dbc, MESSAGE);
          Publisher<Published> many = reactive.publish(r2dbc, messages(4));
          reactive.publish(r2dbc, messages(100));
          reactive.cancelTimer(r2dbc, "q", "t");
          return r2dbc
              .beginTransaction()
              .thenMany(one)
              .thenMany(many)
              .thenMany(many)
              .then(r2dbc.commitTransaction());
        });
    assertThat(database.count("outbox")).isEqualTo(9);
  }

  @Test
  void passesOnThatATransactionIsReadOnly() throws SQLException {
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      connection.setReadOnly(true);
      assertThatThrownBy(() -> publisher.publish(connection, MESSAGE))
          .isInstanceOf(OutboxStoreException.class)
          .hasMessageContaining("[25006");
    }
  }

  @Test
  void saysThatTheOutcomeIsUnknownWhenTheConnectionDies() throws SQLException {
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      int pid;
      try (Statement statement = connection.createStatement();
          var rows = statement.executeQuery("select pg_backend_pid()")) {
        rows.next();
        pid = rows.getInt(1);
      }
      database.one(Boolean.class, "select pg_terminate_backend(?)", pid);
      await()
          .until(
              () ->
                  database.one(
                          Long.class, "select count(*) from pg_stat_activity where pid = ?", pid)
                      == 0);
      assertThatThrownBy(() -> publisher.publish(connection, MESSAGE))
          .isInstanceOfSatisfying(
              OutboxStoreException.class,
              e -> {
                assertThat(e.outcomeUnknown()).isTrue();
                assertThat(e.fault()).isEqualTo(OutboxStoreException.Fault.CONNECTION);
              });
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = PublishApi.class,
      names = {"JDBC", "R2DBC"})
  void lets50TransactionsPublishTheSameTimerIds(PublishApi api) throws Exception {
    List<OutboxMessage> forward =
        IntStream.range(0, 20)
            .mapToObj(i -> OutboxMessage.to("q").timerId("t" + i).build())
            .toList();
    List<OutboxMessage> backward = new ArrayList<>(forward);
    Collections.reverse(backward);
    int threads = 50;
    CyclicBarrier barrier = new CyclicBarrier(threads);
    ExecutorService executor = Executors.newFixedThreadPool(threads);
    try {
      List<Future<List<Published>>> results = new ArrayList<>();
      for (int i = 0; i < threads; i++) {
        List<OutboxMessage> messages = i % 2 == 0 ? forward : backward;
        results.add(
            executor.submit(
                () -> {
                  barrier.await(30, TimeUnit.SECONDS);
                  return api.publish(
                      database, PostgresOutbox.publisher(database.table()), messages);
                }));
      }
      long inserted = 0;
      for (Future<List<Published>> result : results) {
        inserted +=
            result.get(60, TimeUnit.SECONDS).stream().filter(p -> !p.deduplicated()).count();
      }
      assertThat(inserted).isEqualTo(20);
    } finally {
      executor.shutdownNow();
    }
    assertThat(database.list(Long.class, "select count(*) from outbox group by queue, timer_id"))
        .hasSize(20)
        .containsOnly(1L);
  }

  @Test
  void doesNotDeadlockWithAnotherBatchOfTheSameTimerIdsInAnotherOrder() throws Exception {
    // each row takes long enough for both batches to be amid theirs
    database.update(
        "create function slow() returns trigger language plpgsql as $$begin perform pg_sleep(0.3); return new; end$$");
    database.update(
        "create trigger slow before insert on outbox for each row execute function slow()");
    OutboxMessage a = OutboxMessage.to("q").timerId("a").build();
    OutboxMessage b = OutboxMessage.to("q").timerId("b").build();
    ExecutorService executor = Executors.newFixedThreadPool(2);
    try {
      Future<List<Published>> first =
          executor.submit(() -> PublishApi.JDBC.publish(database, a, b));
      Future<List<Published>> second =
          executor.submit(() -> PublishApi.JDBC.publish(database, b, a));
      assertThat(
              Stream.concat(
                      first.get(30, TimeUnit.SECONDS).stream(),
                      second.get(30, TimeUnit.SECONDS).stream())
                  .filter(Published::deduplicated))
          .hasSize(2);
    } finally {
      executor.shutdownNow();
      database.update("drop trigger slow on outbox");
      database.update("drop function slow()");
    }
  }

  @Test
  void keepsTheTransactionUsableAfterADuplicate() throws Exception {
    try (Connection first = database.plain().getConnection();
        Connection second = database.plain().getConnection()) {
      first.setAutoCommit(false);
      second.setAutoCommit(false);
      OutboxMessage timer = OutboxMessage.to("q").timerId("t").build();
      publisher.publish(first, timer);
      ExecutorService executor = Executors.newSingleThreadExecutor();
      try {
        Future<Published> waiting = executor.submit(() -> publisher.publish(second, timer));
        org.awaitility.Awaitility.await()
            .until(
                () ->
                    database.one(
                            Long.class,
                            "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()")
                        == 1);
        first.commit();
        assertThat(waiting.get(10, TimeUnit.SECONDS).deduplicated()).isTrue();
      } finally {
        executor.shutdownNow();
      }
      publisher.publish(second, MESSAGE);
      second.commit();
    }
    assertThat(database.count("outbox")).isEqualTo(2);
  }

  @ParameterizedTest
  @ValueSource(strings = {"repeatable read", "serializable"})
  void aTimerIdCommittedSinceTheSnapshotAbortsATransactionAbove(String isolation)
      throws SQLException {
    OutboxMessage timer = OutboxMessage.to("q").timerId("t").build();
    try (Connection connection = olderThan(timer, isolation)) {
      assertThatThrownBy(() -> publisher.publish(connection, timer))
          .isInstanceOfSatisfying(
              OutboxStoreException.class,
              e -> assertThat(e.fault()).isEqualTo(OutboxStoreException.Fault.TRANSIENT))
          .hasMessageContaining("[40001");
    }
    try (Connection connection = olderThan(timer, "read committed")) {
      assertThat(publisher.publish(connection, timer).deduplicated()).isTrue();
    }
  }

  /** A transaction that has looked before the timer was committed. */
  private Connection olderThan(OutboxMessage timer, String isolation) throws SQLException {
    database.update("truncate outbox");
    Connection connection = database.plain().getConnection();
    connection.setAutoCommit(false);
    try (Statement statement = connection.createStatement()) {
      statement.execute("set transaction isolation level " + isolation);
      statement.execute("select pg_current_snapshot()");
    }
    PublishApi.JDBC.publish(database, timer);
    return connection;
  }

  private <T> void withR2dbc(java.util.function.Function<PostgresqlConnection, Publisher<T>> work) {
    Flux.usingWhen(PublishApi.r2dbc(database).create(), work, PostgresqlConnection::close)
        .then()
        .block(Duration.ofSeconds(30));
  }
}
