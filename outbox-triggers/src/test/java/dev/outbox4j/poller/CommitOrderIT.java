package dev.outbox4j.poller;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.poller.TickResult.Outcome;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/** A transaction that began earlier and commits later is not skipped. */
@ExtendWith(PostgresExtension.class)
class CommitOrderIT {
  private final TestDatabase database;
  private final PostgresOutbox outbox;
  private final List<RowChange> handled = Collections.synchronizedList(new ArrayList<>());

  CommitOrderIT(TestDatabase database) {
    this.database = database;
    this.outbox = PostgresOutbox.on(database.pool(8), database.table());
  }

  @BeforeEach
  void setUp() {
    TestPollers.setUp(database);
    for (String gid :
        database.list(
            String.class,
            "select gid from pg_prepared_xacts where database = current_database()")) {
      database.update("rollback prepared '" + gid + "'");
    }
    database.update(
        """
        drop table if exists late;
        create table late (
          id bigint generated always as identity primary key,
          label text,
          changed_at timestamptz not null default now(),
          local_at timestamp not null default timezone(interval '5 hours 30 minutes', now()),
          tx xid8 not null default pg_current_xact_id(),
          n numeric not null default 1);
        create unique index on late (changed_at, id);
        create unique index on late (local_at, id);
        create unique index on late (tx, id);
        create unique index on late (n, id);
        """);
  }

  private enum Kind {
    SEQUENCE(Cursor.sequence("id")),
    SERVER_TIME(Cursor.serverTime("changed_at").margin(Duration.ofMillis(1))),
    LOCAL_TIME(
        Cursor.serverTime("local_at")
            .in(ZoneOffset.ofHoursMinutes(5, 30))
            .margin(Duration.ofMillis(1))),
    TRANSACTION_ID(Cursor.transactionId("tx"));

    @SuppressWarnings("ImmutableEnumChecker") // it is, but has no annotation
    private final Cursor cursor;

    Kind(Cursor cursor) {
      this.cursor = cursor;
    }
  }

  private Pollers pollers(Cursor cursor) {
    Poller poller =
        Poller.of("late", Source.table("late"), cursor, Deletes.ignored())
            .pollInterval(Duration.ofMillis(20))
            .batchSize(100);
    return Pollers.builder(outbox, "shop")
        .on(poller, (rows, context) -> handled.addAll(rows))
        .build();
  }

  private List<String> labels() {
    return handled.stream().map(row -> row.get("label", String.class)).toList();
  }

  private static void insert(Connection connection, String label) throws SQLException {
    try (PreparedStatement insert =
        connection.prepareStatement("insert into late (label) values (?)")) {
      insert.setString(1, label);
      insert.executeUpdate();
    }
  }

  private void insert(String label) {
    database.update("insert into late (label) values (?)", label);
  }

  private Connection begin() throws SQLException {
    PGSimpleDataSource named = database.plain();
    named.setApplicationName("slow import");
    Connection connection = named.getConnection();
    connection.setAutoCommit(false);
    return connection;
  }

  /** Ticks until so many rows were handled. */
  private void tickUntil(Pollers pollers, int rows) {
    await()
        .until(
            () -> {
              TickResult result = pollers.tick("late");
              assertThat(result.failure()).as(result.toString()).isEmpty();
              return handled.size() >= rows;
            });
  }

  /** Ticks often enough that nothing more would come. */
  private void tickOften(Pollers pollers) {
    for (int i = 0; i < 10; i++) {
      TickResult result = pollers.tick("late");
      assertThat(result.failure()).as(result.toString()).isEmpty();
    }
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void whatIsCommittedLateIsHandledInItsPlace(Kind kind) throws Exception {
    Pollers pollers = pollers(kind.cursor);
    insert("first");
    tickUntil(pollers, 1);
    try (Connection slow = begin()) {
      insert(slow, "slow");
      insert("fast");
      tickOften(pollers);
      assertThat(labels()).containsExactly("first");
      TickResult held = pollers.tick("late");
      assertThat(held.outcome()).isEqualTo(Outcome.HELD_BACK);
      slow.commit();
    }
    tickUntil(pollers, 3);
    assertThat(labels()).containsExactly("first", "slow", "fast");
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void whatIsRolledBackHoldsNothingBackAfterThat(Kind kind) throws Exception {
    Pollers pollers = pollers(kind.cursor);
    try (Connection slow = begin()) {
      insert(slow, "slow");
      insert("fast");
      tickOften(pollers);
      assertThat(handled).isEmpty();
      slow.rollback();
    }
    tickUntil(pollers, 1);
    assertThat(labels()).containsExactly("fast");
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void aPreparedTransactionIsWaitedFor(Kind kind) throws Exception {
    Pollers pollers = pollers(kind.cursor);
    String gid = "late-" + kind;
    try (Connection slow = begin();
        Statement statement = slow.createStatement()) {
      insert(slow, "prepared");
      insert("fast");
      tickOften(pollers); // marks that wait for the transaction while it runs
      statement.execute("prepare transaction '" + gid + "'");
      slow.commit();
    }
    tickOften(pollers);
    assertThat(handled).isEmpty();
    assertThat(pollers.health().pollers().get(0).heldBack())
        .hasValueSatisfying(held -> assertThat(held.toString()).contains("prepared", gid));
    database.update("commit prepared '" + gid + "'");
    tickUntil(pollers, 2);
    assertThat(labels()).containsExactly("prepared", "fast");
  }

  @Test
  void theDelayAndItsCauseAreVisible() throws Exception {
    Pollers pollers = pollers(Kind.SEQUENCE.cursor);
    insert("first");
    tickUntil(pollers, 1);
    try (Connection slow = begin();
        Statement statement = slow.createStatement()) {
      insert(slow, "slow");
      int process;
      try (var rows = statement.executeQuery("select pg_backend_pid()")) {
        rows.next();
        process = rows.getInt(1);
      }
      insert("fast");
      tickOften(pollers);
      HeldBack held = pollers.health().pollers().get(0).heldBack().orElseThrow();
      assertThat(held.process()).hasValue(process);
      assertThat(held.application()).hasValue("slow import");
      assertThat(held.began()).isPresent();
      assertThat(held.transactions()).isEqualTo(1);
      await()
          .until(
              () -> {
                pollers.tick("late");
                return pollers
                        .health()
                        .pollers()
                        .get(0)
                        .heldBack()
                        .orElseThrow()
                        .delay()
                        .compareTo(Duration.ofSeconds(1))
                    > 0;
              });
      PollerStatus status = PollerControl.of(outbox, "shop").status("late").orElseThrow();
      assertThat(status.heldBack().orElse("")).contains("process " + process, "slow import");
      assertThat(status.lag().orElseThrow()).isGreaterThan(Duration.ofSeconds(1));
      assertThat(pollers.health().pollers().get(0).lag().orElseThrow())
          .isGreaterThan(Duration.ofSeconds(1));
      assertThat(pollers.health().pollers().get(0).healthy()).isTrue();
      slow.rollback();
    }
    tickUntil(pollers, 2);
    assertThat(pollers.health().pollers().get(0).heldBack()).isEmpty();
    assertThat(pollers.health().pollers().get(0).lag().orElseThrow())
        .isLessThan(Duration.ofSeconds(1));
  }

  @Test
  void aReaderHoldsBackAllKindsButTransactionIds() throws Exception {
    Pollers marks = pollers(Kind.SEQUENCE.cursor);
    try (Connection reader = begin();
        Statement statement = reader.createStatement()) {
      statement.execute("select 1");
      insert("fast");
      tickOften(marks);
      assertThat(handled).isEmpty(); // it may write yet, by a number that it took before
      Poller byId =
          Poller.of("ids", Source.table("late"), Kind.TRANSACTION_ID.cursor, Deletes.ignored())
              .pollInterval(Duration.ofMillis(20));
      Pollers ids =
          Pollers.builder(outbox, "shop").on(byId, (rows, context) -> handled.addAll(rows)).build();
      ids.tick("ids");
      assertThat(labels()).containsExactly("fast");
      reader.rollback();
    }
  }

  /** Or there would be an alarm for each report that runs while nobody writes. */
  @ParameterizedTest
  @EnumSource(Kind.class)
  void whatIsOpenHoldsNothingBackWhereNothingWaits(Kind kind) throws Exception {
    Pollers pollers = pollers(kind.cursor);
    insert("first");
    tickUntil(pollers, 1);
    try (Connection writer = begin()) {
      insert(writer, "slow");
      long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(2);
      do {
        assertThat(pollers.tick("late").outcome()).isEqualTo(Outcome.EMPTY);
      } while (System.nanoTime() < until);
      PollerHealth health = pollers.health().pollers().get(0);
      assertThat(health.heldBack()).isEmpty();
      assertThat(health.lag().orElseThrow()).isLessThan(Duration.ofSeconds(1));

      insert("fast");
      TickResult held = pollers.tick("late");
      assertThat(held.outcome()).isEqualTo(Outcome.HELD_BACK);
      // it waits since it is there, and not since the other has begun
      PollerHealth since = pollers.health().pollers().get(0);
      assertThat(since.heldBack().orElseThrow().delay()).isLessThan(Duration.ofMillis(1_500));
      assertThat(since.lag().orElseThrow()).isLessThan(Duration.ofMillis(1_500));
      assertThat(PollerControl.of(outbox, "shop").status("late").orElseThrow().lag().orElseThrow())
          .isLessThan(Duration.ofMillis(1_500));
      writer.rollback();
    }
    tickUntil(pollers, 2);
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void aTableThatWasEmptiedHasNoLag(Kind kind) {
    Pollers pollers = pollers(kind.cursor);
    insert("first");
    tickUntil(pollers, 1);
    database.update("delete from late");
    long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(2);
    do {
      assertThat(pollers.tick("late").outcome()).isEqualTo(Outcome.EMPTY);
    } while (System.nanoTime() < until);
    assertThat(pollers.health().pollers().get(0).lag().orElseThrow())
        .isLessThan(Duration.ofSeconds(1));
  }

  @Test
  void theLagOfAnAscendingPollerGrowsWhileRowsOfTheGreatestCursorWait() {
    Pollers pollers = pollers(Cursor.ascending("n").margin(Duration.ofMillis(1)));
    database.update("insert into late (label, n) values ('a', 1)");
    tickOften(pollers);
    assertThat(pollers.health().pollers().get(0).lag()).isEmpty(); // when 'a' came is not known
    database.update("insert into late (label, n) values ('b', 2)");
    tickUntil(pollers, 1);
    await()
        .until(
            () -> {
              pollers.tick("late");
              return pollers.health().pollers().get(0).lag().orElseThrow().toMillis() > 1_500;
            });
    database.update("insert into late (label, n) values ('c', 3)");
    tickUntil(pollers, 2);
    assertThat(pollers.health().pollers().get(0).lag().orElseThrow())
        .isLessThan(Duration.ofSeconds(1));
  }

  @Test
  void transactionsOfOtherDatabasesHoldNothingBack() throws Exception {
    PGSimpleDataSource other = database.server().dataSource("postgres");
    Pollers pollers = pollers(Kind.SEQUENCE.cursor);
    try (Connection open = other.getConnection();
        Statement statement = open.createStatement()) {
      open.setAutoCommit(false);
      statement.execute("select pg_current_xact_id()");
      insert("fast");
      tickUntil(pollers, 1);
      open.rollback();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void rowsOfTheGreatestAscendingCursorWaitForAGreaterOne(boolean tie) {
    Pollers pollers = pollers(Cursor.ascending("n").margin(Duration.ofMillis(1)));
    database.update("insert into late (label, n) values ('a', 1), ('b', 2)");
    tickUntil(pollers, 1);
    tickOften(pollers);
    assertThat(labels()).containsExactly("a");
    if (tie) {
      database.update("insert into late (label, n) values ('c', 2)");
    }
    database.update("insert into late (label, n) values ('d', 3)");
    tickUntil(pollers, tie ? 3 : 2);
    assertThat(labels())
        .containsExactlyElementsOf(tie ? List.of("a", "b", "c") : List.of("a", "b"));
  }

  @Test
  void anAscendingRowIsHandledAMarginAfterAGreaterOneWasSeen() {
    Pollers pollers = pollers(Cursor.ascending("n").margin(Duration.ofSeconds(2)));
    database.update("insert into late (label, n) values ('a', 1), ('b', 2)");
    long begun = System.nanoTime();
    tickUntil(pollers, 1);
    assertThat(Duration.ofNanos(System.nanoTime() - begun))
        .isGreaterThanOrEqualTo(Duration.ofSeconds(2));
  }

  /** People write never, and for ever, as a date. */
  @ParameterizedTest
  @ValueSource(strings = {"9999-12-31", "infinity"})
  void aRowThatIsDatedInTheFutureHidesNoOther(String never) {
    insert("before");
    database.update(
        "insert into late (label, changed_at) values ('never', cast(? as timestamptz))", never);
    Poller from =
        Poller.of("late", Source.table("late"), Kind.SERVER_TIME.cursor, Deletes.ignored())
            .pollInterval(Duration.ofMillis(20));
    Pollers now =
        Pollers.builder(outbox, "shop")
            .on(from.startNow(), (rows, context) -> handled.addAll(rows))
            .on(from.named("until").untilNow(), (rows, context) -> handled.addAll(rows))
            .build();
    now.tick("late");
    insert("after");
    database.update(
        "insert into late (label, changed_at) values ('soon', now() + interval '2 seconds')");
    tickUntil(now, 1);
    assertThat(labels()).containsExactly("after");
    tickUntil(now, 2);
    assertThat(labels()).containsExactly("after", "soon");
    handled.clear();
    await().until(() -> now.tick("until").outcome() == Outcome.FINISHED);
    assertThat(labels()).contains("before", "after").doesNotContain("never");
  }

  @Test
  void serialWritersMayDateRowsInTheFutureToo() {
    Pollers pollers = pollers(Kind.SERVER_TIME.cursor.assumingThatWritersNeverOverlap());
    database.update("insert into late (label, changed_at) values ('never', '9999-12-31')");
    insert("one");
    tickUntil(pollers, 1);
    insert("two");
    tickUntil(pollers, 2);
    assertThat(labels()).containsExactly("one", "two");
  }

  /** An import writes numbers of its own, and the sequence comes to them later. */
  @Test
  void rowsBeyondTheSequenceWaitForIt() {
    Pollers pollers = pollers(Kind.SEQUENCE.cursor);
    insert("1");
    database.update("insert into late overriding system value select 10, 'import'");
    tickUntil(pollers, 1);
    tickOften(pollers);
    insert("2");
    tickUntil(pollers, 2);
    assertThat(labels()).containsExactly("1", "2");
    assertThat(pollers.health().pollers().get(0).warnings())
        .singleElement()
        .asString()
        .contains("a row of public.late has number 10", "late_id_seq has given out 1", "setval");
    database.list(Long.class, "select setval('late_id_seq', 10)");
    tickUntil(pollers, 3);
    assertThat(labels()).containsExactly("1", "2", "import");
  }

  @Test
  void aSequenceThatWasSetBackIsAFailure() {
    database.list(Long.class, "select setval('late_id_seq', 100)");
    insert("first");
    Pollers pollers = pollers(Kind.SEQUENCE.cursor);
    tickUntil(pollers, 1);
    database.list(Long.class, "select setval('late_id_seq', 50)");
    assertThat(pollers.tick("late").reason().orElse(""))
        .contains("the position is 101, and sequence public.late_id_seq has given out 50");
  }

  @Test
  void aSequenceThatSessionsCacheLaterIsAFailureThen() {
    Pollers pollers = pollers(Kind.SEQUENCE.cursor);
    insert("first");
    tickUntil(pollers, 1);
    database.update("alter sequence late_id_seq cache 100");
    assertThat(pollers.tick("late").reason().orElse(""))
        .contains("sequence public.late_id_seq has cache 100");
    database.update("alter sequence late_id_seq cache 1");
    assertThat(pollers.tick("late").failure()).isEmpty();
  }

  @Test
  void whoSaysThatWritersNeverOverlapWaitsForNobody() throws Exception {
    Pollers pollers = pollers(Cursor.sequence("id").assumingThatWritersNeverOverlap());
    try (Connection slow = begin()) {
      insert(slow, "slow");
      insert("fast");
      pollers.tick("late");
      assertThat(labels()).containsExactly("fast");
      slow.rollback();
    }
  }

  @Test
  void aClockThatWasSetBackIsAFailureAndLosesNothingUnseen() {
    insert("first");
    Pollers pollers = pollers(Kind.SERVER_TIME.cursor);
    tickUntil(pollers, 1);
    PollerControl.of(outbox, "shop")
        .set("late", Position.after(java.time.Instant.now().plusSeconds(3600)), TestPollers.ANN);
    TickResult result = pollers.tick("late");
    assertThat(result.failure()).hasValue(PollerFailure.FETCH);
    assertThat(result.reason().orElse("")).contains("the source's clock says", "set back");
  }

  @Test
  void aServerThatCountsTransactionsAnewIsAFailure() {
    insert("first");
    Pollers pollers = pollers(Kind.TRANSACTION_ID.cursor);
    tickUntil(pollers, 1);
    PollerControl.of(outbox, "shop").set("late", Position.after(1L << 60), TestPollers.ANN);
    assertThat(pollers.tick("late").reason().orElse("")).contains("another server");
    PollerControl.of(outbox, "shop").set("late", Position.beginning(), TestPollers.ANN);
    database.update("update late set tx = '999999999999'");
    assertThat(pollers.tick("late").reason().orElse("")).contains("was restored from another");
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void nothingIsLostWhileManyWritersOverlap(Kind kind) throws Exception {
    // the margin is for processes that wait for a processor, of which there are few here
    Pollers pollers =
        pollers(
            kind.cursor.kind() == Cursor.Kind.SERVER_TIME
                ? kind.cursor.margin(Duration.ofMillis(500))
                : kind.cursor);
    nothingIsLost(pollers);
  }

  /** The last row of all is there only to be greater than the others. */
  @Test
  void nothingIsLostByAscendingLocalTimesWhileManyWritersOverlap() throws Exception {
    nothingIsLost(pollers(Cursor.ascending("local_at")));
  }

  private void nothingIsLost(Pollers pollers) throws Exception {
    int writers = 16;
    long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(6);
    Set<String> written = ConcurrentHashMap.newKeySet();
    AtomicInteger number = new AtomicInteger();
    ExecutorService threads = Executors.newFixedThreadPool(writers);
    try {
      pollers.start();
      List<Future<?>> all = new ArrayList<>();
      for (int i = 0; i < writers; i++) {
        all.add(
            threads.submit(
                () -> {
                  try (Connection connection = database.plain().getConnection()) {
                    connection.setAutoCommit(false);
                    while (System.nanoTime() < until) {
                      write(connection, written, number);
                    }
                  }
                  return null;
                }));
      }
      for (Future<?> each : all) {
        each.get(60, TimeUnit.SECONDS);
      }
      insert("last");
      await()
          .atMost(Duration.ofSeconds(20))
          .untilAsserted(() -> assertThat(labels()).containsAll(written));
    } finally {
      threads.shutdownNow();
      pollers.stop();
    }
    assertThat(labels()).doesNotHaveDuplicates();
    written.add("last");
    assertThat(written).containsAll(labels());
  }

  /** A transaction with rows at its begin and its end, and up to 200 ms between; some roll back. */
  private static void write(Connection connection, Set<String> written, AtomicInteger number)
      throws SQLException {
    List<String> own = new ArrayList<>();
    ThreadLocalRandom random = ThreadLocalRandom.current();
    for (int i = 0; i <= random.nextInt(3); i++) {
      String label = "w" + number.incrementAndGet();
      insert(connection, label);
      own.add(label);
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(random.nextInt(200)));
    }
    if (random.nextInt(10) == 0) {
      connection.rollback();
    } else {
      connection.commit();
      written.addAll(own);
    }
  }
}
