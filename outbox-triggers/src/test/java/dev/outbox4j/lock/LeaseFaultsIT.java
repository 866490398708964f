package dev.outbox4j.lock;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Outcome;
import dev.outbox4j.migrations.LockMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.testing.UnreadDelivery;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What a lease does when statements fail, are late, or are overtaken. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class LeaseFaultsIT {
  private final TestDatabase database;
  private final CountingDataSource source;
  private final ManualTime time = new ManualTime();
  private final List<LostLock> lost = new ArrayList<>();
  private final List<Locks> all = new ArrayList<>();

  LeaseFaultsIT(TestDatabase database) {
    this.database = database;
    this.source = new CountingDataSource(database.plain());
  }

  @BeforeEach
  void setUp() {
    database.migrate(LockMigrations.of("public", "outbox"), LockMigrations::migrate);
    database.update("truncate outbox_lock");
  }

  @AfterEach
  void stop() {
    source.beforeEach(text -> {});
    all.forEach(Locks::stop);
    all.forEach(locks -> locks.held().forEach(HeldLock::close)); // they would be renewed, and warn
  }

  private static boolean isRenewal(String text) {
    return text.contains("set renewed_at");
  }

  private static boolean isRelease(String text) {
    return text.contains("set owner = null");
  }

  private static boolean isAcquisition(String text) {
    return text.contains("for update skip locked");
  }

  @SuppressWarnings("unchecked")
  private static <E extends Throwable> void sneak(Throwable failure) throws E {
    throw (E) failure;
  }

  private Locks locks() {
    Locks locks =
        Locks.builder(PostgresOutbox.on(source, database.table()), "shop").time(time).build();
    locks.start();
    all.add(locks);
    return locks;
  }

  private Locks real(DataSource from) {
    Locks locks = Locks.builder(PostgresOutbox.on(from, database.table()), "shop").build();
    locks.start();
    all.add(locks);
    return locks;
  }

  private SingletonLock lock(int seconds) {
    return locks().lock("invoices").period(Duration.ofSeconds(seconds)).onLost(lost::add);
  }

  private HeldLock acquire(int seconds) {
    return lock(seconds).tryAcquire().orElseThrow();
  }

  private String owner() {
    return database.one(String.class, "select coalesce(max(owner), '') from outbox_lock");
  }

  private void lapse() {
    database.update("update outbox_lock set held_until = now() - interval '1 millisecond'");
  }

  @Test
  void nothingIsGuardedWhenTheLeaseIsOverOnTheServerThoughNobodyTookIt() throws Exception {
    HeldLock held = acquire(60);
    lapse();
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      assertThatThrownBy(() -> held.guard(connection)).isInstanceOf(LockLostException.class);
      connection.rollback();
    }
  }

  @Test
  void aRenewalCountsFromWhenItWasSent() {
    HeldLock held = acquire(60);
    source.beforeEach(
        text -> {
          if (isRenewal(text)) {
            source.beforeEach(next -> {});
            time.advance(Duration.ofSeconds(10));
          }
        });

    time.advance(Duration.ofSeconds(30));

    assertThat(time.now()).isEqualTo(Duration.ofSeconds(40));
    assertThat(held.remaining()).isEqualTo(Duration.ofSeconds(49));
  }

  @Test
  void anAnswerThatIsOvertakenTakesNothingBack() throws Exception {
    HeldLock held = acquire(60);
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      source.beforeEach(
          text -> {
            if (isRenewal(text)) {
              source.beforeEach(next -> {});
              time.advance(Duration.ofSeconds(5));
              lapse();
              assertThatThrownBy(() -> held.guard(connection)) // renews
                  .isInstanceOf(LockLostException.class);
            }
          });

      time.advance(Duration.ofSeconds(30));

      connection.rollback();
    }
    assertThat(time.now()).isEqualTo(Duration.ofSeconds(35));
    assertThat(held.remaining()).isEqualTo(Duration.ofSeconds(59));
  }

  @Test
  void aStatementMayTakeAQuarterOfThePeriod() {
    database.update("create table if not exists seen (limits text)");
    database.update("truncate seen");
    database.update(
        """
        create or replace function see() returns trigger language plpgsql as $$
        begin
          insert into seen values (current_setting('statement_timeout'));
          return new;
        end $$""");
    database.update(
        "create trigger see before update on outbox_lock for each row execute function see()");
    try {
      acquire(15);
      time.advance(Duration.ofSeconds(8));
      assertThat(database.one(String.class, "select max(limits) from seen")).isEqualTo("3s");
    } finally {
      database.update("drop trigger see on outbox_lock");
    }
  }

  @Test
  void aThreadThatIsInterruptedReleasesAllTheSame() {
    HeldLock held = acquire(60);
    source.beforeEach(
        text -> {
          if (Thread.currentThread().isInterrupted()) { // as a pool does
            sneak(new SQLException("interrupted", "08001"));
          }
        });
    Thread.currentThread().interrupt();
    held.close();
    assertThat(Thread.interrupted()).as("it still knows").isTrue();
    assertThat(owner()).isEmpty();
  }

  @Test
  void aReleaseThatFailsIsTriedOnceMore() {
    HeldLock held = acquire(60);
    source.beforeEach(
        text -> {
          if (isRelease(text)) {
            source.beforeEach(next -> {});
            sneak(new SQLException("no server", "08006"));
          }
        });
    held.close();
    assertThat(owner()).isEmpty();
  }

  @Test
  void whoeverWaitsLooksWhenListeningBegins() throws Exception {
    Releases releases = new Releases("shop");
    try (Releases.Waiter waiter = releases.waiter("one")) {
      releases.connected();
      assertThat(waiter.await(0)).isTrue();
      assertThat(waiter.await(0)).as("once").isFalse();
    }
  }

  @Test
  void aReleaseThatIsRolledBackLateIsMadeUpForASecondAfterThat() throws Exception {
    Lease held = (Lease) acquire(60);
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      held.guard(connection);
      held.releaseWith(connection);
      time.advance(Duration.ofSeconds(3));
      connection.rollback();
    }
    assertThat(owner()).isNotEmpty();

    time.advance(Duration.ofSeconds(1));

    assertThat(owner()).isEmpty();
    assertThat(lost).isEmpty();
  }

  @Test
  void anAcquisitionThatIsGivenUpLeavesNothing() {
    source.beforeEach(
        text -> {
          if (isAcquisition(text)) {
            time.advance(Duration.ofSeconds(60)); // the answer comes too late
          }
        });
    SingletonLock lock = lock(60).acquisitionTimeout(Duration.ofSeconds(30));
    assertThatThrownBy(lock::acquire).isInstanceOf(LockTimeoutException.class);
    assertThat(owner()).isEmpty();
  }

  @Test
  void anAcquisitionWhoseAnswerIsLostAndThatIsGivenUpLeavesNothing() {
    AtomicBoolean once = new AtomicBoolean(true);
    DataSource losing = losing(database.plain(), () -> once.getAndSet(false));
    SingletonLock lock =
        real(losing)
            .lock("one")
            .period(Duration.ofSeconds(60))
            .acquisitionTimeout(Duration.ofMillis(1));
    assertThatThrownBy(lock::acquire).isInstanceOf(LockTimeoutException.class);
    await().atMost(Duration.ofSeconds(10)).until(() -> owner().isEmpty());
    assertThat(database.count("outbox_lock")).as("it had been taken").isEqualTo(1);
  }

  /** The statement takes effect, and nobody hears of it. */
  private static DataSource losing(DataSource real, BooleanSupplier loses) {
    return proxy(
        DataSource.class,
        real,
        (method, result) ->
            result instanceof Connection connection
                ? proxy(
                    Connection.class,
                    connection,
                    (name, prepared) ->
                        prepared instanceof PreparedStatement statement
                            ? proxy(
                                PreparedStatement.class,
                                statement,
                                (call, got) -> {
                                  if (call.startsWith("execute") && loses.getAsBoolean()) {
                                    sneak(new SQLException("answer lost", "08006"));
                                  }
                                  return got;
                                })
                            : prepared)
                : result);
  }

  private interface After {
    Object on(String method, Object result);
  }

  private static <T> T proxy(Class<T> type, T real, After after) {
    return type.cast(
        Proxy.newProxyInstance(
            LeaseFaultsIT.class.getClassLoader(),
            new Class<?>[] {type},
            (self, method, arguments) -> {
              try {
                return after.on(method.getName(), method.invoke(real, arguments));
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            }));
  }

  /** An attempt that is under way may wait for its token. */
  @Test
  void aLockThatWasJustAcquiredAndReleasedIsNotPurgedThoughItsRecordIsOld() throws Exception {
    acquire(15).close();
    database.update("update outbox_lock set renewed_at = now() - interval '11 minutes'");
    acquire(15).close();
    LockControl control =
        LockControl.of(PostgresOutbox.on(database.plain(), database.table()), "shop");
    assertThat(control.purge(Instant.now().plusSeconds(60), 10)).isZero();
  }

  private record Message(BooleanSupplier leaseOver, BooleanSupplier stops, List<Outcome> decisions)
      implements UnreadDelivery {
    @Override
    public boolean leaseLost() {
      return leaseOver.getAsBoolean();
    }

    @Override
    public boolean stopping() {
      return stops.getAsBoolean();
    }

    @Override
    public void decide(Outcome outcome) {
      decisions.add(outcome);
    }
  }

  /** The stop began while the acquisition was under way. */
  @Test
  void aHandlerDoesNotBeginOnceItsSubscriberStops() throws Exception {
    AtomicBoolean stopping = new AtomicBoolean();
    source.beforeEach(text -> stopping.compareAndSet(false, isAcquisition(text)));
    List<Outcome> decided = new ArrayList<>();
    AtomicInteger handled = new AtomicInteger();

    locks()
        .lock("mail")
        .<String>around((text, delivery, own) -> handled.incrementAndGet())
        .handle("a", new Message(() -> false, stopping::get, decided));

    assertThat(handled).hasValue(0);
    assertThat(decided).hasSize(1).allMatch(outcome -> outcome instanceof Outcome.Reschedule);
    assertThat(owner()).isEmpty();
  }

  /** An ack might find it as it was: a lease that is over is not yet another's. */
  @Test
  void aMessageWhoseLeaseIsLostWhileItsHandlerWaitsComesAgain() throws Exception {
    HeldLock held = real(database.plain()).lock("mail").period(Duration.ofSeconds(60)).acquire();
    List<Outcome> decided = new ArrayList<>();
    AtomicInteger handled = new AtomicInteger();
    Locks locks = real(database.plain());

    locks
        .lock("mail")
        .<String>around((text, delivery, own) -> handled.incrementAndGet())
        .handle("a", new Message(() -> locks.health().waiting() == 1, () -> false, decided));

    assertThat(handled).hasValue(0);
    assertThat(decided).hasSize(1).allMatch(outcome -> outcome instanceof Outcome.Reschedule);
    held.close();
  }

  @Test
  void aRenewalThatFailsByAnErrorIsTriedAgain() {
    HeldLock held = acquire(60);
    source.beforeEach(
        text -> {
          if (isRenewal(text)) {
            source.beforeEach(next -> {});
            throw new OutOfMemoryError("Java heap space");
          }
        });
    time.advance(Duration.ofSeconds(30));
    assertThat(held.remaining()).isEqualTo(Duration.ofSeconds(29));

    time.advance(Duration.ofSeconds(15));

    assertThat(held.remaining()).isEqualTo(Duration.ofSeconds(59));
    assertThat(lost).isEmpty();
  }

  @Test
  void aReleaseThatMeetsALockedRowIsMadeUpFor() throws Exception {
    HeldLock held = acquire(60);
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger.createStatement().execute("select from outbox_lock for update");
      held.close();
      assertThat(owner()).isNotEmpty();
      stranger.rollback();
    }

    time.advance(Duration.ofSeconds(1));

    assertThat(owner()).isEmpty();
  }

  /** As some do that are asked for a connection by a thread that is interrupted. */
  @Test
  void aListenerThatStandsByIsStoppedThoughItsPoolKeepsTheInterrupt() throws Exception {
    HeldLock held = real(database.plain()).lock("one").period(Duration.ofSeconds(60)).acquire();
    CountingDataSource pool = new CountingDataSource(database.plain());
    CountDownLatch waits = new CountDownLatch(1);
    CountDownLatch never = new CountDownLatch(1);
    pool.beforeEach(
        text -> {
          waits.countDown();
          try {
            never.await();
          } catch (InterruptedException e) {
            pool.beforeEach(next -> {});
            sneak(new SQLException("interrupted", "08001"));
          }
        });
    SingletonListener listener = real(pool).listener("one", own -> () -> {});
    listener.start();
    assertThat(waits.await(60, TimeUnit.SECONDS)).isTrue();

    Thread stop = new Thread(listener::stop);
    stop.start();
    stop.join(60_000);

    assertThat(stop.isAlive()).isFalse();
    held.close();
  }

  @Test
  void whatWasLostIsNotHeldByTheHealth() {
    Locks locks = locks();
    assertThat(locks.lock("one").tryAcquire()).isPresent();
    source.beforeEach(text -> sneak(new SQLException("no server", "08006")));
    time.advance(Duration.ofSeconds(15));
    assertThat(locks.health().held()).isEmpty();
  }
}
