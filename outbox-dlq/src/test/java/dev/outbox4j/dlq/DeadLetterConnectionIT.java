package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.DeadLetterWriter;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.Written;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

@ExtendWith(PostgresExtension.class)
class DeadLetterConnectionIT {
  private static final String DAWDLING =
      "select pid from pg_stat_activity"
          + " where datname = current_database() and wait_event = 'PgSleep'";

  private final TestDatabase database;
  private final Rows rows;
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private HikariDataSource pool;

  DeadLetterConnectionIT(TestDatabase database) {
    this.database = database;
    this.rows = new Rows(database, "outbox");
  }

  @BeforeEach
  void begin() {
    database.update("truncate outbox, outbox_dlq");
    pool = database.pool(2);
  }

  @AfterEach
  void nothingIsBorrowed() throws InterruptedException {
    threads.shutdown();
    assertThat(threads.awaitTermination(30, TimeUnit.SECONDS)).isTrue();
    assertThat(pool.getHikariPoolMXBean().getActiveConnections()).isZero();
    pool.close();
  }

  @Test
  void doesNotKnowTheOutcomeWhenItsSessionIsEndedAndGoesOnWithANewOne() throws Exception {
    long id = rows.lease("orders");
    database.update(
        "create function dawdle() returns trigger language plpgsql as"
            + " $$ begin perform pg_sleep(60); return new; end $$");
    database.update(
        "create trigger dawdle before insert on outbox_dlq for each row execute function dawdle()");
    try {
      CompletableFuture<Written> move =
          CompletableFuture.supplyAsync(
              () -> writer(pool).write(List.of(Rows.entry("orders", id))), threads);
      int pid =
          await()
              .until(() -> database.list(Integer.class, DAWDLING), list -> list.size() == 1)
              .get(0);
      database.one(Boolean.class, "select pg_terminate_backend(?)", pid);

      ExecutionException thrown = catchThrowableOfType(ExecutionException.class, move::get);

      assertThat(thrown).hasCauseInstanceOf(OutboxStoreException.class);
      OutboxStoreException failure = (OutboxStoreException) thrown.getCause();
      assertThat(failure.fault()).isEqualTo(Fault.CONNECTION);
      assertThat(failure.outcomeUnknown()).isTrue();
      assertThat(failure).hasMessageContaining("57P01");
    } finally {
      database.update("drop trigger dawdle on outbox_dlq");
      database.update("drop function dawdle()");
    }
    assertThat(rows.untouched(id)).isTrue();
    assertThat(database.count("outbox_dlq")).isZero();

    assertThat(writer(pool).write(List.of(Rows.entry("orders", id))).done()).containsExactly(id);
  }

  @Test
  void tellsWhichRowAStrangerHasLockedAndMovesTheOthers() throws Exception {
    long id = rows.lease("orders");
    long other = rows.lease("orders");
    List<DeadLetterEntry> entries = List.of(Rows.entry("orders", id), Rows.entry("orders", other));
    try (Connection blocker = holding(id)) {
      assertThat(writer(pool).write(entries)).isEqualTo(new Written(Set.of(other), Set.of(id)));
      try (Statement statement = blocker.createStatement()) {
        statement.execute("update outbox set lease_token = lease_token + 1 where id = " + id);
      }
      blocker.commit();
    }

    assertThat(writer(pool).write(entries)).isEqualTo(Written.done(Set.of()));
    assertThat(rows.gone(id)).isFalse();
    assertThat(database.list(Long.class, "select original_id from outbox_dlq"))
        .containsExactly(other);
  }

  @Test
  void movesARowOnceThoughTwoTryAtATime() throws Exception {
    List<Long> ids = rows.lease("orders", 200);
    List<CompletableFuture<Set<Long>>> moves = new ArrayList<>();
    for (int i = 0; i < 2; i++) {
      moves.add(
          CompletableFuture.supplyAsync(
              () -> {
                Set<Long> moved = new HashSet<>();
                for (long id : ids) {
                  moved.addAll(writer(pool).write(List.of(Rows.entry("orders", id))).done());
                }
                return moved;
              },
              threads));
    }

    Set<Long> first = moves.get(0).get(60, TimeUnit.SECONDS);
    Set<Long> second = moves.get(1).get(60, TimeUnit.SECONDS);

    assertThat(Collections.disjoint(first, second)).isTrue(); // one of them may have come too late
    assertThat(first.size() + second.size()).isEqualTo(200);
    assertThat(database.count("outbox_dlq")).isEqualTo(200);
    assertThat(database.count("outbox")).isZero();
  }

  @Test
  void doesNotDeadlockWithARenewalOfTheSameRows() throws Exception {
    PostgresStore store = PostgresOutbox.on(pool, database.table()).store();
    DeadLetterWriter writer = DeadLetterQueue.in("outbox_dlq").bind(store);
    Random random = new Random(42);
    for (int round = 0; round < 30; round++) {
      List<Long> ids =
          database.list(
              Long.class,
              "insert into outbox (queue, payload, lease_token, lease_until)"
                  + " select 'orders', '', ?, now() + interval '1 hour'"
                  + " from generate_series(1, 300) returning id",
              Rows.TOKEN);
      List<DeadLetterEntry> entries =
          new ArrayList<>(ids.stream().map(id -> Rows.entry("orders", id)).toList());
      List<LeaseRef> leases =
          new ArrayList<>(entries.stream().map(DeadLetterEntry::lease).toList());
      Collections.shuffle(entries, random);
      Collections.shuffle(leases, random);
      CountDownLatch go = new CountDownLatch(1);

      Future<Set<Long>> renewal =
          threads.submit(
              () -> {
                go.await();
                return store.renew(leases, Duration.ofMinutes(1)).done();
              });
      Future<Written> move =
          threads.submit(
              () -> {
                go.await();
                return writer.write(entries);
              });
      go.countDown();

      Written moved = move.get(30, TimeUnit.SECONDS); // which passes rows by if a lock lasts
      Set<Long> seen = new HashSet<>(moved.done());
      seen.addAll(moved.busy());
      assertThat(seen).containsExactlyInAnyOrderElementsOf(ids);
      assertThat(renewal.get(30, TimeUnit.SECONDS)).isSubsetOf(ids);
    }
  }

  @Test
  void commitsOnAPoolWithoutAutocommitAndGivesTheConnectionBackAsItWas() throws SQLException {
    try (Connection only = database.plain().getConnection()) {
      only.setAutoCommit(false);
      DataSource source = reusing(only);
      long moved = rows.lease("orders");
      long kept = rows.lease("orders");

      assertThat(writer(source).write(List.of(Rows.entry("orders", moved))).done())
          .containsExactly(moved);
      assertThat(only.getAutoCommit()).isFalse();
      assertThat(rows.gone(moved)).isTrue();

      database.update("alter table outbox_dlq add constraint refused check (false) not valid");
      assertThat(
              catchThrowableOfType(
                      OutboxStoreException.class,
                      () -> writer(source).write(List.of(Rows.entry("orders", kept))))
                  .fault())
          .isEqualTo(Fault.ROW);
      database.update("alter table outbox_dlq drop constraint refused");
      assertThat(only.getAutoCommit()).isFalse();
      assertThat(rows.untouched(kept)).isTrue();
      try (Statement statement = only.createStatement()) {
        statement.execute("select 1");
      }
      only.rollback();
    }
  }

  @Test
  void leavesNoSettingAndNoTransactionBehind() throws SQLException {
    try (HikariDataSource one = database.pool(1)) {
      writer(one).write(List.of(Rows.entry("orders", rows.lease("orders"))));

      try (Connection connection = one.getConnection();
          Statement statement = connection.createStatement();
          ResultSet row =
              statement.executeQuery(
                  "select current_setting('enable_seqscan'), current_setting('plan_cache_mode'),"
                      + " current_setting('enable_hashjoin'),"
                      + " (select count(*) from pg_stat_activity where datname = current_database()"
                      + "   and state like 'idle in transaction%')")) {
        assertThat(row.next()).isTrue();
        assertThat(row.getString(1)).isEqualTo("on");
        assertThat(row.getString(2)).isEqualTo("auto");
        assertThat(row.getString(3)).isEqualTo("on");
        assertThat(row.getLong(4)).isZero();
      }
    }
  }

  @Test
  void borrowsOneConnectionAndExecutesOnceHoweverManyRows() throws SQLException {
    try (Connection only = database.plain().getConnection()) {
      AtomicInteger borrowed = new AtomicInteger();
      AtomicInteger prepared = new AtomicInteger();
      DataSource counting =
          source(
              () -> {
                borrowed.incrementAndGet();
                return kept(only, prepared);
              });
      List<Long> ids = rows.lease("orders", 50);

      assertThat(
              writer(counting)
                  .write(ids.stream().map(id -> Rows.entry("orders", id)).toList())
                  .done())
          .hasSize(50);

      assertThat(borrowed).hasValue(1);
      assertThat(prepared).hasValue(1);
    }
  }

  @Test
  void knowsThatNothingHappenedWhenNoConnectionCanBeBorrowed() {
    PGSimpleDataSource nowhere = database.plain();
    nowhere.setPortNumbers(new int[] {1});
    long id = rows.lease("orders");

    OutboxStoreException failure =
        catchThrowableOfType(
            OutboxStoreException.class,
            () -> writer(nowhere).write(List.of(Rows.entry("orders", id))));

    assertThat(failure.fault()).isEqualTo(Fault.CONNECTION);
    assertThat(failure.outcomeUnknown()).isFalse();
    assertThat(failure).hasMessageContaining("no connection could be had");
    assertThat(rows.untouched(id)).isTrue();
  }

  private DeadLetterWriter writer(DataSource source) {
    return DeadLetterQueue.in("outbox_dlq")
        .bind(PostgresOutbox.on(source, database.table()).store());
  }

  /** Returns a connection whose transaction has locked the row. */
  private Connection holding(long id) throws SQLException {
    Connection connection = database.plain().getConnection();
    connection.setAutoCommit(false);
    try (Statement statement = connection.createStatement()) {
      statement.execute("select from outbox where id = " + id + " for update");
    }
    return connection;
  }

  @FunctionalInterface
  private interface Borrowing {
    Connection borrow() throws SQLException;
  }

  private static DataSource reusing(Connection only) {
    return source(() -> kept(only, new AtomicInteger()));
  }

  private static DataSource source(Borrowing borrowing) {
    return (DataSource)
        Proxy.newProxyInstance(
            DataSource.class.getClassLoader(),
            new Class<?>[] {DataSource.class},
            (proxy, method, arguments) -> {
              assertThat(method.getName()).isEqualTo("getConnection");
              return borrowing.borrow();
            });
  }

  /** The connection itself, except that closing does nothing and preparing is counted. */
  private static Connection kept(Connection only, AtomicInteger prepared) {
    return (Connection)
        Proxy.newProxyInstance(
            Connection.class.getClassLoader(),
            new Class<?>[] {Connection.class},
            (proxy, method, arguments) -> {
              if (method.getName().equals("close")) {
                return null;
              }
              if (method.getName().startsWith("prepare")
                  || method.getName().equals("createStatement")) {
                prepared.incrementAndGet();
              }
              try {
                return method.invoke(only, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }
}
