package dev.outbox4j.internal.state;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class ConnectionBudgetTest {
  private static final Duration NETWORK_TIMEOUT = Duration.ofSeconds(15);

  private final ConnectionBudget budget =
      new ConnectionBudget(Duration.ofSeconds(60), NETWORK_TIMEOUT, 2);
  private final AtomicInteger begun = new AtomicInteger();
  private final Semaphore answers = new Semaphore(0);
  private final List<Thread> threads = new ArrayList<>();

  @AfterEach
  void answerAll() throws InterruptedException {
    answers.release(100);
    for (Thread thread : threads) {
      thread.join();
    }
  }

  @Test
  void aThirdStatementWaitsForOneOfTwo() {
    begin(() -> budget.spend(this::statement));
    begin(() -> budget.spend(this::statement));
    await().until(() -> begun.get() == 2);

    assertWaitsForAnAnswer(() -> budget.spend(this::statement));
  }

  @Test
  void aStatementThatWasNotSentIsNoSuccess() {
    AtomicLong now = new AtomicLong(1_000);
    ConnectionBudget timed =
        new ConnectionBudget(Duration.ofSeconds(60), NETWORK_TIMEOUT, 2, now::get);
    now.incrementAndGet();
    timed.spendOnRenewal(1, () -> null);
    assertThat(timed.succeededSince(1_000)).isFalse();
    timed.spendOnRenewal(1, () -> "sent");
    assertThat(timed.succeededSince(1_000)).isTrue();
  }

  @Test
  void whatOnlyTellsSomethingIsSentAndMaySucceed() {
    AtomicLong now = new AtomicLong(1_000);
    ConnectionBudget timed =
        new ConnectionBudget(Duration.ofSeconds(60), NETWORK_TIMEOUT, 2, now::get);
    now.incrementAndGet();
    timed.spendOnSaying(begun::incrementAndGet);
    assertThat(begun).hasValue(1);
    assertThat(timed.succeededSince(1_000)).isTrue();
  }

  @Test
  void aRenewalWaitsForOneOfTwoAsWell() {
    begin(() -> budget.spend(this::statement));
    begin(() -> budget.spend(this::statement));
    await().until(() -> begun.get() == 2);

    assertWaitsForAnAnswer(() -> budget.spendOnRenewal(Long.MAX_VALUE / 2, this::statement));
  }

  @Test
  void aRenewalTakesTheSecondConnectionAndNoThird() {
    begin(() -> budget.spend(this::statement));
    begin(() -> budget.spendOnRenewal(Long.MAX_VALUE / 2, this::statement));
    await().until(() -> begun.get() == 2);

    assertWaitsForAnAnswer(() -> budget.spend(this::statement));
  }

  @Test
  void afterAStatementThatHungAndFailedTwoRunAtOnceAgainInHalfAMinuteHoweverLongTheLease() {
    AtomicLong now = new AtomicLong();
    ConnectionBudget careful =
        new ConnectionBudget(Duration.ofHours(24), NETWORK_TIMEOUT, 2, now::get);
    assertThatThrownBy(
            () ->
                careful.spend(
                    () -> {
                      now.addAndGet(TimeUnit.MILLISECONDS.toNanos(2_300));
                      throw new IllegalStateException("no answer");
                    }))
        .hasMessage("no answer");

    now.addAndGet(TimeUnit.SECONDS.toNanos(29));
    begin(() -> careful.spend(this::statement));
    await().until(() -> begun.get() == 1);
    Thread second = begin(() -> careful.spend(this::statement));
    await().until(() -> second.getState() == Thread.State.TIMED_WAITING);
    assertThat(begun).hasValue(1);
    answers.release(2);
    await().until(() -> begun.get() == 2 && !second.isAlive());

    now.addAndGet(TimeUnit.SECONDS.toNanos(1));
    begin(() -> careful.spend(this::statement));
    begin(() -> careful.spend(this::statement));
    await().until(() -> begun.get() == 4);
  }

  @Test
  void aLookHasTheConnectionThatIsKeptForRenewalsWhileAClaimHangs() {
    AtomicLong now = new AtomicLong();
    ConnectionBudget two =
        new ConnectionBudget(Duration.ofSeconds(60), NETWORK_TIMEOUT, 2, now::get);
    begin(() -> two.spendOnClaim(this::statement));
    await().until(() -> begun.get() == 1);
    now.addAndGet(TimeUnit.SECONDS.toNanos(3));
    Thread write = begin(() -> two.spend(this::statement));
    await().until(() -> write.getState() == Thread.State.TIMED_WAITING);

    begin(() -> two.spendOnLook(this::statement));
    await().until(() -> begun.get() == 2);
    assertThat(write.getState()).isEqualTo(Thread.State.TIMED_WAITING);
  }

  @Test
  void aLookTakesNoThirdConnectionAndIsNextForOneOfTheTwo() {
    begin(() -> budget.spendOnClaim(this::statement));
    begin(() -> budget.spend(this::statement));
    await().until(() -> begun.get() == 2);
    Thread write = begin(() -> budget.spend(this::statement));
    await().until(() -> write.getState() == Thread.State.TIMED_WAITING);
    AtomicInteger looks = new AtomicInteger();
    Thread look =
        begin(
            () ->
                budget.spendOnLook(
                    () -> {
                      looks.incrementAndGet();
                      return statement();
                    }));
    await().until(() -> look.getState() == Thread.State.TIMED_WAITING);
    assertThat(begun).hasValue(2);

    answers.release();
    await().until(() -> begun.get() == 3);
    assertThat(looks).hasValue(1);
  }

  @Test
  void aLookWaitsUntilNoRenewalDoes() {
    begin(() -> budget.spendOnClaim(this::statement));
    begin(() -> budget.spend(this::statement));
    await().until(() -> begun.get() == 2);
    AtomicInteger renewals = new AtomicInteger();
    Thread look = begin(() -> budget.spendOnLook(this::statement));
    await().until(() -> look.getState() == Thread.State.TIMED_WAITING);
    Thread renewal =
        begin(
            () ->
                budget.spendOnRenewal(
                    Long.MAX_VALUE / 2,
                    () -> {
                      renewals.incrementAndGet();
                      return statement();
                    }));
    await().until(() -> renewal.getState() == Thread.State.TIMED_WAITING);

    answers.release();
    await().until(() -> begun.get() == 3);
    assertThat(renewals).hasValue(1);
  }

  @Test
  void aLookThatSucceedsSaysNothingOfWrites() {
    AtomicLong now = new AtomicLong(1_000);
    ConnectionBudget timed =
        new ConnectionBudget(Duration.ofSeconds(60), NETWORK_TIMEOUT, 2, now::get);
    now.incrementAndGet();
    timed.spendOnLook(() -> "seen");
    assertThat(timed.succeededSince(1_000)).isFalse();
  }

  @Test
  void aClaimThatNeverComesBackLetsWritesGoOnAfterAMinute() {
    AtomicLong now = new AtomicLong();
    ConnectionBudget two =
        new ConnectionBudget(Duration.ofSeconds(60), NETWORK_TIMEOUT, 2, now::get);
    begin(() -> two.spendOnClaim(this::statement));
    await().until(() -> begun.get() == 1);

    now.addAndGet(TimeUnit.SECONDS.toNanos(60));
    Thread write = begin(() -> two.spend(this::statement));
    await().until(() -> write.getState() == Thread.State.TIMED_WAITING);
    assertThat(begun).hasValue(1);
    assertThat(two.lostForNanos()).isZero();

    now.addAndGet(1);
    assertThat(two.lostForNanos()).isEqualTo(TimeUnit.SECONDS.toNanos(60) + 1);
    begin(() -> two.spendOnRenewal(Long.MAX_VALUE / 2, this::statement)); // wakes the write
    await().until(() -> begun.get() == 3);
  }

  /** What it claimed would be handled, and its outcomes never written. */
  @Test
  void aWriteThatNeverComesBackKeepsClaimsFromBeginning() {
    AtomicLong now = new AtomicLong();
    ConnectionBudget two =
        new ConnectionBudget(Duration.ofSeconds(60), NETWORK_TIMEOUT, 2, now::get);
    begin(() -> two.spend(this::statement));
    await().until(() -> begun.get() == 1);

    now.addAndGet(TimeUnit.MINUTES.toNanos(5));
    Thread claim = begin(() -> two.spendOnClaim(this::statement));
    begin(() -> two.spendOnRenewal(Long.MAX_VALUE / 2, this::statement));
    await().until(() -> begun.get() == 2);
    await().until(() -> claim.getState() == Thread.State.TIMED_WAITING);

    answers.release(2); // the write comes back after all
    await().until(() -> begun.get() == 3);
  }

  @Test
  void aStoreWithLongTimeLimitsIsGivenLonger() {
    AtomicLong now = new AtomicLong();
    ConnectionBudget slow =
        new ConnectionBudget(Duration.ofMinutes(10), Duration.ofMinutes(2), 2, now::get);
    begin(() -> slow.spend(this::statement));
    await().until(() -> begun.get() == 1);
    now.addAndGet(TimeUnit.SECONDS.toNanos(270));
    assertThat(slow.lostForNanos()).isZero();
    now.addAndGet(1);
    assertThat(slow.lostForNanos()).isPositive();
  }

  private void assertWaitsForAnAnswer(Runnable third) {
    Thread waiting = begin(third);
    await().until(() -> waiting.getState() == Thread.State.TIMED_WAITING);
    assertThat(begun).hasValue(2);

    answers.release();
    await().until(() -> begun.get() == 3);
  }

  private Thread begin(Runnable use) {
    Thread thread = new Thread(use);
    threads.add(thread);
    thread.start();
    return thread;
  }

  private Object statement() {
    begun.incrementAndGet();
    answers.acquireUninterruptibly();
    return this;
  }
}
