package dev.outbox4j.poller;

import static dev.outbox4j.poller.TestPollers.ANN;
import static dev.outbox4j.poller.TestPollers.ids;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.poller.TickResult.Outcome;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.FaultyDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * When a plain handler sees a row again, with which rows, and as which attempt: each line of the
 * table of docs/table-pollers.md.
 */
@ExtendWith(PostgresExtension.class)
class DuplicateWindowsIT {
  private static final String MOVES_THE_POSITION = "positioned_at = clock_timestamp()";

  private final TestDatabase database;
  private final FaultyDataSource state;
  private final PollerControl control;
  private final List<Call> calls = Collections.synchronizedList(new ArrayList<>());
  private final List<Pollers> started = new ArrayList<>();

  DuplicateWindowsIT(TestDatabase database) {
    this.database = database;
    this.state = new FaultyDataSource(database.plain());
    this.control = PollerControl.of(PostgresOutbox.on(database.plain(), database.table()), "shop");
  }

  /** What a handler was called with. */
  private record Call(int attempt, List<Integer> rows) {
    static Call of(int attempt, Integer... rows) {
      return new Call(attempt, List.of(rows));
    }
  }

  @BeforeEach
  void setUp() {
    TestPollers.setUp(database);
    TestPollers.createItems(database);
    TestPollers.insert(database, 1, 4);
  }

  @AfterEach
  void stop() {
    state.heal();
    started.forEach(Pollers::stop);
  }

  private static Poller items() {
    return TestPollers.items().batchSize(100).lease(Duration.ofSeconds(1));
  }

  private Pollers.Builder node(FaultyDataSource at) {
    return Pollers.builder(PostgresOutbox.on(at, database.table()), "shop")
        .source(database.plain());
  }

  private Pollers plain() {
    return node(state).on(items(), this::note).build();
  }

  private void note(List<RowChange> rows, PollContext context) {
    calls.add(new Call(context.attempt(), ids(rows)));
  }

  /** Ticks until a batch was handled. */
  private static void handle(Pollers pollers) {
    await().until(() -> pollers.tick("items").outcome() == Outcome.PROCESSED);
  }

  private void requireAllAgain(int attempt) {
    assertThat(calls).containsExactly(Call.of(1, 1, 2, 3, 4), Call.of(attempt, 1, 2, 3, 4));
  }

  @Test
  void aNodeThatDiesBeforeThePositionIsWritten() {
    FaultyDataSource dying = new FaultyDataSource(database.plain());
    dying.dieAt(sql -> sql.contains(MOVES_THE_POSITION));
    Pollers first = node(dying).gracefulTimeout(Duration.ZERO).on(items(), this::note).build();
    started.add(first);
    first.start();
    await().until(dying::isSpent);
    handle(plain());
    requireAllAgain(2);
  }

  @Test
  void aHandlerThatThrows() {
    Pollers pollers =
        node(state)
            .on(
                items(),
                (rows, context) -> {
                  note(rows, context);
                  if (calls.size() == 1) {
                    throw new IllegalStateException("after it has done something");
                  }
                })
            .build();
    handle(pollers);
    requireAllAgain(2);
  }

  /** What was handed over with the row at fault may have been handled, too. */
  @Test
  void aHandlerThatThrowsWithIsolation() {
    Pollers pollers =
        node(state)
            .on(
                items().isolateAfter(1),
                (rows, context) -> {
                  note(rows, context);
                  if (ids(rows).contains(3)) {
                    throw new IllegalStateException("poison");
                  }
                })
            .build();
    handle(pollers);
    assertThat(calls)
        .containsExactly(
            Call.of(1, 1, 2, 3, 4),
            Call.of(2, 1, 2),
            Call.of(2, 3, 4),
            Call.of(3, 3),
            Call.of(3, 4));
  }

  @Test
  void aLeaseThatIsLostWhileTheHandlerRuns() {
    Pollers second = plain();
    Pollers first =
        node(state)
            .on(
                items(),
                (rows, context) -> {
                  note(rows, context);
                  TickResult other;
                  do { // as if it had stood still for longer than its lease, which a renewal mends
                    database.update(
                        "update outbox_poller set lease_until = now() - interval '1 s'");
                    other = CompletableFuture.supplyAsync(() -> second.tick("items")).join();
                  } while (other.outcome() == Outcome.STANDBY);
                  assertThat(other.totalProcessed()).isEqualTo(4);
                })
            .build();
    TickResult result = first.tick("items");
    assertThat(result.failure()).as(result.toString()).hasValue(PollerFailure.COMMIT);
    requireAllAgain(2);
  }

  @Test
  void anOutboxThatIsAwayForLongerThanThePositionIsTriedToBeWritten() {
    Pollers pollers =
        node(state)
            .patience(Duration.ofMillis(1)) // so that it is the lease
            .on(
                items(),
                (rows, context) -> {
                  note(rows, context);
                  if (calls.size() == 1) {
                    state.goAway();
                  }
                })
            .build();
    TickResult result = pollers.tick("items");
    assertThat(result.failure()).as(result.toString()).hasValue(PollerFailure.COMMIT);
    state.heal();
    handle(pollers);
    requireAllAgain(2);
  }

  @Test
  void anOutboxThatIsAwayForLess() {
    state.cutBefore(sql -> sql.contains(MOVES_THE_POSITION));
    Pollers pollers = plain();
    TickResult result = pollers.tick("items");
    assertThat(result.totalProcessed()).as(result.toString()).isEqualTo(4);
    assertThat(state.isSpent()).isTrue();
    assertThat(calls).containsExactly(Call.of(1, 1, 2, 3, 4));
  }

  @Test
  void anAnswerToTheWriteThatIsLost() {
    state.cutAfter(sql -> sql.contains(MOVES_THE_POSITION));
    Pollers pollers = plain();
    TickResult result = pollers.tick("items");
    assertThat(result.totalProcessed()).as(result.toString()).isEqualTo(4);
    assertThat(state.isSpent()).isTrue();
    assertThat(pollers.tick("items").outcome()).isEqualTo(Outcome.EMPTY);
    assertThat(calls).containsExactly(Call.of(1, 1, 2, 3, 4));
  }

  @Test
  void aHandlerThatIsInterruptedAsItsNodeStops() {
    CountDownLatch begun = new CountDownLatch(1);
    Pollers first =
        node(state)
            .gracefulTimeout(Duration.ZERO)
            .on(
                items(),
                (rows, context) -> {
                  note(rows, context);
                  begun.countDown();
                  assertThat(new CountDownLatch(1).await(60, TimeUnit.SECONDS)).isFalse();
                })
            .build();
    started.add(first);
    first.start();
    await().until(() -> begun.getCount() == 0);
    first.stop();
    handle(plain());
    requireAllAgain(2);
  }

  @Test
  void aPositionThatIsSetBack() {
    Pollers pollers = plain();
    handle(pollers);
    control.set("items", Position.after(2L), ANN);
    handle(pollers);
    assertThat(calls).containsExactly(Call.of(1, 1, 2, 3, 4), Call.of(1, 3, 4));
  }

  @Test
  void aPollerThatIsReset() {
    Pollers pollers = plain();
    handle(pollers);
    control.reset("items", ANN);
    handle(pollers);
    requireAllAgain(1);
  }

  @Test
  void aRowThatIsRedrivenAfterItHadSucceededInPart() {
    database.update("delete from items where id > 1");
    Pollers pollers =
        node(state)
            .on(
                items().isolateAfter(1),
                (rows, context) -> {
                  note(rows, context);
                  if (!context.isRedriven()) {
                    throw new IllegalStateException("after it has done something");
                  }
                })
            .build();
    assertThat(pollers.tick("items").quarantined()).isEqualTo(1);
    control.redrive("items", control.quarantine("items", 1).get(0).id(), ANN);
    handle(pollers);
    assertThat(calls).containsExactly(Call.of(1, 1), Call.of(2, 1));
  }
}
