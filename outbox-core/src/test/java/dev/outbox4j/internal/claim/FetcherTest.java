package dev.outbox4j.internal.claim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.Payload;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.Loop;
import dev.outbox4j.internal.Warnings;
import dev.outbox4j.internal.run.DeliveryTask;
import dev.outbox4j.internal.run.OutcomeApplier;
import dev.outbox4j.internal.run.Rows;
import dev.outbox4j.internal.run.WorkerPool;
import dev.outbox4j.internal.settings.HandlerTable;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.settle.Completer;
import dev.outbox4j.internal.state.Buffer;
import dev.outbox4j.internal.state.ConnectionBudget;
import dev.outbox4j.internal.state.EngineHealth;
import dev.outbox4j.internal.state.EngineParts;
import dev.outbox4j.internal.state.Events;
import dev.outbox4j.internal.state.HeldRows;
import dev.outbox4j.internal.state.PausedQueues;
import dev.outbox4j.internal.state.Permits;
import dev.outbox4j.internal.state.Prefetch;
import dev.outbox4j.internal.state.Room;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.Idle.Mode;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Single turns of a fetcher, on the test's thread and by the test's clock. */
class FetcherTest {
  private static final long MILLI = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
  private static final Duration LEASE = Duration.ofMinutes(1);
  private static final String OWNER = "me";

  private final InMemoryStore store = new InMemoryStore(Clock.systemUTC());
  private final List<ClaimRequest> requests = new ArrayList<>();
  private final Deque<Runnable> offered = new ArrayDeque<>();
  private final AtomicInteger signals = new AtomicInteger();
  private boolean executorIsFull;
  private long now = System.nanoTime();

  private ListenState listen;
  private Shared shared;
  private Prefetch prefetch;
  private Fetcher fetcher;

  // room

  @Test
  void aSleeperWithoutRoomIsCountedOnForFiveMillisecondsAndThenPassesTheWatchOnce() {
    fetcher(1, 100, "orders");
    fallAsleep();
    publish("orders", 1);
    assertThat(turn()).isZero();

    assertThat(turn()).isEqualTo(RoomWait.PASS_AFTER);
    now += RoomWait.PASS_AFTER - 1;
    assertThat(turn()).isEqualTo(1);
    assertThat(store.calls("pass")).isZero();
    now += 1;
    assertThat(turn()).isEqualTo(RoomWait.LONGEST);
    assertThat(store.calls("pass")).isEqualTo(1);
    assertThat(heard("orders")).as("what is for whoever is on watch").isFalse();
    assertThat(turn()).isEqualTo(RoomWait.LONGEST);
    assertThat(store.calls("pass")).isEqualTo(1);
  }

  @Test
  void eachWaitForRoomBeginsAnew() {
    fetcher(1, 100, "orders");
    fallAsleep();
    publish("orders", 1);
    turn();
    turn();
    runHandlers();
    now += SECOND;
    publish("orders", 1);
    turn();
    assertThat(turn()).isEqualTo(RoomWait.PASS_AFTER);
    assertThat(store.calls("pass")).isZero();
  }

  @Test
  void whoeverIsNotOnWatchHasNoneToPass() {
    fetcher(1, 100, "orders");
    publish("orders", 1);
    turn();
    assertThat(turn()).isEqualTo(RoomWait.LONGEST);
    now += SECOND;
    assertThat(turn()).isEqualTo(RoomWait.LONGEST);
    assertThat(store.calls("pass")).isZero();
  }

  @Test
  void nothingIsClaimedForAnExecutorThatRefusesUntilItTakesWhatWaits() {
    fetcher(3, 100, "orders");
    executorIsFull = true;
    publish("orders", 1);
    turn();
    assertThat(turn()).isEqualTo(RoomWait.LONGEST);
    assertThat(health()).isEqualTo("claim: the executor takes no handlers; rows wait for it");
    int before = requests.size();
    executorIsFull = false;
    assertThat(turn()).isZero();
    assertThat(offered).hasSize(1);
    assertThat(requests).hasSize(before);
    turn();
    assertThat(requests).hasSize(before + 1);
  }

  @Test
  void rowsThatWaitForARefusingExecutorKeepTheWaitShort() {
    fetcher(4, 100, "orders");
    executorIsFull = true;
    publish("orders", 1);
    turn();
    executorIsFull = false;
    store.lock(store.rows().get(0).id());
    turn();
    offered.clear(); // dropped, so the row still waits
    assertThat(turn()).isBetween(1L, RoomWait.LONGEST);
  }

  // pauses

  @Test
  void aPauseThatCameAndWentBetweenTwoTurnsIsFollowedByAClaimOfWhatWasGivenBackForIt() {
    fetcher(4, 100, "orders");
    turn();
    assertThat(turn()).isGreaterThanOrEqualTo(30 * SECOND);
    shared.pauses().set(Set.of("orders"));
    shared.pauses().set(Set.of());
    int before = requests.size();
    assertThat(turn()).isLessThan(2 * SECOND);
    assertThat(requests).hasSize(before + 1);
  }

  // handlers

  @Test
  void rowsAreHandedToWorkersBeforeTheNextQueueIsClaimedFrom() {
    fetcher(4, 100, "orders", "bills");
    publish("orders", 1);
    List<Integer> handedOver = new ArrayList<>();
    store.beforeEachClaim(request -> handedOver.add(offered.size()));
    turn();
    assertThat(handedOver).containsExactly(0, 1);
  }

  @Test
  void runnersThatTheExecutorDroppedAreOfferedAgainThoughNothingMoreIsClaimed() {
    fetcher(4, 100, Duration.ofMillis(20), "orders");
    publish("orders", 1);
    turn();
    assertThat(offered).isNotEmpty();
    offered.clear();
    store.lock(store.rows().get(0).id()); // its short lease ends, and it is not to be claimed again
    await()
        .until(
            () -> {
              turn();
              return !offered.isEmpty();
            });
  }

  @Test
  void onlyRowsWhoseHandlersHaveEndedCountForTheRateThatIsSeen() {
    fetcher(16, 100, "orders");
    publish("orders", 4);
    turn();
    now += 10 * MILLI;
    publish("orders", 4);
    turn();
    assertThat(prefetch.target()).isZero();
    runHandlers();
    now += 10 * MILLI;
    turn();
    assertThat(prefetch.target()).isBetween(19, 21); // half of 8 in 10 ms, for 50 ms
  }

  @Test
  void moreIsHeldReadyOnlyIfWorkersHadNothingLeftAndTheClaimWasFull() {
    fetcher(16, 100, "orders");
    turn();
    publish("orders", 8);
    now += 10 * MILLI;
    turn();
    runHandlers();
    now += 10 * MILLI;
    turn();
    assertThat(prefetch.target()).as("no rows were left").isBetween(19, 21);

    publish("orders", 200);
    now += 10 * MILLI;
    turn();
    assertThat(prefetch.target()).as("four times as many").isBetween(76, 84);

    now += 10 * MILLI;
    turn();
    assertThat(prefetch.target()).as("by the rate alone: rows were waiting").isBetween(4, 6);
  }

  // several queues

  @Test
  void theOnlyQueueIsTriedAgainAtOnceSinceTheLoopPausesForIt() {
    fetcher(4, 100, "orders");
    fail("orders");
    assertThatThrownBy(this::turn).isInstanceOf(OutboxStoreException.class);
    assertThatThrownBy(this::turn).isInstanceOf(OutboxStoreException.class);
    assertThat(requests).hasSize(2);
  }

  @Test
  void queuesThatHaveAllFailedJustNowAreNotAskedAndTheTurnPauses() {
    fetcher(4, 100, "orders", "bills");
    fail("orders", "bills");
    assertThatThrownBy(this::turn).isInstanceOf(OutboxStoreException.class);
    assertThat(requests).hasSize(2);
    long before = System.nanoTime();
    assertThat(turn()).isPositive();
    assertThat(System.nanoTime() - before).isBetween(2 * MILLI, SECOND);
    assertThat(requests).hasSize(2);
    assertThat(shared.health().lastClaimAt()).isNull();
  }

  @Test
  void aQueueWhoseClaimFailsHoldsUpNoOther() {
    fetcher(4, 100, "orders", "bills");
    fail("orders");
    assertThatCode(this::turn).doesNotThrowAnyException();
    assertThat(requests).extracting(ClaimRequest::queue).containsExactly("orders", "bills");
    assertThat(shared.health().lastClaimAt()).isNotNull();
    assertThat(shared.health().failing()).isTrue();
    long before = System.nanoTime();
    turn();
    assertThat(System.nanoTime() - before).isLessThan(SECOND);
    assertThat(requests).extracting(ClaimRequest::queue).endsWith("bills");
    assertThat(requests).hasSize(3);
  }

  @Test
  void afterAFullClaimOfAnyQueueNothingIsLookedAheadFor() {
    fetcher(4, 1, "orders", "bills");
    publish("orders", 1);
    assertThat(turn()).isZero();
    runHandlers();
    turn();
    assertThat(requests).hasSize(4);
    assertThat(requests.subList(0, 2)).extracting(ClaimRequest::idle).containsOnly(Idle.LOOK_AHEAD);
    assertThat(requests.subList(2, 4)).extracting(ClaimRequest::idle).containsOnly(Idle.UNCHANGED);
  }

  @Test
  void anErrorInOneQueueMakesTheOthersSayAnewThatTheySleep() {
    fetcher(4, 100, "orders", "bills");
    fallAsleep();
    store.beforeEachClaim(
        request -> {
          if (request.queue().equals("bills")) {
            throw new LinkageError("a class is missing");
          }
        });
    assertThatThrownBy(this::turn)
        .isInstanceOfSatisfying(LinkageError.class, error -> fetcher.survive(error));
    assertThat(health()).isEqualTo("claim: a class is missing");
    record();
    turn();
    assertThat(requests)
        .filteredOn(request -> request.queue().equals("orders"))
        .last()
        .satisfies(request -> assertThat(request.idle().mode()).isEqualTo(Mode.SLEEP));
  }

  // watch and LISTEN

  @Test
  void notificationsOfAQueueAreHeardFromTheClaimThatSaysItSleepsOn() {
    fetcher(4, 100, "orders");
    listen.connected();
    List<Boolean> heard = new ArrayList<>();
    store.beforeEachClaim(request -> heard.add(heard("orders")));
    turn();
    turn();
    turn();
    assertThat(heard).containsExactly(false, true, true);
    assertThat(heard("orders")).isTrue();
  }

  @Test
  void whoeverFindsTheWatchTakenHearsNoNotifications() {
    fetcher(4, 100, "orders");
    listen.connected();
    othersTakeTheWatch();
    turn();
    turn();
    assertThat(last().idle().mode()).isEqualTo(Mode.SLEEP);
    assertThat(heard("orders")).isFalse();
  }

  @Test
  void aCallByNameMakesASubscriberInReserveTakeTheWatchWithItsNextClaim() {
    fetcher(4, 100, "orders");
    listen.connected();
    othersTakeTheWatch();
    turn();
    turn();
    store.pass("orders", "another");
    listen.notified(NotificationSource.BY_NAME + OWNER);
    turn();
    assertThat(last().idle().mode()).isEqualTo(Mode.SLEEP);
    assertThat(heard("orders")).isTrue();
  }

  // waits

  @Test
  void afterAClaimThatGaveRowsTheNextComesTwoMillisecondsLater() {
    fetcher(4, 100, "orders");
    publish("orders", 1);
    long before = System.nanoTime();
    assertThat(turn()).isZero();
    assertThat(System.nanoTime() - before).isBetween(2 * MILLI, SECOND);
  }

  @Test
  void inReserveAClaimThatGaveRowsIsFollowedByAWait() {
    fetcher(4, 100, "orders");
    listen.connected();
    othersTakeTheWatch();
    turn();
    turn();
    publish("orders", 1);
    assertThat(turn()).isPositive();
    assertThat(offered).isNotEmpty();
  }

  @Test
  void aRowThatThisSubscriberMadeDueAgainEndsTheWait() {
    fetcher(4, 100, "orders");
    assertThat(turn()).isGreaterThan(30 * SECOND);
    shared.room().dueAgainIn(3 * MILLI);
    assertThat(turn()).isBetween(1L, 20 * SECOND);
  }

  @Test
  void aStatementThatNeverComesBackIsToldByHealth() {
    fetcher(4, 100, "orders");
    shared
        .connections()
        .spendOnRenewal(
            SECOND,
            () -> {
              now += 61 * SECOND;
              return turn();
            });
    assertThat(health()).startsWith("statement: one has not come back for 61 s");
    turn();
    assertThat(shared.health().failing()).isFalse();
  }

  // stop

  @Test
  void theTurnAfterAStopTakesTheNameOffAndIsTheLast() {
    fetcher(4, 100, "orders");
    fallAsleep();
    fetcher.stop();
    int before = requests.size();
    assertThat(turn()).isEqualTo(Loop.END);
    assertThat(store.calls("forget")).isEqualTo(1);
    assertThat(store.sleeps(OWNER, "orders")).isFalse();
    assertThat(requests).hasSize(before);
  }

  private void fetcher(int workers, int batchSize, String... queues) {
    fetcher(workers, batchSize, LEASE, queues);
  }

  private void fetcher(int workers, int batchSize, Duration lease, String... queues) {
    EngineThreads threads = new EngineThreads("orders", FetcherTest.class.getClassLoader());
    Events events = new Events("orders", threads, List.of());
    HeldRows registry = new HeldRows();
    Buffer buffer = new Buffer();
    Permits permits = new Permits(workers);
    prefetch = new Prefetch(workers, batchSize);
    EngineHealth health = new EngineHealth("orders", events);
    shared =
        new Shared(
            "orders",
            "orders/1",
            threads,
            new ConnectionBudget(lease, Duration.ofSeconds(15), 2, () -> now),
            registry,
            new Room(registry, buffer, permits, prefetch, batchSize, 1 << 20),
            health,
            events,
            new Warnings("orders"),
            PausedQueues.none());
    SubscriberSettings settings = settings(workers, batchSize, lease, List.of(queues));
    Completer completer = new Completer(settings, shared);
    DeliveryTask task =
        new DeliveryTask(
            settings,
            new OutcomeApplier("orders", settings.failing()),
            completer,
            shared,
            prefetch,
            buffer);
    WorkerPool pool = new WorkerPool(settings, shared, permits, buffer, prefetch, task);
    listen = new ListenState("orders", OWNER, null, events, health);
    fetcher =
        new Fetcher(
            settings,
            OWNER,
            shared,
            new Rows(buffer, pool, prefetch),
            completer,
            listen,
            () -> now);
    listen.signal(signals::incrementAndGet);
    record();
  }

  private SubscriberSettings settings(
      int workers, int batchSize, Duration lease, List<String> queues) {
    HandlerTable.Builder handlers = new HandlerTable.Builder();
    handlers.add("t", Payload.class, FetcherTest::handle);
    return new SubscriberSettings(
        "orders",
        queues,
        store,
        null,
        null,
        handlers.build(),
        List.of(),
        new SubscriberSettings.Work(workers, this::execute, false, null),
        new SubscriberSettings.Claiming(
            batchSize, lease, Duration.ofMinutes(1), Duration.ofMinutes(10), Duration.ofMinutes(5)),
        EngineParts.failing(),
        new SubscriberSettings.Stopping(LEASE, false));
  }

  /** Or the second that the sweep took would be taken twice, and be told as a failure. */
  @Test
  void theClaimsThatFollowASweepWhichWasEndedSayNothingToPublishers() {
    fetcher(4, 100, "orders");
    listen.connected();
    publish("orders", 1);
    turn();
    runHandlers();
    List<ClaimRequest> after = new ArrayList<>();
    store.beforeEachClaim(
        request -> {
          boolean limited = request.timeLimit() != null;
          boolean sweep = limited && request.range().above() == null;
          if (sweep) {
            after.clear();
            throw new OutboxStoreException("ended", Fault.TIMEOUT, false, null);
          }
          after.add(request);
        });
    for (int i = 0; i < 20 && after.stream().noneMatch(each -> each.timeLimit() != null); i++) {
      now += Duration.ofSeconds(2).toNanos();
      turn();
    }
    assertThat(after.size()).isGreaterThan(1);
    assertThat(after.subList(0, 2))
        .allSatisfy(each -> assertThat(each.idle().mode()).isEqualTo(Idle.Mode.UNCHANGED));
    assertThat(after.get(1).timeLimit()).isNotNull();
    assertThat(shared.health().failing()).isFalse();
  }

  private static void handle(Payload body, Delivery delivery) {}

  /** Takes runners, which begin when the test runs them. */
  private void execute(Runnable runner) {
    if (executorIsFull) {
      throw new RejectedExecutionException("full");
    }
    offered.add(runner);
  }

  private void runHandlers() {
    for (Runnable runner = offered.poll(); runner != null; runner = offered.poll()) {
      runner.run();
    }
  }

  private void record() {
    store.beforeEachClaim(requests::add);
  }

  private long turn() {
    return fetcher.turn(false);
  }

  private void fallAsleep() {
    listen.connected();
    turn();
    turn();
    assertThat(store.sleeps(OWNER, "orders")).isTrue();
  }

  private void othersTakeTheWatch() {
    store.claim(
        new ClaimRequest(
            "orders",
            ClaimRequest.Range.ALL,
            1,
            1,
            LEASE,
            "another",
            Idle.sleep(LEASE, null),
            null));
    requests.clear();
  }

  private boolean heard(String queue) {
    int before = signals.get();
    listen.notified(queue);
    return signals.get() > before;
  }

  private void fail(String... queues) {
    store.beforeEachClaim(
        request -> {
          requests.add(request);
          if (List.of(queues).contains(request.queue())) {
            throw new OutboxStoreException("down", Fault.TRANSIENT, false, null);
          }
        });
  }

  private void publish(String queue, int count) {
    for (int i = 0; i < count; i++) {
      store.publish(OutboxMessage.to(queue).type("t").body("x").build());
    }
  }

  private ClaimRequest last() {
    return requests.get(requests.size() - 1);
  }

  private String health() {
    EngineHealth.Failure failure = shared.health().lastFailure();
    return failure == null ? "" : failure.text();
  }
}
