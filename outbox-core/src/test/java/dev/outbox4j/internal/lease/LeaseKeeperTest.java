package dev.outbox4j.internal.lease;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.run.HandlerTimeouts;
import dev.outbox4j.internal.run.OutcomeApplier;
import dev.outbox4j.internal.run.StuckWorkers;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.settle.Completer;
import dev.outbox4j.internal.state.ConnectionBudget;
import dev.outbox4j.internal.state.EngineHealth;
import dev.outbox4j.internal.state.EngineHealth.Operation;
import dev.outbox4j.internal.state.EngineParts;
import dev.outbox4j.internal.state.Events;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.test.SettableClock;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What the lease keeper does in each round, and how often. */
class LeaseKeeperTest {
  private static final Duration LEASE = Duration.ofMillis(1_600);
  private static final Duration TICK = LEASE.dividedBy(8);

  private final EngineThreads threads =
      new EngineThreads("kept", LeaseKeeperTest.class.getClassLoader());
  private final Events events = new Events("kept", threads, List.of());
  private final AtomicLong clock = new AtomicLong();
  private final ConnectionBudget connections =
      new ConnectionBudget(LEASE, Duration.ofSeconds(1), 2, clock::get);
  private final SettableClock time = new SettableClock();
  private final Shared shared = EngineParts.shared(threads, events, connections, time);
  private final SubscriberSettings settings =
      EngineParts.settings(
          new InMemoryStore(Clock.systemUTC()),
          new SubscriberSettings.Claiming(100, LEASE, LEASE, LEASE, LEASE));
  private final HandlerTimeouts timeouts =
      new HandlerTimeouts(
          settings,
          shared,
          new Completer(settings, shared),
          new OutcomeApplier("kept", settings.failing()));
  private final List<Long> rounds = new CopyOnWriteArrayList<>();
  private final AtomicInteger looks = new AtomicInteger();
  private final LeaseKeeper keeper =
      new LeaseKeeper(
          settings,
          shared,
          List.of(() -> rounds.add(System.nanoTime())),
          timeouts,
          new StuckWorkers(
              "kept",
              shared.registry(),
              1,
              () -> looks.incrementAndGet() < 0,
              () -> null,
              System.nanoTime()));

  @AfterEach
  void stop() {
    keeper.stop();
    keeper.join(System.nanoTime() + TimeUnit.SECONDS.toNanos(10));
    timeouts.shutdown();
  }

  @Test
  void aRoundIsTakenEachEighthOfTheLease() {
    keeper.start();
    await().until(() -> rounds.size() >= 4);
    long shortest = Long.MAX_VALUE;
    for (int i = 1; i < 4; i++) {
      shortest = Math.min(shortest, rounds.get(i) - rounds.get(i - 1));
    }
    assertThat(Duration.ofNanos(shortest)).isBetween(TICK, TICK.multipliedBy(3));
  }

  @Test
  void eachRoundLooksForWorkersThatAreStuckAndForStatementsThatNeverCameBack() throws Exception {
    CountDownLatch driver = new CountDownLatch(1);
    CompletableFuture<Boolean> lost =
        CompletableFuture.supplyAsync(
            () ->
                connections.spend(
                    () -> {
                      clock.addAndGet(Duration.ofMinutes(2).toNanos());
                      return awaited(driver);
                    }));
    await().until(() -> clock.get() > 0);
    keeper.start();
    await().until(() -> looks.get() > 0);
    await()
        .untilAsserted(
            () ->
                assertThat(shared.health().lastFailure())
                    .isNotNull()
                    .extracting(EngineHealth.Failure::text)
                    .asString()
                    .contains("statement: one has not come back for 120 s"));
    driver.countDown();
    assertThat(lost.get(10, TimeUnit.SECONDS)).isTrue();
    await().until(() -> !shared.health().failing());
  }

  @Test
  void aTransactionThatFailedIsOwedForTenSecondsUnlessItFailsAgain() {
    shared.health().failed(Operation.TRANSACTION, new IllegalStateException("cut"));
    keeper.start();
    time.advance(Duration.ofMillis(9_999));
    int before = rounds.size();
    await().until(() -> rounds.size() >= before + 2); // so that one has ended
    assertThat(shared.health().failing()).isTrue();
    time.advance(Duration.ofMillis(1));
    await().until(() -> !shared.health().failing());
  }

  private static boolean awaited(CountDownLatch latch) {
    try {
      return latch.await(30, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
