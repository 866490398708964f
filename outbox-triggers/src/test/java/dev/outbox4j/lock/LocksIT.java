package dev.outbox4j.lock;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.TransactionalHandler;
import dev.outbox4j.TypedHandler;
import dev.outbox4j.migrations.LockMigrations;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TcpProxy;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.ResultSet;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntFunction;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/** Locks on a real server. Its clock is moved by putting what is stored into the past. */
@ExtendWith(PostgresExtension.class)
class LocksIT {
  private static final Duration NEVER = Duration.ofHours(1);
  private static final String ACQUISITION = "for update skip locked";

  private final TestDatabase database;
  private final List<Locks> all = new ArrayList<>();
  private final ExecutorService threads = Executors.newCachedThreadPool();

  LocksIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    database.migrate(LockMigrations.of("public", "outbox"), LockMigrations::migrate);
    database.update("truncate outbox_lock");
    database.update("create table if not exists counted (n bigint)");
    database.update("truncate counted");
    database.update("insert into counted values (0)");
  }

  @AfterEach
  void stop() {
    all.forEach(Locks::stop);
    all.forEach(locks -> locks.held().forEach(HeldLock::close)); // they would be renewed, and warn
    threads.shutdownNow();
  }

  /** Those of another process. */
  private Locks locks() {
    return locks("shop", database.plain());
  }

  private Locks locks(String application, DataSource source) {
    Locks locks =
        Locks.builder(PostgresOutbox.on(source, database.table()), application)
            .listen(PgjdbcListen.on(database.plain()))
            .build();
    all.add(locks);
    locks.start();
    await().until(() -> locks.health().connected());
    return locks;
  }

  /** Those of a process that hears of no release. */
  private Locks deaf(DataSource source) {
    Locks locks = Locks.builder(PostgresOutbox.on(source, database.table()), "shop").build();
    all.add(locks);
    locks.start();
    return locks;
  }

  private <T> Future<T> begin(Callable<T> call) {
    return threads.submit(call);
  }

  private static <T> T get(Future<T> future) throws Exception {
    return future.get(2, TimeUnit.MINUTES);
  }

  private void lapse() {
    database.update("update outbox_lock set held_until = now() - interval '1 millisecond'");
  }

  @Test
  void oneAtATimeDoesWhatWouldGoWrongOtherwise() throws Exception {
    List<SingletonLock> contenders = List.of(locks().lock("sum"), locks().lock("sum"));
    List<Long> tokens = Collections.synchronizedList(new ArrayList<>());
    List<Future<?>> done = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      SingletonLock lock = contenders.get(i % 2);
      done.add(
          begin(
              () -> {
                for (int turn = 0; turn < 5; turn++) {
                  lock.run(
                      held -> {
                        tokens.add(held.token());
                        long read = database.one(Long.class, "select n from counted");
                        database.update("update counted set n = ?", read + 1);
                      });
                }
                return null;
              }));
    }
    for (Future<?> each : done) {
      get(each);
    }

    assertThat(database.one(Long.class, "select n from counted")).isEqualTo(40);
    assertThat(tokens).hasSize(40).doesNotHaveDuplicates().isSorted();
  }

  @Test
  void aReleaseIsNoticedAtOnce() throws Exception {
    HeldLock held = locks().lock("one").period(Duration.ofSeconds(60)).acquire();
    CountingDataSource counting = new CountingDataSource(database.plain());
    Locks others = locks("shop", counting);
    AtomicReference<HeldLock> next = new AtomicReference<>();
    Thread waiting =
        new Thread(
            () -> {
              try {
                next.set(others.lock("one").acquisitionPolling(NEVER).acquire());
              } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
              }
            });
    waiting.start();
    awaitTurn(waiting, counting);

    held.close();

    await().atMost(Duration.ofSeconds(10)).until(() -> next.get() != null);
    assertThat(next.get().token()).isGreaterThan(held.token());
    assertThat(counting.executionsOf(ACQUISITION)).isEqualTo(2);
  }

  /** Until it has asked once, and waits for a release. */
  private static void awaitTurn(Thread thread, CountingDataSource source) {
    await()
        .until(
            () ->
                source.executionsOf(ACQUISITION) == 1
                    && thread.getState() == Thread.State.TIMED_WAITING);
  }

  /** Whoever waits believes that the lock is held for a minute. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "delete from outbox_lock",
        "update outbox_lock set owner = null",
        "update outbox_lock set held_until = now() - interval '1 millisecond'"
      })
  void aReleaseThatGoesUnheardIsFoundByPolling(String silently) throws Exception {
    HeldLock held = locks().lock("one").period(Duration.ofSeconds(60)).acquire();
    CountingDataSource counting = new CountingDataSource(database.plain());
    SingletonLock other = deaf(counting).lock("one").acquisitionPolling(Duration.ofMillis(500));
    Future<HeldLock> next = begin(other::acquire);
    await().until(() -> counting.executionsOf(ACQUISITION) >= 2); // it goes on to look
    assertThat(next.isDone()).isFalse();

    database.update(silently);

    assertThat(get(next).token()).isGreaterThan(held.token()); // before the minute is over
  }

  @Test
  void defaultsAreThoseOfTheGuide() throws Exception {
    Locks locks = locks();
    SingletonLock lock = locks.lock("one");
    assertThat(lock.period()).isEqualTo(Duration.ofSeconds(15));
    assertThat(lock.polling()).isEqualTo(Duration.ofSeconds(5));
    assertThat(lock.timeout()).isNull();
    lock.acquire();
    assertThat(periodOnRecord("one")).isEqualTo(15);

    SingletonListener listener = locks.listener("two", held -> () -> {});
    assertThat(listener.lock().period()).isEqualTo(Duration.ofSeconds(60));
    assertThat(listener.lock().polling()).isEqualTo(Duration.ofSeconds(60));
    assertThat(listener.lock().timeout()).isNull();
    assertThat(listener.withoutRecoveryPolling().lock().polling()).isNull();
    assertThat(listener.forDevelopment().lock().polling()).isEqualTo(Duration.ofSeconds(60));
    SingletonListener inDevelopment = locks.listener("three", held -> () -> {}).forDevelopment();
    assertThat(inDevelopment.lock().period()).isEqualTo(Duration.ofSeconds(15));
    listener.start();
    inDevelopment.start();
    await().until(() -> listener.isHolder() && inDevelopment.isHolder());
    assertThat(periodOnRecord("two")).isEqualTo(60);
    assertThat(periodOnRecord("three")).isEqualTo(15);
  }

  /** In seconds. */
  private int periodOnRecord(String name) {
    return database.one(
        Integer.class,
        "select round(extract(epoch from held_until - renewed_at))::int from outbox_lock"
            + " where name = ?",
        name);
  }

  @Test
  void theEndOfALeaseIsNoticedWithoutARelease() throws Exception {
    SingletonLock other = locks().lock("one").acquisitionPolling(NEVER);
    locks().lock("one").acquire();
    database.update("update outbox_lock set held_until = now() + interval '2 seconds'");
    String ends = database.one(String.class, "select held_until::text from outbox_lock");

    HeldLock next = get(begin(other::acquire));

    assertThat(next.isHeld()).isTrue();
    assertThat(
            database.one(
                Boolean.class, "select acquired_at >= ?::timestamptz from outbox_lock", ends))
        .isTrue();
  }

  @Test
  void whoWaitsForTooLongIsToldWhoHasIt() throws Exception {
    locks().lock("one").acquire();
    SingletonLock lock = locks().lock("one").acquisitionTimeout(Duration.ofMillis(50));

    assertThatThrownBy(lock::acquire)
        .isInstanceOf(LockTimeoutException.class)
        .hasMessageContaining("lock 'one' was not acquired within PT0.05S; shop/");
    assertThat(lock.tryAcquire()).isEmpty();
  }

  @Test
  void aWaitIsEndedByAnInterruptAndByAStop() throws Exception {
    locks().lock("one").acquire();
    Locks others = locks();
    CountDownLatch interrupted = new CountDownLatch(1);
    Thread waiting =
        new Thread(
            () -> {
              try {
                others.lock("one").acquire();
              } catch (InterruptedException e) {
                interrupted.countDown();
              }
            });
    waiting.start();
    await().until(() -> others.health().waiting() == 1);
    waiting.interrupt();
    assertThat(interrupted.await(10, TimeUnit.SECONDS)).isTrue();

    Future<HeldLock> second = begin(() -> others.lock("one").acquire());
    await().until(() -> others.health().waiting() == 1);
    others.stop();
    assertThatThrownBy(() -> get(second))
        .hasRootCauseInstanceOf(IllegalStateException.class)
        .hasMessageContaining("were stopped");
    assertThatThrownBy(() -> others.lock("one").tryAcquire())
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void anAcquisitionWhoseAnswerWasLostIsFoundAgain() throws Exception {
    PGSimpleDataSource direct = database.plain();
    try (TcpProxy proxy = new TcpProxy(direct.getServerNames()[0], direct.getPortNumbers()[0]);
        Connection gate = database.plain().getConnection()) {
      PGSimpleDataSource behind = database.plain();
      behind.setServerNames(new String[] {proxy.host()});
      behind.setPortNumbers(new int[] {proxy.port()});
      // the server goes on with the statement while the client's connection is cut
      gate.createStatement().execute("select pg_advisory_lock(42)");
      gate("insert");
      try {
        Locks cut = locks("shop", behind);
        Future<HeldLock> held =
            begin(() -> cut.lock("one").period(Duration.ofSeconds(60)).acquire());
        await().until(() -> waiting() == 1);
        proxy.cut();
        gate.createStatement().execute("select pg_advisory_unlock(42)");
        await().until(() -> database.count("outbox_lock") == 1);
        proxy.resume();

        assertThat(get(held).isHeld()).isTrue();
      } finally {
        database.update("drop trigger gate on outbox_lock");
      }
    }
  }

  @Test
  void whoIsReplacedIsToldAndWritesNothingMore() throws Exception {
    List<LostLock> lost = Collections.synchronizedList(new ArrayList<>());
    SingletonLock other = locks().lock("one");
    HeldLock first = locks().lock("one").onLost(lost::add).acquire();
    HeldLock second = takeOver(other); // as if the first had hung for longer than its period

    assertThat(second.token()).isGreaterThan(first.token());
    assertThat(write(first)).isZero();
    assertThat(write(second)).isEqualTo(1);
    assertThat(database.one(Long.class, "select n from counted")).isEqualTo(1);
    await().untilAsserted(() -> assertThat(lost).extracting(LostLock::name).containsExactly("one"));
    first.close();
    assertThat(second.isHeld()).isTrue();
    assertThat(lost).hasSize(1);
  }

  /** Has it though another holds it, whose renewals may come between. */
  private HeldLock takeOver(SingletonLock lock) {
    AtomicReference<HeldLock> taken = new AtomicReference<>();
    await()
        .until(
            () -> {
              lapse();
              lock.tryAcquire().ifPresent(taken::set);
              return taken.get() != null;
            });
    return taken.get();
  }

  private int write(HeldLock lock) throws Exception {
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      try {
        lock.guard(connection);
      } catch (LockLostException e) {
        connection.rollback();
        return 0;
      }
      int rows = connection.createStatement().executeUpdate("update counted set n = n + 1");
      connection.commit();
      return rows;
    }
  }

  @Test
  void nobodyTakesTheLockWhileAGuardedWriteIsOpen() throws Exception {
    HeldLock first = locks().lock("one").acquire();
    SingletonLock other = locks().lock("one");
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      first.guard(connection);
      lapse();

      assertThat(other.tryAcquire()).isEmpty();

      connection.createStatement().executeUpdate("update counted set n = n + 1");
      connection.commit();
    }
    Optional<HeldLock> second = other.tryAcquire();
    assertThat(second).isPresent();
    assertThat(second.get().token()).isGreaterThan(first.token());
  }

  @Test
  void aGuardedTransactionMayBeIdleForWhatIsLeftOfThePeriodUnlessLessIsSet() throws Exception {
    HeldLock held = locks().lock("one").period(Duration.ofSeconds(20)).acquire();
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      held.guard(connection);
      assertThat(idleTimeout(connection)).isBetween(10.0, 20.0);
      connection.rollback();
      assertThat(idleTimeout(connection)).isZero();
      connection.createStatement().execute("set idle_in_transaction_session_timeout = '3s'");
      held.guard(connection);
      assertThat(idleTimeout(connection)).isEqualTo(3);
      connection.rollback();
    }
  }

  /** In seconds; zero is none. */
  private static double idleTimeout(Connection connection) throws Exception {
    try (ResultSet row =
        connection
            .createStatement()
            .executeQuery(
                "select extract(epoch from"
                    + " current_setting('idle_in_transaction_session_timeout')::interval)")) {
      row.next();
      return row.getDouble(1);
    }
  }

  /** What the token's unique index is for: the guard may find the row as it was before. */
  @Test
  void aGuardThatMeetsAnAcquisitionUnderWayWaitsForItAndFails() throws Exception {
    SingletonLock other = locks().lock("one").period(Duration.ofSeconds(60));
    HeldLock first = locks().lock("one").period(Duration.ofSeconds(60)).acquire();
    gate("update");
    try (Connection gate = database.plain().getConnection();
        Connection transaction = database.plain().getConnection()) {
      lapse();
      gate.createStatement().execute("select pg_advisory_lock(42)");
      Future<Optional<HeldLock>> second = begin(other::tryAcquire);
      await().until(() -> waiting() == 1);
      transaction.setAutoCommit(false);
      Future<Boolean> guarded =
          begin(
              () -> {
                first.guard(transaction);
                return true;
              });
      gate.createStatement().execute("select pg_advisory_unlock(42)");

      assertThat(get(second)).isPresent();
      assertThatThrownBy(() -> get(guarded)).hasCauseInstanceOf(LockLostException.class);
      transaction.rollback();
    } finally {
      database.update("drop trigger gate on outbox_lock");
    }
  }

  /**
   * Statements wait in the middle while somebody has the advisory lock; no lock timeout ends it.
   */
  private void gate(String event) {
    database.update(
        """
        create or replace function wait_for_gate() returns trigger language plpgsql as $$
        begin
          while exists (
            select from pg_locks l join pg_database d on d.oid = l.database
            where d.datname = current_database() and l.locktype = 'advisory' and l.objid = 42)
          loop
            perform pg_sleep(0.01);
          end loop;
          return new;
        end $$""");
    database.update(
        "create trigger gate before "
            + event
            + " on outbox_lock for each row execute function wait_for_gate()");
  }

  private long waiting() {
    return database.one(
        Long.class,
        "select count(*) from pg_stat_activity where datname = current_database()"
            + " and wait_event = 'PgSleep'");
  }

  /** Whatever the database's default isolation is. */
  @Test
  void whereTransactionsAreSerializableByDefaultLocksAreAcquiredAllTheSame() throws Exception {
    PGSimpleDataSource serializable = database.plain();
    serializable.setOptions("-c default_transaction_isolation=serializable");
    List<SingletonLock> contenders =
        List.of(locks("shop", serializable).lock("one"), locks("shop", serializable).lock("one"));
    List<Future<?>> done = new ArrayList<>();
    AtomicInteger turns = new AtomicInteger();
    for (int i = 0; i < 8; i++) {
      SingletonLock lock = contenders.get(i % 2);
      done.add(
          begin(
              () -> {
                for (int turn = 0; turn < 5; turn++) {
                  lock.run(held -> turns.incrementAndGet());
                }
                return null;
              }));
    }
    for (Future<?> each : done) {
      get(each);
    }
    assertThat(turns).hasValue(40);
  }

  @Test
  void aWaitThatTakesTooLongLetsTheMessageComeAgainWithoutAnAttempt() throws Exception {
    DataSource pool = database.pool(12);
    database.update("truncate outbox");
    HeldLock held = locks().lock("mail").acquire();
    OutboxPublisher publisher =
        PostgresOutbox.publisher(database.table()).allowAutoCommit().build();
    try (Connection connection = database.plain().getConnection()) {
      publisher.publish(connection, OutboxMessage.to("mail").type("t").body("a").build());
    }
    List<Integer> attempts = Collections.synchronizedList(new ArrayList<>());
    SingletonLock lock = locks().lock("mail").acquisitionTimeout(Duration.ofMillis(50));
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("mail")
            .store(PostgresOutbox.on(pool, database.table()).store())
            .deleteTerminalFailures()
            .on(
                "t",
                String.class,
                lock.around((text, delivery, own) -> attempts.add(delivery.attempt())))
            .build();
    subscriber.start();
    try {
      await().until(() -> database.count("outbox where lease_token > 1") == 1);
      held.close();
      await().until(() -> !attempts.isEmpty());
    } finally {
      subscriber.stop();
    }
    assertThat(attempts).containsExactly(1);
  }

  @Test
  void handlersOfTwoTypesUnderOneLockNeverRunAtTheSameTime() throws Exception {
    publish(20, i -> i % 2 == 0 ? "booked" : "cancelled");
    AtomicInteger running = new AtomicInteger();
    AtomicInteger most = new AtomicInteger();
    Set<String> handled = ConcurrentHashMap.newKeySet();
    SingletonLock lock = locks().lock("account");
    LockedHandler<String> handler =
        (text, delivery, held) -> {
          most.accumulateAndGet(running.incrementAndGet(), Math::max);
          assertThat(held.isHeld()).isTrue();
          increment(database.plain());
          running.decrementAndGet();
          handled.add(text);
        };
    OutboxSubscriber subscriber =
        subscriber(pooled())
            .on("booked", String.class, lock.around(handler))
            .on("cancelled", String.class, lock.around(handler))
            .build();
    subscriber.start();
    try {
      await().atMost(Duration.ofSeconds(60)).until(() -> handled.size() == 20);
    } finally {
      subscriber.stop();
    }
    assertThat(most).hasValue(1);
    assertThat(database.one(Long.class, "select n from counted")).isEqualTo(20);
  }

  /** What is read before it is written is right only if nobody else has written since. */
  private static void increment(DataSource source) throws Exception {
    try (Connection connection = source.getConnection()) {
      increment(connection);
    }
  }

  private static void increment(Connection connection) throws Exception {
    long read;
    try (ResultSet row = connection.createStatement().executeQuery("select n from counted")) {
      row.next();
      read = row.getLong(1);
    }
    connection.createStatement().executeUpdate("update counted set n = " + (read + 1));
  }

  private void publish(int messages, IntFunction<String> type) throws Exception {
    database.update("truncate outbox");
    OutboxPublisher publisher =
        PostgresOutbox.publisher(database.table()).allowAutoCommit().build();
    try (Connection connection = database.plain().getConnection()) {
      for (int i = 0; i < messages; i++) {
        publisher.publish(
            connection, OutboxMessage.to("mail").type(type.apply(i)).body("message " + i).build());
      }
    }
  }

  private PostgresOutbox pooled() {
    return PostgresOutbox.on(database.pool(12), database.table());
  }

  private static OutboxSubscriber.Builder subscriber(PostgresOutbox outbox) {
    return OutboxSubscriber.builder("mail")
        .store(outbox.store())
        .deleteTerminalFailures()
        .workers(6);
  }

  /** Until its commit nobody else reads what it will have written. */
  @Test
  void handlersInTransactionsUnderOneLockFollowEachOthersCommits() throws Exception {
    publish(20, i -> "t");
    PostgresOutbox outbox = pooled();
    SingletonLock lock = locks().lock("account");
    TransactionalHandler<String, Connection> handler =
        lock.guarding((text, delivery, connection) -> increment(connection));
    OutboxSubscriber subscriber =
        subscriber(outbox).on("t", String.class, outbox.transactional(handler)).build();
    subscriber.start();
    try {
      await().atMost(Duration.ofSeconds(60)).until(() -> database.count("outbox") == 0);
    } finally {
      subscriber.stop();
    }
    assertThat(database.one(Long.class, "select n from counted")).isEqualTo(20);
  }

  @Test
  void handlersInTransactionsOfSeveralSuffixesRunBesideOneAnother() throws Exception {
    publish(2, i -> "t");
    PostgresOutbox outbox = pooled();
    CountDownLatch two = new CountDownLatch(2);
    TransactionalHandler<String, Connection> handler =
        locks()
            .lock("account")
            .guarding(
                (text, delivery) -> text,
                (text, delivery, connection) -> {
                  two.countDown();
                  assertThat(two.await(30, TimeUnit.SECONDS)).isTrue();
                });
    OutboxSubscriber subscriber =
        subscriber(outbox).on("t", String.class, outbox.transactional(handler)).build();
    subscriber.start();
    try {
      await().atMost(Duration.ofSeconds(60)).until(() -> database.count("outbox") == 0);
    } finally {
      subscriber.stop();
    }
    assertThat(LockControl.of(outbox, "shop").locks())
        .extracting(LockStatus::name)
        .containsExactly("account/message 0", "account/message 1");
  }

  /** Its lock is free long before its period is over, or the second attempt would wait for that. */
  @Test
  void aHandlerInATransactionThatIsRolledBackLeavesItsLockFree() throws Exception {
    publish(1, i -> "t");
    PostgresOutbox outbox = pooled();
    List<Integer> attempts = Collections.synchronizedList(new ArrayList<>());
    SingletonLock lock = locks().lock("account").period(Duration.ofSeconds(60));
    TransactionalHandler<String, Connection> handler =
        lock.guarding(
            (text, delivery, connection) -> {
              attempts.add(delivery.attempt());
              increment(connection);
              if (delivery.attempt() == 1) {
                delivery.decide(Outcome.retry("once more"));
              } else if (delivery.attempt() == 2) {
                throw new IllegalStateException("no paper");
              }
            });
    OutboxSubscriber subscriber =
        subscriber(outbox)
            .retry(RetryPolicy.constant(Duration.ofMillis(1)).attempts(5))
            .on("t", String.class, outbox.transactional(handler))
            .build();
    subscriber.start();
    try {
      await()
          .atMost(Duration.ofSeconds(40))
          .until(() -> database.one(Long.class, "select n from counted") == 1);
    } finally {
      subscriber.stop();
    }
    assertThat(attempts).containsExactly(1, 2, 3);
    assertThat(lock.tryAcquire()).isPresent();
  }

  @Test
  void aHandlerInATransactionThatWaitsForTooLongComesAgainWithoutAnAttempt() throws Exception {
    publish(1, i -> "t");
    PostgresOutbox outbox = pooled();
    HeldLock held = locks().lock("account").acquire();
    List<Integer> attempts = Collections.synchronizedList(new ArrayList<>());
    SingletonLock lock = locks().lock("account").acquisitionTimeout(Duration.ofMillis(50));
    TransactionalHandler<String, Connection> handler =
        lock.guarding((text, delivery, connection) -> attempts.add(delivery.attempt()));
    OutboxSubscriber subscriber =
        subscriber(outbox).on("t", String.class, outbox.transactional(handler)).build();
    subscriber.start();
    try {
      await()
          .atMost(Duration.ofSeconds(30))
          .until(() -> database.count("outbox where lease_token > 1") == 1);
      held.close();
      await().atMost(Duration.ofSeconds(30)).until(() -> database.count("outbox") == 0);
    } finally {
      subscriber.stop();
    }
    assertThat(attempts).containsExactly(1);
  }

  @Test
  void theWorkOfALockThatIsLostIsInterruptedAndFails() throws Exception {
    SingletonLock lock = locks().lock("one");
    CountDownLatch begun = new CountDownLatch(1);
    Future<Boolean> work =
        begin(
            () -> {
              assertThatThrownBy(
                      () ->
                          lock.run(
                              held -> {
                                begun.countDown();
                                new CountDownLatch(1).await();
                              }))
                  .isInstanceOf(LockLostException.class)
                  .hasCauseInstanceOf(InterruptedException.class);
              return Thread.interrupted();
            });
    SingletonLock other = locks().lock("one");
    assertThat(begun.await(10, TimeUnit.SECONDS)).isTrue();
    takeOver(other);

    assertThat(work.get(60, TimeUnit.SECONDS)).isFalse(); // found by the renewal after 7.5 s
  }

  @Test
  void workThatIsDoneThoughItsLockWasLostFails() throws Exception {
    SingletonLock lock = locks().lock("one");
    SingletonLock other = locks().lock("one");

    assertThatThrownBy(() -> lock.call(held -> takeOver(other)))
        .isInstanceOf(LockLostException.class);
  }

  @Test
  void whatTheWorkThrowsIsThrownAndTheLockIsFree() throws Exception {
    SingletonLock lock = locks().lock("one");

    assertThatThrownBy(
            () ->
                lock.run(
                    held -> {
                      throw new IllegalStateException("no paper");
                    }))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("no paper");
    assertThat(lock.tryAcquire()).isPresent();
  }

  @Test
  void applicationsNamesAndSuffixesHaveNothingToDoWithEachOther() throws Exception {
    SingletonLock lock = locks().lock("one");
    List<HeldLock> held =
        List.of(
            lock.acquire(),
            lock.suffix("a").acquire(),
            lock.suffix("b").acquire(),
            locks().lock("two").acquire(),
            locks("office", database.plain()).lock("one").acquire());

    assertThat(held).allMatch(HeldLock::isHeld);
    assertThat(
            LockControl.of(PostgresOutbox.on(database.plain(), database.table()), "shop").locks())
        .extracting(LockStatus::name)
        .containsExactly("one", "one/a", "one/b", "two");
  }

  @Test
  void aLockHasOneSuffix() {
    SingletonLock lock = locks().lock("one").suffix("a");

    assertThatThrownBy(() -> lock.suffix("b"))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("lock 'one/a' has a suffix already; put all it is for into one suffix");
    assertThatThrownBy(() -> lock.around((body, delivery) -> "b", (body, delivery, held) -> {}))
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void statusTellsWhoHasALockAndPurgedOnesStillHaveGrowingTokens() throws Exception {
    LockControl control =
        LockControl.of(PostgresOutbox.on(database.plain(), database.table()), "shop");
    SingletonLock lock = locks().lock("one");
    HeldLock first = lock.acquire();
    HeldLock held = lock.suffix("held").acquire();

    assertThat(control.locks().get(0).holder())
        .hasValueSatisfying(x -> assertThat(x).startsWith("shop/"));
    assertThat(control.locks().get(0).heldUntil()).isPresent();
    first.close();
    assertThat(control.locks().get(0).holder()).isEmpty();
    assertThat(control.locks().get(0).token()).isEqualTo(first.token());
    assertThat(control.purge(Instant.now().plusSeconds(60), 10)).as("too young").isZero();
    database.update("update outbox_lock set renewed_at = now() - interval '11 minutes'");
    assertThat(control.purge(Instant.now().plusSeconds(60), 10)).isEqualTo(1);
    assertThat(control.locks()).extracting(LockStatus::name).containsExactly("one/held");
    assertThat(lock.acquire().token()).isGreaterThan(held.token());
  }

  @Test
  void aMissingTableIsToldAtOnce() {
    database.update("alter table outbox_lock rename to elsewhere");
    try {
      SingletonLock lock = locks().lock("one");
      assertThatThrownBy(lock::acquire)
          .isInstanceOf(OutboxStoreException.class)
          .hasMessageContaining("LockMigrations");
    } finally {
      database.update("alter table elsewhere rename to outbox_lock");
    }
  }

  @Test
  void settingsOutOfRangeAreRefusedWithTheRule() {
    Locks locks = locks();
    SingletonLock lock = locks.lock("one");
    SingletonListener listener = locks.listener("two", held -> () -> {});
    assertThatThrownBy(() -> lock.period(Duration.ofMillis(14_999)))
        .hasMessage("period is PT14.999S; it must be from PT15S to PT1M");
    assertThatThrownBy(() -> listener.period(Duration.ofMillis(60_001)))
        .hasMessage("period is PT1M0.001S; it must be from PT15S to PT1M");
    assertThatThrownBy(() -> lock.acquisitionTimeout(Duration.ZERO))
        .hasMessageContaining("acquisitionTimeout is PT0S; it must be more than zero");
    assertThatThrownBy(() -> lock.acquisitionPolling(Duration.ofMillis(499)))
        .hasMessage("acquisitionPolling is PT0.499S; it must be at least PT0.5S");
    assertThatThrownBy(() -> listener.recoveryPolling(Duration.ofSeconds(14)))
        .hasMessage("recoveryPolling is PT14S; it must be at least PT15S");
    assertThatThrownBy(
            () ->
                Locks.builder(PostgresOutbox.on(database.plain(), database.table()), "shop")
                    .build()
                    .lock("one")
                    .tryAcquire())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("call start() first");
  }

  @Test
  void underALockOneMessageOfEachSuffixIsHandledAtATime() throws Exception {
    DataSource pool = database.pool(12);
    database.update("truncate outbox");
    OutboxPublisher publisher =
        PostgresOutbox.publisher(database.table()).allowAutoCommit().build();
    try (Connection connection = database.plain().getConnection()) {
      for (int i = 0; i < 24; i++) {
        publisher.publish(
            connection,
            OutboxMessage.to("mail").type("t").body("abc".substring(i % 3, i % 3 + 1)).build());
      }
    }
    Map<String, AtomicInteger> running = new ConcurrentHashMap<>();
    AtomicInteger most = new AtomicInteger();
    AtomicInteger together = new AtomicInteger();
    AtomicInteger mostTogether = new AtomicInteger();
    AtomicInteger handled = new AtomicInteger();
    CountDownLatch two = new CountDownLatch(2);
    TypedHandler<String> handler =
        locks()
            .lock("mail")
            .around(
                (text, delivery) -> text,
                (text, delivery, lock) -> {
                  assertThat(lock.isHeld()).isTrue();
                  AtomicInteger ofSuffix =
                      running.computeIfAbsent(text, key -> new AtomicInteger());
                  most.accumulateAndGet(ofSuffix.incrementAndGet(), Math::max);
                  mostTogether.accumulateAndGet(together.incrementAndGet(), Math::max);
                  two.countDown();
                  assertThat(two.await(30, TimeUnit.SECONDS)).isTrue(); // two suffixes at once
                  together.decrementAndGet();
                  ofSuffix.decrementAndGet();
                  handled.incrementAndGet();
                });
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("mail")
            .store(PostgresOutbox.on(pool, database.table()).store())
            .deleteTerminalFailures()
            .on("t", String.class, handler)
            .workers(8)
            .build();
    subscriber.start();
    try {
      await().atMost(Duration.ofSeconds(60)).until(() -> handled.get() == 24);
    } finally {
      subscriber.stop();
    }
    assertThat(most).hasValue(1);
    assertThat(mostTogether.get()).isGreaterThan(1);
  }

  /** Work that tells where it is done. */
  private static final class Work implements ListenerWork {
    private final AtomicInteger starts = new AtomicInteger();
    private final AtomicInteger running = new AtomicInteger();
    private volatile boolean heldWhenClosed;
    private volatile long startedAt;

    @Override
    public AutoCloseable start(HeldLock lock) {
      startedAt = System.nanoTime();
      starts.incrementAndGet();
      running.incrementAndGet();
      return () -> {
        heldWhenClosed = lock.isHeld();
        running.decrementAndGet();
      };
    }
  }

  /** As if a release had been heard of. */
  private void wakeAll() {
    database.list(
        String.class,
        "select pg_notify('outbox_outbox_lock', 'shop' || chr(10) || 'importer')::text");
  }

  private static SingletonListener listener(Locks locks, ListenerWork work) {
    SingletonListener listener = locks.listener("importer", work).withoutRecoveryPolling();
    listener.start();
    return listener;
  }

  @Test
  void whatOneStopsAnotherTakesUpAtOnce() {
    Work first = new Work();
    Work second = new Work();
    SingletonListener one = listener(locks(), first);
    await().until(() -> first.running.get() == 1);
    Locks standby = locks();
    SingletonListener two = listener(standby, second);
    await().until(() -> standby.health().waiting() == 1);
    assertThat(second.starts).hasValue(0);
    assertThat(two.isHolder()).isFalse();

    one.stop();
    long stopped = System.nanoTime();

    assertThat(first.running).hasValue(0);
    assertThat(first.heldWhenClosed).as("stopped before the lock is released").isTrue();
    await().atMost(Duration.ofSeconds(30)).until(() -> second.running.get() == 1);
    assertThat(Duration.ofNanos(second.startedAt - stopped))
        .as("from the return of the stop to the start elsewhere")
        .isLessThan(Duration.ofSeconds(1));
    assertThat(two.isHolder()).isTrue();
    assertThat(standby.health().listeners())
        .containsExactly(new LocksHealth.Listener("importer", true));
    two.stop();
    assertThat(second.running).hasValue(0);
  }

  @Test
  void whoLosesTheLockStopsTheWorkAndStandsBy() {
    Work first = new Work();
    Work second = new Work();
    List<LostLock> lost = Collections.synchronizedList(new ArrayList<>());
    SingletonListener one =
        locks()
            .listener("importer", first)
            .forDevelopment()
            .onLost(lost::add)
            .withoutRecoveryPolling();
    one.start();
    await().until(() -> first.running.get() == 1);
    SingletonListener two = listener(locks(), second);
    await()
        .until(
            () -> {
              if (second.running.get() == 0) {
                lapse();
                wakeAll();
              }
              return second.running.get() == 1;
            });

    await().atMost(Duration.ofSeconds(30)).until(() -> first.running.get() == 0);
    await()
        .untilAsserted(
            () ->
                assertThat(lost)
                    .extracting(LostLock::name, LostLock::period)
                    .containsExactly(tuple("importer", Duration.ofSeconds(15))));
    two.stop();

    await().until(() -> first.starts.get() == 2 && first.running.get() == 1);
    one.stop();
    assertThat(lost).as("a stop is no loss").hasSize(1);
  }

  /** Whether a listener waits for a while; one that holds its lock waits for no time. */
  private static boolean standsBy() {
    return Thread.getAllStackTraces().keySet().stream()
        .anyMatch(
            thread ->
                thread.getName().endsWith("listener-importer")
                    && thread.getState() == Thread.State.TIMED_WAITING);
  }

  /** Whoever stands by believes that the lock is held for a minute. */
  @Test
  void aListenerFindsAReleaseThatGoesUnheardByItsPolling() {
    Work first = new Work();
    Work second = new Work();
    SingletonListener one = listener(locks(), first);
    await().until(() -> first.running.get() == 1);
    CountingDataSource counting = new CountingDataSource(database.plain());
    Locks standby = deaf(counting);
    SingletonListener two =
        standby.listener("importer", second).recoveryPolling(Duration.ofSeconds(15));
    two.start();
    await().until(() -> counting.executionsOf(ACQUISITION) == 1 && standsBy());
    assertThat(standby.health().listeners())
        .containsExactly(new LocksHealth.Listener("importer", false));

    database.update("update outbox_lock set owner = null");

    await().atMost(Duration.ofSeconds(45)).until(() -> second.running.get() == 1);
    assertThat(counting.executionsOf(ACQUISITION)).isEqualTo(2);
    two.stop();
    one.stop();
  }

  @Test
  void aStopEndsWhatAListenersWorkWaitsFor() throws Exception {
    locks().lock("other").acquire();
    Locks locks = locks();
    SingletonListener listener =
        locks.listener(
            "importer",
            held -> {
              locks.lock("other").acquire();
              return () -> {};
            });
    listener.start();
    await().until(() -> locks.health().waiting() == 1 && locks.health().held().size() == 1);

    get(
        begin(
            () -> {
              locks.stop();
              return true;
            }));

    assertThat(locks.health().held()).isEmpty();
  }

  @Test
  void workThatCannotBeStartedReleasesTheLockAndIsTriedAgain() {
    AtomicInteger tries = new AtomicInteger();
    AtomicInteger running = new AtomicInteger();
    Locks locks = locks();
    SingletonListener listener =
        locks.listener(
            "importer",
            lock -> {
              if (tries.incrementAndGet() == 1) {
                throw new IllegalStateException("no network");
              }
              running.incrementAndGet();
              return running::decrementAndGet;
            });
    listener.start();

    await().until(() -> running.get() == 1);
    locks.stop();

    assertThat(running).hasValue(0);
    assertThat(tries).hasValue(2);
    assertThat(database.one(Long.class, "select count(*) from outbox_lock where owner is null"))
        .isEqualTo(1);
  }
}
