package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.testing.CapturedLogs;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What claims ask for, when they are made, and what is said of them. */
class ClaimsTest extends EngineFixture {
  /** Longer than any poll before the announcement of a sleep is settled. */
  private static final long SETTLED_WAIT = TimeUnit.MILLISECONDS.toNanos(500);

  private final List<ClaimRequest> requests = new CopyOnWriteArrayList<>();
  private final AtomicInteger handled = new AtomicInteger();
  private final CountDownLatch release = new CountDownLatch(1);
  private volatile long claimedAt;

  @BeforeEach
  void record() {
    store.beforeEachClaim(
        request -> {
          requests.add(request);
          claimedAt = System.nanoTime();
        });
  }

  @Test
  void theFirstClaimAsksForARowForEachWorkerUnderTheLeaseInTheSubscribersName() {
    start(builder().workers(7).lease(Duration.ofSeconds(42)).on("t", this::handle));
    await().until(() -> !requests.isEmpty());
    ClaimRequest first = requests.get(0);
    assertThat(first.queue()).isEqualTo("orders");
    assertThat(first.limit()).isEqualTo(7);
    assertThat(first.lease()).isEqualTo(Duration.ofSeconds(42));
    assertThat(first.owner()).startsWith("orders/");
    assertThat(first.maxBytes()).isEqualTo(mostBytes());
  }

  @Test
  void claimsAskForAsManyRowsAsFitByTheSizeOfThoseBefore() {
    publish(new byte[(int) (mostBytes() * 2 / 5)]);
    start(builder().workers(8).on("t", this::awaitRelease));
    // 1 and one and a half times what fits of that size: 0.6 of the bytes are left for 0.4
    await().until(() -> last().limit() == 3);
    assertThat(last().maxBytes()).isLessThanOrEqualTo(mostBytes() * 3 / 5 + 1);
    release.countDown();
    await().until(() -> last().limit() == 4);
    publish(new byte[] {1});
    publish(new byte[] {2});
    await().until(() -> handled.get() == 3);
    publish(new byte[] {3});
    publish(new byte[] {4});
    await().until(() -> last().limit() >= 7); // the average moves by a quarter of each answer's
  }

  @Test
  void aRoundThatFillsTheRoomClaimsFromNoFurtherQueueUntilThereIsRoomAgain() {
    publish("t", 3);
    store.publish(OutboxMessage.to("bills").type("t").body("x").build());
    start(builder().queues("bills").workers(3).on("t", this::awaitRelease));
    await().until(() -> subscriber.health().running() == 3);
    assertThat(requests).extracting(ClaimRequest::queue).containsExactly("orders");
    release.countDown();
    await().until(() -> handled.get() == 4);
    assertThat(requests).extracting(ClaimRequest::queue).contains("bills");
  }

  @Test
  void observersAreToldHowManyRowsAClaimGaveAndHowLongItTook() {
    List<Duration> took = new CopyOnWriteArrayList<>();
    publish("t", 3);
    store.beforeEachClaim(request -> LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(40)));
    start(
        builder()
            .workers(3)
            .events(
                new SubscriberEvents() {
                  @Override
                  public void claimed(String name, int rows, Duration time) {
                    if (rows == 3) {
                      took.add(time);
                    }
                  }
                })
            .on("t", this::handle));
    await().until(() -> !took.isEmpty());
    assertThat(took)
        .singleElement()
        .satisfies(
            time -> assertThat(time).isBetween(Duration.ofMillis(40), Duration.ofSeconds(20)));
  }

  @Test
  void aSubscriberWithoutRoomPassesTheWatchAndTakesItAgainWhenItHasRoom() {
    startListening(1, this::awaitRelease);
    await().until(this::asleep);
    assertThat(store.calls("pass")).isZero();
    publish("t");
    await().until(() -> store.calls("pass") == 1);
    requests.clear();
    release.countDown();
    await().until(this::asleep);
    assertThat(handled).hasValue(1);
    assertThat(store.calls("pass")).isEqualTo(1);
  }

  @Test
  void aWatchThatCannotBePassedIsNotedAndHoldsUpNothing() {
    store.beforeEach(
        operation -> {
          if (operation.equals("pass")) {
            throw new OutboxStoreException("no way", Fault.TRANSIENT, false, null);
          }
        });
    startListening(1, this::awaitRelease);
    await().until(this::asleep);
    publish("t", 2);
    await().until(() -> subscriber.health().lastFailure().orElse("").equals("pass: no way"));
    assertThat(subscriber.health().failing()).isFalse();
    release.countDown();
    await().until(() -> handled.get() == 2);
  }

  @Test
  void aSleeperThatIsWokenClaimsTheRowsAloneAndThenLooksAhead() {
    startListening(4, this::handle);
    await().until(this::asleep);
    await().until(() -> System.nanoTime() - claimedAt > SETTLED_WAIT);
    requests.clear();
    publish("t");
    await().until(() -> handled.get() == 1);
    await().until(() -> requests.stream().anyMatch(request -> looksAhead(request.idle())));
    assertThat(requests.get(0).idle()).isEqualTo(Idle.UNCHANGED);
  }

  @Test
  void aSubscriberWhoseListenBeginsAnewSaysAgainThatItSleeps() {
    NotificationSource source = store.notifications();
    NotificationSource.Listener[] listeners = new NotificationSource.Listener[1];
    start(
        longPolls()
            .listen(
                (channel, listener) -> {
                  listeners[0] = listener;
                  return source.listen(channel, listener);
                })
            .on("t", this::handle));
    await().until(this::asleep);
    await().until(() -> !last().idle().mode().equals(Idle.Mode.SLEEP));
    requests.clear();
    listeners[0].connected();
    publish("t"); // wakes it, wherever it waits
    await().until(this::asleep);
  }

  @Test
  void aSubscriberWithoutListenLooksAheadAndAnnouncesNothing() {
    start(builder().poll(Duration.ofMillis(5), Duration.ofMillis(10)).on("t", this::handle));
    await().until(() -> requests.size() > 20);
    assertThat(requests).allMatch(request -> request.idle().equals(Idle.LOOK_AHEAD));
  }

  @ParameterizedTest
  @CsvSource({"TRANSIENT, true, 4", "TRANSIENT, false, 8"})
  void theNextClaimIsHalfAsLargeIfTheAnswerMayHaveBeenTooLarge(
      Fault fault, boolean outcomeUnknown, int next) {
    AtomicBoolean failed = new AtomicBoolean();
    store.beforeEachClaim(
        request -> {
          requests.add(request);
          if (failed.compareAndSet(false, true)) {
            throw new OutboxStoreException("down", fault, outcomeUnknown, null);
          }
        });
    start(builder().workers(8).on("t", this::handle));
    await().until(() -> requests.size() >= 2);
    assertThat(requests.get(0).limit()).isEqualTo(8);
    assertThat(requests.get(1).limit()).isEqualTo(next);
  }

  @Test
  void rowsWhoseLeaseIsRefusedAreNamedInALineAndInTheHealth() {
    publish("t");
    long id = store.rows().get(0).id();
    store.refuseLease(id);
    try (CapturedLogs logs = new CapturedLogs()) {
      start(builder().on("t", this::handle));
      String told =
          "row(s) ["
              + id
              + "] of queue 'orders'%s look for a trigger or constraint of yours on the table";
      await()
          .untilAsserted(
              () ->
                  assertThat(subscriber.health().lastFailure())
                      .hasValue("claim: the server refuses to lease " + told.formatted(":")));
      assertThat(subscriber.health().failing()).isFalse();
      logs.awaitLine(line -> line.startsWith("ERROR"));
      assertThat(logs.lines())
          .filteredOn(line -> line.startsWith("ERROR"))
          .allMatch(line -> line.contains(told.formatted("; they are left alone:")));
    }
    assertThat(handled).hasValue(0);
  }

  @Test
  void aSweepThatTakesTooLongIsToldWithWhatToLookFor() {
    store.claimCost(
        range ->
            range.equals(ClaimRequest.Range.ALL) ? Duration.ofSeconds(20) : Duration.ofMillis(10));
    publish("t", 3);
    try (CapturedLogs logs = new CapturedLogs()) {
      start(builder().on("t", this::handle));
      await().until(() -> handled.get() == 3);
      await()
          .until(
              () ->
                  logs.lines().stream()
                      .anyMatch(
                          line ->
                              line.startsWith("WARN")
                                  && line.contains("looking through queue 'orders' as a whole")));
    }
  }

  @Test
  void anExecutorThatTakesNoHandlersIsToldByHealthUntilItDoes() {
    AtomicBoolean full = new AtomicBoolean(true);
    publish("t", 2);
    start(
        builder()
            .executor(
                task -> {
                  if (full.get()) {
                    throw new RejectedExecutionException("full");
                  }
                  new Thread(task).start();
                })
            .workers(2)
            .on("t", this::handle));
    await()
        .until(
            () ->
                subscriber
                    .health()
                    .lastFailure()
                    .orElse("")
                    .equals("claim: the executor takes no handlers; rows wait for it"));
    assertThat(subscriber.health().failing()).isTrue();
    full.set(false);
    await().until(() -> handled.get() == 2);
    await().until(() -> !subscriber.health().failing());
  }

  @Test
  void aStopTakesTheSubscribersNameOffOnce() {
    start(builder().on("t", this::handle));
    await().until(() -> !requests.isEmpty());
    assertThat(store.calls("forget")).isZero();
    subscriber.stop();
    assertThat(store.calls("forget")).isEqualTo(1);
  }

  @Test
  void aNameThatCannotBeTakenOffHoldsUpNoStop() {
    store.beforeEach(
        operation -> {
          if (operation.equals("forget")) {
            throw new OutboxStoreException("no way", Fault.TRANSIENT, false, null);
          }
        });
    start(builder().on("t", this::handle));
    await().until(() -> !requests.isEmpty());
    try (CapturedLogs logs = new CapturedLogs()) {
      subscriber.stop();
      assertThat(logs.lines()).noneMatch(line -> line.startsWith("WARN"));
    }
    assertThat(subscriber.health().state()).isEqualTo(SubscriberState.STOPPED);
  }

  @Test
  void rowsOfAClaimThatIsAnsweredAfterTheDrainAreGivenBack() {
    CountDownLatch asked = new CountDownLatch(1);
    CountDownLatch answer = new CountDownLatch(1);
    AtomicBoolean slow = new AtomicBoolean();
    store.beforeEachClaim(
        request -> {
          if (slow.get()) {
            asked.countDown();
            awaitIgnoringInterrupts(answer);
          }
        });
    start(builder().gracefulTimeout(Duration.ofMillis(100)).on("t", this::handle));
    slow.set(true);
    publish("t", 3);
    await().until(() -> asked.getCount() == 0);
    subscriber.stop();
    answer.countDown();
    await().until(() -> store.calls("release") == 1);
    await().until(() -> store.rows().stream().allMatch(row -> row.leaseUntil() == null));
    assertThat(store.rows())
        .hasSize(3)
        .allMatch(row -> row.leaseToken() == 1 && row.deliveries() == 0);
    assertThat(handled).hasValue(0);
    await().until(() -> subscriber.health().inFlight() == 0);
  }

  private void handle(Payload body, Delivery delivery) {
    handled.incrementAndGet();
  }

  private void awaitRelease(Payload body, Delivery delivery) throws InterruptedException {
    release.await();
    handled.incrementAndGet();
  }

  private void startListening(int workers, TypedHandler<Payload> handler) {
    start(longPolls().workers(workers).listen(store.notifications()).on("t", handler));
  }

  /** Long enough that what a test sees was told, not polled. */
  private OutboxSubscriber.Builder longPolls() {
    return builder().poll(Duration.ofMillis(10), Duration.ofMinutes(10));
  }

  private void publish(byte[] body) {
    store.publish(OutboxMessage.to("orders").type("t").body(body).build());
  }

  private ClaimRequest last() {
    return requests.isEmpty()
        ? new ClaimRequest(
            "none", ClaimRequest.Range.ALL, 1, 1, Duration.ZERO, "me", Idle.UNCHANGED, null)
        : requests.get(requests.size() - 1);
  }

  private boolean asleep() {
    return requests.stream().anyMatch(request -> request.idle().mode() == Idle.Mode.SLEEP);
  }

  private static boolean looksAhead(Idle idle) {
    return idle.mode() == Idle.Mode.LOOK_AHEAD || idle.mode() == Idle.Mode.SLEEP;
  }

  private static long mostBytes() {
    return Math.min(32L << 20, Runtime.getRuntime().maxMemory() / 16);
  }
}
