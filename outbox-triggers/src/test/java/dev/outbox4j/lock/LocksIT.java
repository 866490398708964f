package dev.outbox4j.lock;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxSubscriber;
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
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
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
    LockMigrations.of("public", "outbox").migrate(database.plain());
    database.update("truncate outbox_lock");
    database.update("create table if not exists counted (n bigint)");
    database.update("truncate counted");
    database.update("insert into counted values (0)");
  }

  @AfterEach
  void stop() {
    all.forEach(Locks::stop);
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

  private <T> Future<T> begin(Callable<T> call) {
    return threads.submit(call);
  }

  private static <T> T get(Future<T> future) throws Exception {
    return future.get(30, TimeUnit.SECONDS);
  }

  private void lapse() {
    database.update("update outbox_lock set held_until = now() - interval '1 millisecond'");
  }

  @Test
  void oneAtATimeDoesWhatWouldGoWrongOtherwise() throws Exception {
    List<SingletonLock> contenders = List.of(locks().lock("sum"), locks().lock("sum"));
    List<Long> tokens = Collections.synchronizedList(new ArrayList<>());
    List<Future<?>> done = new ArrayList<>();
    for (int i = 0; i < 16; i++) {
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

    assertThat(database.one(Long.class, "select n from counted")).isEqualTo(80);
    assertThat(tokens).hasSize(80).doesNotHaveDuplicates().isSorted();
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

  @ParameterizedTest
  @ValueSource(strings = {"", " ", " a", "a ", "a/b", "a\nb"})
  void namesThatLeadAstrayAreRefused(String name) {
    Locks locks = locks();
    assertThatThrownBy(() -> locks.lock(name)).isInstanceOf(IllegalArgumentException.class);
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
    assertThatThrownBy(() -> locks.lock("x".repeat(201)))
        .hasMessageContaining("has 201 bytes; it may have 200");
    assertThatThrownBy(() -> lock.suffix("x".repeat(501)))
        .hasMessageContaining("has 501 bytes; it may have 500");
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

    @Override
    public AutoCloseable start(HeldLock lock) {
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

    assertThat(first.running).hasValue(0);
    assertThat(first.heldWhenClosed).as("stopped before the lock is released").isTrue();
    await().atMost(Duration.ofSeconds(5)).until(() -> second.running.get() == 1);
    assertThat(two.isHolder()).isTrue();
    two.stop();
    assertThat(second.running).hasValue(0);
  }

  @Test
  void whoLosesTheLockStopsTheWorkAndStandsBy() {
    Work first = new Work();
    Work second = new Work();
    SingletonListener one =
        locks().listener("importer", first).forDevelopment().withoutRecoveryPolling();
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
    two.stop();

    await().until(() -> first.starts.get() == 2 && first.running.get() == 1);
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
