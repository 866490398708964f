package dev.outbox4j.poller;

import static dev.outbox4j.poller.TestPollers.ANN;
import static dev.outbox4j.poller.TestPollers.ids;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.poller.TickResult.Outcome;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.FaultyDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.SingleConnection;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What is handled, and how often, when statements, databases and nodes fail. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class PollerFaultsIT {
  private static final int ROWS = 10;
  private static final int BATCH = 4;

  private final TestDatabase database;
  private final FaultyDataSource state;
  private final FaultyDataSource source;
  private final PostgresOutbox outbox;
  private final PollerControl control;
  private final List<RowChange> handled = Collections.synchronizedList(new ArrayList<>());
  private final List<Pollers> started = new ArrayList<>();

  PollerFaultsIT(TestDatabase database) {
    this.database = database;
    this.state = new FaultyDataSource(database.plain());
    this.source = new FaultyDataSource(database.plain());
    this.outbox = PostgresOutbox.on(state, database.table());
    this.control = PollerControl.of(PostgresOutbox.on(database.plain(), database.table()), "shop");
  }

  @BeforeEach
  void setUp() {
    TestPollers.setUp(database);
    TestPollers.createItems(database);
    database.update("drop table if exists ledger");
    database.update("create table ledger (id int, event text)");
    TestPollers.insert(database, 1, ROWS);
  }

  @AfterEach
  void stop() {
    state.heal();
    source.heal();
    started.forEach(Pollers::stop);
  }

  /** The statements of a tick. */
  private enum Step {
    ACQUIRE(sql -> sql.contains("for update skip locked")),
    LOOK(sql -> sql.contains("pg_locks")),
    FETCH(sql -> sql.contains("order by s.\"version\", s.\"id\"")),
    COMMIT(sql -> sql.contains("positioned_at = clock_timestamp()")),
    RELEASE(
        sql ->
            sql.contains("last_success_at = clock_timestamp()") && !sql.contains("positioned_at"));

    @SuppressWarnings("ImmutableEnumChecker") // holds nothing
    private final Predicate<String> statement;

    Step(Predicate<String> statement) {
      this.statement = statement;
    }
  }

  private static Poller items() {
    return TestPollers.items().batchSize(BATCH).lease(Duration.ofSeconds(1));
  }

  private Pollers plain() {
    return Pollers.builder(outbox, "shop")
        .source(source)
        .on(items(), (rows, context) -> handled.addAll(rows))
        .build();
  }

  private Pollers transactional() {
    return Pollers.builder(outbox, "shop")
        .source(source)
        .transactional(items(), (rows, context, connection) -> note(rows, connection))
        .build();
  }

  private PollerStatus status() {
    return control.status("items").orElseThrow();
  }

  /** Ticks until all rows are behind the position. */
  private void tickToTheEnd(Pollers pollers) {
    await()
        .until(
            () -> {
              pollers.tick("items");
              return control
                  .status("items")
                  .filter(now -> now.position().key().equals(List.of(String.valueOf(ROWS))))
                  .isPresent();
            });
  }

  @ParameterizedTest
  @EnumSource(Step.class)
  void aStatementThatIsNotSentLosesNothingAndRepeatsNothing(Step step) {
    Pollers pollers = plain();
    FaultyDataSource at = step == Step.LOOK || step == Step.FETCH ? source : state;
    at.cutBefore(step.statement);
    tickToTheEnd(pollers);
    if (step != Step.RELEASE) { // a short batch releases with its commit
      assertThat(at.isSpent()).isTrue();
    }
    assertThat(ids(handled))
        .containsExactlyElementsOf(IntStream.rangeClosed(1, ROWS).boxed().toList());
  }

  @ParameterizedTest
  @EnumSource(Step.class)
  void anAnswerThatIsLostLosesNothingAndRepeatsNothing(Step step) {
    Pollers pollers = plain();
    FaultyDataSource at = step == Step.LOOK || step == Step.FETCH ? source : state;
    at.cutAfter(step.statement);
    tickToTheEnd(pollers);
    if (step != Step.RELEASE) {
      assertThat(at.isSpent()).isTrue();
    }
    assertThat(ids(handled))
        .containsExactlyElementsOf(IntStream.rangeClosed(1, ROWS).boxed().toList());
    assertThat(status().rows()).isEqualTo(ROWS);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void theReleaseOfAnEmptyTickMayFail(boolean before) {
    Pollers pollers = plain();
    tickToTheEnd(pollers);
    if (before) {
      state.cutBefore(Step.RELEASE.statement);
    } else {
      state.cutAfter(Step.RELEASE.statement);
    }
    TickResult result = pollers.tick("items");
    assertThat(result.failure()).hasValue(PollerFailure.RELEASE);
    assertThat(state.isSpent()).isTrue();
    assertThat(pollers.tick("items").outcome()).isEqualTo(Outcome.EMPTY);
  }

  @ParameterizedTest
  @EnumSource(Step.class)
  void aTransactionalHandlerCountsEachRowOnceWhateverIsCut(Step step) {
    for (boolean before : List.of(true, false)) {
      setUp();
      Pollers pollers = transactional();
      FaultyDataSource at = step == Step.LOOK || step == Step.FETCH ? source : state;
      if (before) {
        at.cutBefore(step.statement);
      } else {
        at.cutAfter(step.statement);
      }
      tickToTheEnd(pollers);
      requireLedger();
      at.heal();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aTransactionalHandlerCountsEachRowOnceWhenItsCommitIsCut(boolean before) {
    Pollers pollers = transactional();
    if (before) {
      state.cutBefore("commit"::equals);
    } else {
      state.cutAfter("commit"::equals);
    }
    tickToTheEnd(pollers);
    assertThat(state.isSpent()).isTrue();
    requireLedger();
  }

  private void requireLedger() {
    assertThat(ledger()).containsExactlyElementsOf(IntStream.rangeClosed(1, ROWS).boxed().toList());
  }

  private List<Integer> ledger() {
    return database.list(Integer.class, "select id from ledger order by id");
  }

  private static Stream<Arguments> deathsBeforeAStatement() {
    return deaths(Step.LOOK, Step.FETCH, Step.COMMIT, Step.RELEASE);
  }

  private static Stream<Arguments> deathsAfterAStatement() {
    return deaths(Step.values());
  }

  private static Stream<Arguments> deaths(Step... steps) {
    return Stream.of(steps)
        .flatMap(step -> Stream.of(Arguments.of(step, false), Arguments.of(step, true)));
  }

  /** The node is gone: nothing of it goes on, and its lease is left. */
  @ParameterizedTest(name = "{0}, in transactions: {1}")
  @MethodSource("deathsBeforeAStatement")
  void aNodeThatDiesIsReplacedWhenItsLeaseIsOverAndItsBatchComesAgain(
      Step step, boolean transactional) {
    FaultyDataSource dying = new FaultyDataSource(database.plain());
    dying.dieAt(step.statement);
    start(dying, transactional);
    await().until(dying::isSpent);
    requireReplacement(transactional, step == Step.COMMIT);
  }

  @ParameterizedTest(name = "{0}, in transactions: {1}")
  @MethodSource("deathsAfterAStatement")
  void aNodeThatDiesBeforeItHearsAnAnswerIsReplaced(Step step, boolean transactional) {
    FaultyDataSource dying = new FaultyDataSource(database.plain());
    dying.dieAfter(step.statement);
    start(dying, transactional);
    await().until(dying::isSpent);
    requireReplacement(transactional, false);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aNodeThatDiesAsItCommitsItsTransactionIsReplaced(boolean before) {
    FaultyDataSource dying = new FaultyDataSource(database.plain());
    if (before) {
      dying.dieAt("commit"::equals);
    } else {
      dying.dieAfter("commit"::equals);
    }
    start(dying, true);
    await().until(dying::isSpent);
    requireReplacement(true, false);
  }

  @Test
  void aNodeThatDiesInItsHandlerIsReplaced() {
    FaultyDataSource dying = new FaultyDataSource(database.plain());
    CountDownLatch called = new CountDownLatch(1);
    start(
        dying,
        builder ->
            builder.on(
                items(),
                (rows, context) -> {
                  handled.addAll(rows);
                  standStill(dying, called);
                }));
    await().until(() -> called.getCount() == 0);
    requireReplacement(false, true);
  }

  @Test
  void aNodeThatDiesInItsTransactionalHandlerIsReplaced() {
    FaultyDataSource dying = new FaultyDataSource(database.plain());
    CountDownLatch called = new CountDownLatch(1);
    start(
        dying,
        builder ->
            builder.transactional(
                items(),
                (rows, context, connection) -> {
                  note(rows, connection);
                  standStill(dying, called);
                }));
    await().until(() -> called.getCount() == 0);
    requireReplacement(true, true);
  }

  /** Until it is interrupted at the end of the test; nothing is sent any more. */
  private static void standStill(FaultyDataSource dying, CountDownLatch called)
      throws InterruptedException {
    dying.goAway();
    called.countDown();
    assertThat(new CountDownLatch(1).await(60, TimeUnit.SECONDS)).isFalse();
  }

  private void start(FaultyDataSource dying, boolean transactional) {
    start(
        dying,
        builder ->
            transactional
                ? builder.transactional(
                    items(), (rows, context, connection) -> note(rows, connection))
                : builder.on(items(), (rows, context) -> handled.addAll(rows)));
  }

  private void start(FaultyDataSource dying, UnaryOperator<Pollers.Builder> handler) {
    Pollers first =
        handler
            .apply(
                Pollers.builder(PostgresOutbox.on(dying, database.table()), "shop")
                    .source(dying)
                    .gracefulTimeout(Duration.ZERO))
            .build();
    started.add(first);
    first.start();
  }

  /**
   * With one more row, for which another node must have the lease, wherever the first one died.
   *
   * @param again whether the first batch had been handed over, and its position was not written
   */
  private void requireReplacement(boolean transactional, boolean again) {
    int last = ROWS + 1;
    TestPollers.insert(database, last, last);
    Pollers second = transactional ? transactional() : plain();
    await()
        .until(
            () -> {
              second.tick("items");
              return status().position().key().equals(List.of(String.valueOf(last)));
            });
    if (transactional) {
      assertThat(ledger())
          .containsExactlyElementsOf(IntStream.rangeClosed(1, last).boxed().toList());
    } else {
      requireOrder(ids(handled), last, again);
    }
  }

  /** All ids in their order, and before these those of the first batch if that comes again. */
  private static void requireOrder(List<Integer> all, int last, boolean again) {
    assertThat(all)
        .containsExactlyElementsOf(
            IntStream.concat(
                    IntStream.rangeClosed(1, again ? BATCH : 0), IntStream.rangeClosed(1, last))
                .boxed()
                .toList());
  }

  @Test
  void aLeaseThatWasStolenIsToldToTheHandlerAndNothingIsCommitted() {
    AtomicBoolean told = new AtomicBoolean();
    AtomicBoolean interrupted = new AtomicBoolean();
    Pollers pollers =
        Pollers.builder(outbox, "shop")
            .on(
                items(),
                (rows, context) -> {
                  database.update(
                      "update outbox_poller set owner = 'thief', token = token + 1,"
                          + " lease_until = now() + interval '1 hour'");
                  try {
                    assertThat(new CountDownLatch(1).await(20, TimeUnit.SECONDS)).isFalse();
                  } catch (InterruptedException e) {
                    interrupted.set(true);
                  }
                  told.set(context.isLeaseLost());
                })
            .build();
    TickResult result = pollers.tick("items");
    assertThat(told).isTrue();
    assertThat(interrupted).isTrue();
    assertThat(Thread.currentThread().isInterrupted()).isFalse();
    assertThat(result.failure()).hasValue(PollerFailure.COMMIT);
    assertThat(result.reason().orElse("")).contains("node thief took it");
    assertThat(status().position()).isEqualTo(Position.beginning());
    assertThat(status().holder()).hasValue("thief");
    TickResult standby = pollers.tick("items");
    assertThat(standby.outcome()).isEqualTo(Outcome.STANDBY);
    assertThat(pollers.health().pollers().get(0).state()).isEqualTo(PollerHealth.State.STANDBY);
  }

  /** As of a process that stood still after it has read its rows. */
  @Test
  void rowsAreNotHandedOverOnceTheLeaseIsOverAndTaken() {
    Pollers pollers = plain();
    pollers.tick("items");
    handled.clear();
    TestPollers.insert(database, ROWS + 1, ROWS + 1);
    source.before(
        Step.FETCH.statement,
        () -> {
          state.goAway(); // so that no renewal tells it meanwhile
          spin(Duration.ofMillis(1_200));
          database.update(
              "update outbox_poller set owner = 'thief', token = token + 1,"
                  + " lease_until = now() + interval '1 hour'");
          state.heal();
        });
    TickResult result = pollers.tick("items");
    assertThat(source.isSpent()).isTrue();
    assertThat(result.reason().orElse("")).contains("node thief took it");
    assertThat(handled).isEmpty();
  }

  /** Without the test's own waits, as nothing can be waited for. */
  private static void spin(Duration time) {
    long until = System.nanoTime() + time.toNanos();
    while (System.nanoTime() < until) {
      Thread.onSpinWait();
    }
  }

  /**
   * A process that stands still in a transaction would keep what it has locked, and hold back all
   * rows of its database.
   */
  @Test
  void aNodeThatStandsStillInItsTransactionIsReplacedAndItsTransactionEnded() throws Exception {
    FaultyDataSource frozen = new FaultyDataSource(database.plain());
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch thawed = new CountDownLatch(1);
    AtomicReference<TickResult> told = new AtomicReference<>();
    Pollers first =
        Pollers.builder(PostgresOutbox.on(frozen, database.table()), "shop")
            .transactional(
                items(),
                (rows, context, connection) -> {
                  note(rows, connection);
                  frozen.goAway(); // nor can it renew its lease
                  begun.countDown();
                  assertThat(thawed.await(30, TimeUnit.SECONDS)).isTrue();
                  frozen.heal();
                })
            .build();
    Thread node = new Thread(() -> told.set(first.tick("items")), "first");
    node.start();
    try {
      assertThat(begun.await(10, TimeUnit.SECONDS)).isTrue();
      Pollers second = transactional();
      await()
          .atMost(Duration.ofSeconds(5))
          .until(
              () -> {
                second.tick("items");
                return status().position().key().equals(List.of(String.valueOf(ROWS)));
              });
    } finally {
      thawed.countDown();
      node.join(TimeUnit.SECONDS.toMillis(30));
    }
    assertThat(told.get().failure()).hasValue(PollerFailure.COMMIT);
    assertThat(told.get().reason().orElse("")).contains("the lease was lost");
    requireLedger();
  }

  private static void note(List<RowChange> rows, Connection connection) throws SQLException {
    try (PreparedStatement insert =
        connection.prepareStatement("insert into ledger values (?, ?)")) {
      for (RowChange row : rows) {
        insert.setObject(1, row.key().get("id"));
        insert.setString(2, row.eventId());
        insert.executeUpdate();
      }
    }
  }

  @Test
  void whyAPollerFailsIsKnownToTheNodeThatTakesItOver() {
    AtomicReference<PollerHealth> during = new AtomicReference<>();
    Pollers failing =
        Pollers.builder(outbox, "shop")
            .on(
                items(),
                (rows, context) -> {
                  throw new IllegalStateException("the index is full");
                })
            .build();
    failing.tick("items");
    AtomicReference<Pollers> other = new AtomicReference<>();
    other.set(
        Pollers.builder(outbox, "shop")
            .on(
                items(),
                (rows, context) ->
                    during.compareAndSet(null, other.get().health().pollers().get(0)))
            .build());
    await().until(() -> other.get().tick("items").outcome() == Outcome.PROCESSED);
    assertThat(during.get().failingSince()).isPresent();
    assertThat(during.get().failure()).hasValue(PollerFailure.HANDLER);
    assertThat(during.get().reason().orElse("")).contains("the index is full");
  }

  @Test
  void anErrorThatNobodyExpectsIsAFailureToo() {
    Pollers pollers = plain();
    source.before(
        Step.FETCH.statement,
        () -> {
          throw new NoClassDefFoundError("a class is missing");
        });
    TickResult result = pollers.tick("items");
    assertThat(result.failure()).hasValue(PollerFailure.FETCH);
    assertThat(result.reason().orElse("")).contains("a class is missing");
    assertThat(pollers.health().pollers().get(0).failingSince()).isPresent();
    assertThat(status().holder()).isEmpty();
    assertThat(pollers.tick("items").outcome()).isEqualTo(Outcome.PROCESSED);
  }

  @Test
  void aPollerThatIsGoneIsTheReason() {
    Pollers pollers =
        Pollers.builder(outbox, "shop")
            .on(items(), (rows, context) -> control.remove("items"))
            .build();
    assertThat(pollers.tick("items").reason().orElse("")).contains("not on record any more");
  }

  @Test
  void aLeaseThatIsOverAndThatNobodyTookStillCommits() {
    Pollers pollers =
        Pollers.builder(outbox, "shop")
            .on(
                items(),
                (rows, context) -> {
                  database.update(
                      "update outbox_poller set lease_until = now() - interval '1 minute'");
                  handled.addAll(rows);
                })
            .build();
    TickResult result = pollers.tick("items");
    assertThat(result.failure()).as(result.toString()).isEmpty();
    assertThat(ids(handled))
        .containsExactlyElementsOf(IntStream.rangeClosed(1, ROWS).boxed().toList());
  }

  @Test
  void aHandlerOfThreeLeasesKeepsItsLease() {
    AtomicReference<TickResult> other = new AtomicReference<>();
    Pollers second = plain();
    Pollers first =
        Pollers.builder(outbox, "shop")
            .on(
                items().batchSize(100),
                (rows, context) -> {
                  long until = System.nanoTime() + Duration.ofSeconds(3).toNanos();
                  while (System.nanoTime() < until) {
                    other.set(second.tick("items"));
                    assertThat(other.get().outcome()).isEqualTo(Outcome.STANDBY);
                    assertThat(context.isLeaseLost()).isFalse();
                    assertThat(context.leaseRemaining()).isPositive();
                  }
                })
            .build();
    TickResult result = first.tick("items");
    assertThat(result.failure()).as(result.toString()).isEmpty();
    assertThat(result.totalProcessed()).isEqualTo(ROWS);
    assertThat(handled).isEmpty();
  }

  @Test
  void theBatchOfANodeThatMayHaveHandledItIsToldAsAnotherAttempt() {
    List<Integer> attempts = new ArrayList<>();
    plain().tick("items");
    TestPollers.insert(database, ROWS + 1, ROWS + 1);
    database.update(
        "update outbox_poller set owner = 'dead', lease_until = now() - interval '1 s'");
    Pollers pollers =
        Pollers.builder(outbox, "shop")
            .on(items(), (rows, context) -> attempts.add(context.attempt()))
            .build();
    pollers.tick("items");
    TestPollers.insert(database, ROWS + 2, ROWS + 2);
    pollers.tick("items");
    assertThat(attempts).containsExactly(2, 1);
  }

  @Test
  void aStateThatIsAwayIsVisibleAndHealsByItself() {
    Pollers pollers = plain();
    started.add(pollers);
    state.goAway();
    pollers.start();
    await().until(() -> pollers.health().pollers().get(0).failure().isPresent());
    PollerHealth health = pollers.health().pollers().get(0);
    assertThat(health.failure()).hasValue(PollerFailure.LEASE);
    assertThat(health.failingSince()).isPresent();
    assertThat(health.healthy()).isFalse();
    state.heal();
    await().until(() -> handled.size() == ROWS && pollers.health().healthy());
  }

  @Test
  void aSourceThatIsAwayIsVisibleAndHealsByItself() {
    Pollers pollers = plain();
    started.add(pollers);
    pollers.start();
    await().until(() -> handled.size() == ROWS);
    source.goAway();
    TestPollers.insert(database, ROWS + 1, ROWS + 1);
    await().until(() -> pollers.health().pollers().get(0).failure().isPresent());
    await().until(() -> status().failingSince().isPresent());
    assertThat(status().reason().orElse("")).contains("no connection to the source could be had");
    assertThat(status().failure().orElseThrow()).isIn(PollerFailure.FETCH, PollerFailure.SOURCE);
    source.heal();
    await().until(() -> handled.size() == ROWS + 1 && pollers.health().healthy());
    await().until(() -> status().failingSince().isEmpty());
  }

  @Test
  void aPositionThatIsNoneIsVisibleAndNotSkipped() {
    Pollers pollers = plain();
    pollers.tick("items");
    handled.clear();
    TestPollers.insert(database, ROWS + 1, ROWS + 1);
    database.update("update outbox_poller set position_cursor = 'garbage'");
    TickResult result = pollers.tick("items");
    assertThat(result.failure()).hasValue(PollerFailure.CHECKPOINT);
    assertThat(result.reason().orElse("")).contains("'garbage' is no bigint", "PollerControl.set");
    assertThat(handled).isEmpty();
    assertThat(status().failure()).hasValue(PollerFailure.CHECKPOINT);
    control.set("items", Position.after((long) ROWS), ANN);
    pollers.tick("items");
    assertThat(ids(handled)).containsExactly(ROWS + 1);
  }

  @Test
  void aPositionOfAnotherTypeIsVisible() {
    Pollers pollers = plain();
    pollers.tick("items");
    control.set("items", Position.after("text"), ANN);
    TickResult result = pollers.tick("items");
    assertThat(result.failure()).hasValue(PollerFailure.SOURCE);
    assertThat(result.reason().orElse("")).contains("of type text and the cursor of type bigint");
  }

  @Test
  void aValueThatHasNoPlaceInAnOrderIsVisible() {
    database.update("drop table if exists odd");
    database.update("create table odd (id int primary key, n numeric not null)");
    database.update("insert into odd values (1, 1), (2, 'NaN')");
    Poller poller =
        Poller.of(
                "odd",
                Source.table("odd"),
                Cursor.sequence("n").assumingThatWritersNeverOverlap(),
                Deletes.ignored())
            .batchSize(1)
            .pollInterval(Duration.ofMillis(10));
    Pollers pollers =
        Pollers.builder(outbox, "shop").on(poller, (rows, context) -> handled.addAll(rows)).build();
    TickResult result = pollers.tick("odd");
    assertThat(result.failure()).hasValue(PollerFailure.NORMALIZE);
    assertThat(result.reason().orElse("")).contains("'NaN' has no place in an order");
  }

  @Test
  void aRowThatAnotherSessionHasLockedIsPassedByAndThenTold() throws Exception {
    Pollers pollers = plain();
    pollers.tick("items");
    try (Connection console = database.plain().getConnection();
        Statement statement = console.createStatement()) {
      console.setAutoCommit(false);
      statement.execute("select * from outbox_poller for update");
      for (int i = 0; i < 9; i++) {
        assertThat(pollers.tick("items").outcome()).isEqualTo(Outcome.STANDBY);
      }
      TickResult told = pollers.tick("items");
      assertThat(told.failure()).hasValue(PollerFailure.LEASE);
      assertThat(told.reason().orElse("")).contains("locked by another session", "pg_locks");
      console.rollback();
    }
    assertThat(pollers.tick("items").outcome()).isEqualTo(Outcome.EMPTY);
    assertThat(pollers.health().pollers().get(0).healthy()).isTrue();
  }

  @Test
  void nothingOfASessionIsLeftChanged() throws Exception {
    try (Connection only = database.plain().getConnection()) {
      SingleConnection single = new SingleConnection(only);
      String before = settings(only);
      TickResult result =
          Pollers.builder(PostgresOutbox.on(single, database.table()), "shop")
              .source(single)
              .transactional(items(), (rows, context, connection) -> {})
              .build()
              .tick("items");
      assertThat(result.totalProcessed()).as(result.toString()).isEqualTo(ROWS);
      assertThat(settings(only)).isEqualTo(before);
      assertThat(only.getAutoCommit()).isTrue();
      assertThat(only.getNetworkTimeout()).isZero();
    }
  }

  private static String settings(Connection connection) throws Exception {
    try (Statement statement = connection.createStatement();
        var rows =
            statement.executeQuery(
                "select string_agg(name || '=' || setting, ' ' order by name) from pg_settings"
                    + " where (source in ('session', 'client') and name <> 'transaction_isolation') or name in ('jit', 'TimeZone',"
                    + " 'statement_timeout', 'lock_timeout', 'default_transaction_isolation',"
                    + " 'enable_seqscan', 'plan_cache_mode', 'DateStyle')")) {
      rows.next();
      return rows.getString(1);
    }
  }

  @Test
  void whatManyNodesWithFaultsHandleTransactionallyCountsOnce() {
    database.update("truncate items");
    List<Pollers> nodes = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      nodes.add(transactional());
    }
    started.addAll(nodes);
    nodes.forEach(Pollers::start);
    for (int i = 1; i <= 100; i++) {
      TestPollers.insert(database, i, i);
      if (i % 10 == 0) {
        state.cutAfter(i % 20 == 0 ? Step.COMMIT.statement : "commit"::equals);
      }
    }
    await().atMost(Duration.ofSeconds(30)).until(() -> database.count("ledger") >= 100);
    nodes.forEach(Pollers::stop);
    assertThat(database.list(Integer.class, "select id from ledger order by id"))
        .containsExactlyElementsOf(IntStream.rangeClosed(1, 100).boxed().toList());
  }
}
