package dev.outbox4j.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.IfLive;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.Payload;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.Range;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.LookAhead;
import dev.outbox4j.spi.LookAhead.Watch;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.RescheduleUpdate;
import dev.outbox4j.spi.RetryUpdate;
import dev.outbox4j.spi.ScanBound;
import dev.outbox4j.spi.SlotStore;
import dev.outbox4j.spi.Written;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What every {@link OutboxStore} must do. Each test begins with an empty store. */
public abstract class OutboxStoreContract {
  protected static final Duration LEASE = Duration.ofSeconds(30);
  protected static final Duration PAST_LEASE = Duration.ofSeconds(31);

  /** More payload bytes than any test here publishes. */
  protected static final long BYTES = 1 << 20;

  private static final Written NONE = Written.done(Set.of());
  private static final Duration WAKE_IN = Duration.ofSeconds(60);
  private static final Instant LONG_AGO = Instant.parse("2020-01-01T00:00:00Z");

  /** The store under test. */
  protected abstract OutboxStore store();

  /** Publishes a message whose body is a String or a Payload, and returns the row's id. */
  protected abstract long publish(OutboxMessage message);

  /** Lets so much time go by, as the store sees it. */
  protected abstract void pass(Duration time);

  /** Returns the ids of all rows. */
  protected abstract Set<Long> liveIds();

  /** Locks a row as a transaction of somebody else does, until closed. */
  protected abstract Held lock(long id);

  /** Begins a transaction of somebody else that has written something, and ends it when closed. */
  protected abstract Held openTransaction();

  /** Makes the store refuse to write a lease to a row, until closed. */
  protected abstract Held refuseLease(long id);

  /** Makes each claim that finds a row take so long, until closed. */
  protected abstract Held slowClaims(Duration cost);

  /** Returns the payloads of the notifications since the last call, oldest first. */
  protected abstract List<String> heard();

  /** Something that lasts until it is closed. */
  protected interface Held extends AutoCloseable {
    @Override
    void close();
  }

  @Test
  void claimsWhatWasPublished() {
    long id =
        publish(
            message("orders")
                .type("order.placed")
                .orderingKey("acme")
                .timerId("t-1")
                .body("hello")
                .header("tenant", "acme \"quoted\" \\ \n ü €")
                .contentType("text/plain")
                .build());

    ClaimedRow row = only(claim(10, "orders"));

    assertThat(row.lease()).isEqualTo(new LeaseRef("orders", id, 1));
    assertThat(row.message().type()).isEqualTo("order.placed");
    assertThat(row.message().orderingKey()).isEqualTo("acme");
    assertThat(row.message().timerId()).isEqualTo("t-1");
    assertThat(row.message().payload()).isEqualTo(Payload.ofText("hello"));
    assertThat(row.message().headers())
        .isEqualTo(Map.of("tenant", "acme \"quoted\" \\ \n ü €", "content-type", "text/plain"));
    assertThat(row.history().deliveries()).isEqualTo(1);
    assertThat(row.history().attempts()).isZero();
    assertThat(row.history().sinceFirstAttempt()).isZero();
    assertThat(row.history().age()).isBetween(Duration.ZERO, Duration.ofMinutes(1));
    assertThat(row.message().availableAt())
        .isBetween(row.message().createdAt(), row.message().createdAt().plusSeconds(60));
  }

  @Test
  void anEmptyQueueGivesNoRowsAndNoLookAheadUnasked() {
    ClaimResult result = claim(10, "orders");

    assertThat(result.rows()).isEmpty();
    assertThat(result.lookAhead()).isNull();
  }

  @Test
  void claimsInOrderOfDueInstantAndThenId() {
    long third = publish(message("orders").deliverAt(LONG_AGO.plusSeconds(3)).build());
    long first = publish(message("orders").deliverAt(LONG_AGO.plusSeconds(1)).build());
    long second = publish(message("orders").deliverAt(LONG_AGO.plusSeconds(1)).build());
    long last = publish(message("orders").build());

    assertThat(ids(claim(10, "orders"))).containsExactly(first, second, third, last);
  }

  @Test
  void tellsWhenAMessageExpires() {
    Instant at = Instant.parse("2999-01-02T03:04:05.000006Z");
    publish(message("orders").expiresAt(at).build());
    publish(message("orders").deliverAt(LONG_AGO).expiresIn(Duration.ofHours(1)).build());
    publish(message("orders").build());

    assertThat(claim(10, "orders").rows())
        .extracting(row -> row.message().expiresAt())
        .containsExactlyInAnyOrder(at, LONG_AGO.plusSeconds(3_600), null);
  }

  @Test
  void claimsOnlyTheNamedQueue() {
    publish(message("invoices").build());

    assertThat(claim(10, "orders").rows()).isEmpty();
  }

  @Test
  void neverClaimsMoreThanTheLimit() {
    List<Long> all = publish("orders", 10);

    assertThat(ids(claim(3, "orders"))).isEqualTo(all.subList(0, 3));
    assertThat(ids(claim(3, "orders"))).isEqualTo(all.subList(3, 6));
    assertThat(ids(claim(100, "orders"))).isEqualTo(all.subList(6, 10));
    assertThat(claim(100, "orders").rows()).isEmpty();
  }

  @Test
  void aLeasedRowIsInvisibleUntilItsLeaseRunsOut() {
    LeaseRef first = only(claim(1, publishOne())).lease();

    assertThat(claim(10, "orders").rows()).isEmpty();
    pass(LEASE.minusSeconds(5));
    assertThat(claim(10, "orders").rows()).isEmpty();

    pass(Duration.ofSeconds(10));
    ClaimedRow again = only(claim(10, "orders"));
    assertThat(again.lease()).isEqualTo(new LeaseRef("orders", first.id(), first.token() + 1));
    assertThat(again.history().deliveries()).isEqualTo(2);
    assertThat(again.history().attempts()).isZero();
  }

  @Test
  void anAckDeletesTheRow() {
    LeaseRef lease = only(claim(1, publishOne())).lease();

    assertThat(store().ack(List.of(lease)).done()).containsExactly(lease.id());
    assertThat(liveIds()).isEmpty();
    assertThat(store().ack(List.of(lease))).isEqualTo(NONE);
  }

  @Test
  void aWriteTouchesOnlyTheRowsItNames() {
    List<Long> all = publish("orders", 5);
    List<LeaseRef> leases = leases(claim(5, "orders"));

    assertThat(store().ack(leases.subList(1, 3)).done())
        .containsExactlyInAnyOrder(all.get(1), all.get(2));
    assertThat(liveIds()).containsExactlyInAnyOrder(all.get(0), all.get(3), all.get(4));
  }

  @ParameterizedTest
  @EnumSource
  void aStaleOwnerChangesNothing(Write write) {
    LeaseRef stale = only(claim(1, publishOne())).lease();
    pass(PAST_LEASE);
    ClaimedRow owned = only(claim(1, "orders"));

    assertThat(write.on(store(), stale)).isEqualTo(NONE);

    assertThat(claim(1, "orders").rows()).isEmpty();
    pass(PAST_LEASE);
    ClaimedRow after = only(claim(1, "orders"));
    assertThat(after.lease().token()).isEqualTo(owned.lease().token() + 1);
    assertThat(after.history().deliveries()).isEqualTo(3);
    assertThat(after.history().attempts()).isZero();
    assertThat(after.message().availableAt().plus(PAST_LEASE.multipliedBy(2)))
        .isAfterOrEqualTo(owned.message().availableAt());
  }

  @ParameterizedTest
  @EnumSource
  void aWriteNeedsTheRightQueue(Write write) {
    LeaseRef lease = only(claim(1, publishOne())).lease();

    assertThat(write.on(store(), new LeaseRef("letters", lease.id(), lease.token())))
        .isEqualTo(NONE);
    assertThat(store().ack(List.of(lease)).done()).hasSize(1);
  }

  @ParameterizedTest
  @EnumSource
  void aLeaseThatRanOutUnclaimedIsStillGood(Write write) {
    LeaseRef lease = only(claim(1, publishOne())).lease();
    pass(PAST_LEASE);

    assertThat(write.on(store(), lease)).isEqualTo(Written.done(Set.of(lease.id())));
  }

  @ParameterizedTest
  @EnumSource
  void aLeaseThatWasGivenUpIsGoodForNothing(Write write) {
    List<Write> giveUps = List.of(Write.RETRY, Write.RESCHEDULE, Write.RELEASE);
    publish("orders", giveUps.size());
    List<LeaseRef> leases = leases(claim(10, "orders"));

    for (int i = 0; i < giveUps.size(); i++) {
      assertThat(giveUps.get(i).on(store(), leases.get(i)).done()).hasSize(1);
      assertThat(write.on(store(), leases.get(i))).isEqualTo(NONE);
    }

    assertThat(liveIds()).hasSize(giveUps.size());
  }

  @ParameterizedTest
  @EnumSource
  void duplicatesInOneCallCountOnce(Write write) {
    publish("orders", 2);
    List<LeaseRef> leases = leases(claim(2, "orders"));
    LeaseRef twice = leases.get(0);

    assertThat(write.on(store(), twice, twice, leases.get(1), twice).done())
        .containsExactlyInAnyOrder(twice.id(), leases.get(1).id());
    if (write == Write.RETRY) {
      pass(Duration.ofSeconds(20));
      assertThat(claim(2, "orders").rows()).allMatch(row -> row.history().attempts() == 1);
    }
  }

  @Test
  void aRetryWithoutARunIsDueAfterItsDelayAndCountsNeitherAttemptNorDelivery() {
    publish("orders", 2);
    List<LeaseRef> leases = leases(claim(2, "orders"));
    Duration delay = Duration.ofSeconds(30);

    assertThat(
            store()
                .retry(
                    List.of(
                        new RetryUpdate(leases.get(0), delay, "put off", false, true),
                        new RetryUpdate(leases.get(1), delay, "failed", true, false)))
                .done())
        .hasSize(2);

    assertThat(claim(2, "orders").rows()).isEmpty();
    pass(Duration.ofSeconds(40));
    List<ClaimedRow> again = claim(2, "orders").rows();
    assertThat(again).extracting(row -> row.history().attempts()).containsExactly(0, 1);
    assertThat(again).extracting(row -> row.history().deliveries()).containsExactly(1, 2);
    assertThat(again.get(0).history().sinceFirstAttempt()).isZero();
    assertThat(again.get(1).history().sinceFirstAttempt()).isPositive();
  }

  @Test
  void aRetryIsDueAfterItsDelayAndCountsTheAttempt() {
    LeaseRef lease = only(claim(1, publishOne())).lease();

    assertThat(
            store()
                .retry(List.of(new RetryUpdate(lease, Duration.ofSeconds(100), "no answer")))
                .done())
        .containsExactly(lease.id());

    assertThat(claim(1, "orders").rows()).isEmpty();
    pass(Duration.ofSeconds(60));
    assertThat(claim(1, "orders").rows()).isEmpty();
    pass(Duration.ofSeconds(60));
    ClaimedRow again = only(claim(1, "orders"));
    assertThat(again.history().attempts()).isEqualTo(1);
    assertThat(again.history().deliveries()).isEqualTo(2);
    assertThat(again.history().sinceFirstAttempt())
        .isBetween(Duration.ofSeconds(119), Duration.ofSeconds(180));

    store().retry(List.of(new RetryUpdate(again.lease(), Duration.ZERO, "again")));
    ClaimedRow third = only(claim(1, "orders"));
    assertThat(third.history().attempts()).isEqualTo(2);
    assertThat(third.history().sinceFirstAttempt())
        .isBetween(Duration.ofSeconds(119), Duration.ofSeconds(180));
  }

  @Test
  void eachRetryHasItsOwnDelay() {
    publish("orders", 2);
    List<LeaseRef> leases = leases(claim(2, "orders"));

    store()
        .retry(
            List.of(
                new RetryUpdate(leases.get(1), Duration.ZERO, "b"),
                new RetryUpdate(leases.get(0), Duration.ofMinutes(5), "a")));

    assertThat(ids(claim(2, "orders"))).containsExactly(leases.get(1).id());
  }

  @Test
  void aRescheduleForgetsAttemptsAndDeliveries() {
    LeaseRef lease = only(claim(1, publishOne())).lease();
    store().retry(List.of(new RetryUpdate(lease, Duration.ZERO, "no answer")));
    ClaimedRow failed = only(claim(1, "orders"));

    store().reschedule(List.of(new RescheduleUpdate(failed.lease(), Duration.ofSeconds(50))));

    assertThat(claim(1, "orders").rows()).isEmpty();
    pass(Duration.ofSeconds(51));
    ClaimedRow fresh = only(claim(1, "orders"));
    assertThat(fresh.history().attempts()).isZero();
    assertThat(fresh.history().deliveries()).isEqualTo(1);
    assertThat(fresh.history().sinceFirstAttempt()).isZero();
    assertThat(fresh.lease().token()).isEqualTo(failed.lease().token() + 1);
  }

  @Test
  void aRenewalExtendsTheLeaseFromNow() {
    LeaseRef lease = only(claim(1, publishOne())).lease();
    pass(Duration.ofSeconds(20));

    assertThat(store().renew(List.of(lease), LEASE).done()).containsExactly(lease.id());

    pass(Duration.ofSeconds(20));
    assertThat(claim(1, "orders").rows()).isEmpty();
    pass(Duration.ofSeconds(20));
    assertThat(only(claim(1, "orders")).lease().token()).isEqualTo(lease.token() + 1);
  }

  @Test
  void aReleaseGivesTheDeliveryBackButNotTheToken() {
    LeaseRef lease = only(claim(1, publishOne())).lease();

    assertThat(store().release(List.of(lease)).done()).containsExactly(lease.id());

    ClaimedRow again = only(claim(1, "orders"));
    assertThat(again.history().deliveries()).isEqualTo(1);
    assertThat(again.lease().token()).isEqualTo(lease.token() + 1);
  }

  @Test
  void aDelayedRowIsNotClaimedBeforeItIsDue() {
    publish(message("orders").deliverIn(Duration.ofSeconds(90)).build());

    assertThat(claim(1, "orders").rows()).isEmpty();
    pass(Duration.ofSeconds(91));
    assertThat(claim(1, "orders").rows()).hasSize(1);
  }

  @Test
  void aBoundSkipsWhatIsNotAboveItAndASweepFindsIt() {
    Instant due = LONG_AGO;
    List<Long> same = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      same.add(publish(message("orders").deliverAt(due).build()));
    }
    long later = publish(message("orders").deliverAt(due.plusMillis(1)).build());
    ScanBound bound = new ScanBound(due, same.get(1));

    assertThat(ids(claim(above(bound)))).containsExactly(same.get(2), same.get(3), later);
    assertThat(claim(above(bound)).rows()).isEmpty();
    assertThat(ids(claim(10, "orders"))).containsExactly(same.get(0), same.get(1));
  }

  @Test
  void aBoundAtARowsOwnPlaceIsExactToTheMicrosecond() {
    publish("orders", 3);
    List<ClaimedRow> rows = claim(10, "orders").rows();
    store().release(rows.stream().map(ClaimedRow::lease).toList());
    ScanBound bound = new ScanBound(rows.get(0).message().availableAt(), rows.get(0).lease().id());

    assertThat(ids(claim(above(bound))))
        .containsExactly(rows.get(1).lease().id(), rows.get(2).lease().id());
  }

  @Test
  void aRangeEndsAtItsUpperPlaceWhichIsIncluded() {
    Instant due = LONG_AGO;
    List<Long> same = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      same.add(publish(message("orders").deliverAt(due).build()));
    }
    publish(message("orders").deliverAt(due.plusMillis(1)).build());
    ScanBound first = new ScanBound(due, same.get(0));
    ScanBound third = new ScanBound(due, same.get(2));

    assertThat(ids(claim(within(new Range(first, third), 10))))
        .containsExactly(same.get(1), same.get(2));
    assertThat(ids(claim(within(new Range(null, third), 10)))).containsExactly(same.get(0));
    assertThat(claim(within(new Range(third, first), 10)).rows()).isEmpty();
  }

  @Test
  void anUpperPlaceInTheFutureBringsNothingThatIsNotDue() {
    publish(message("orders").deliverIn(Duration.ofSeconds(90)).build());
    ScanBound farAway = new ScanBound(Instant.parse("2999-01-01T00:00:00Z"), Long.MAX_VALUE);

    assertThat(claim(within(new Range(null, farAway), 10)).rows()).isEmpty();
  }

  @Test
  void aClaimIsFullAtItsLimitOfRows() {
    publish("orders", 3);

    assertThat(claim(2, "orders").full()).isTrue();
    assertThat(claim(2, "orders").full()).isFalse();
    assertThat(claim(2, "orders").full()).isFalse();
  }

  @Test
  void aClaimEndsBeforeTheRowThatWouldExceedItsBytes() {
    List<Long> all = List.of(sized(400), sized(500), sized(200), sized(2_000), sized(0), sized(1));

    ClaimResult first = claim(bytes(1_000));
    ClaimResult second = claim(bytes(1_000));
    ClaimResult third = claim(bytes(1_000));
    ClaimResult fourth = claim(bytes(1_000));

    assertThat(ids(first)).isEqualTo(all.subList(0, 2));
    assertThat(first.full()).isTrue();
    assertThat(ids(second)).isEqualTo(all.subList(2, 3));
    assertThat(second.full()).isTrue();
    assertThat(ids(third)).isEqualTo(all.subList(3, 4));
    assertThat(third.full()).isTrue();
    assertThat(ids(fourth)).isEqualTo(all.subList(4, 6));
    assertThat(fourth.full()).isFalse();
  }

  private long sized(int bytes) {
    return publish(message("orders").body(Payload.of(new byte[bytes])).build());
  }

  private static ClaimRequest bytes(long most) {
    return new ClaimRequest("orders", Range.ALL, 10, most, LEASE, "me", Idle.UNCHANGED, null);
  }

  @Test
  void aRowLockedByAStrangerIsNotClaimedAndTheOthersAre() {
    List<Long> all = publish("orders", 3);

    try (Held lock = lock(all.get(1))) {
      assertThat(ids(claim(10, "orders"))).containsExactly(all.get(0), all.get(2));
    }

    assertThat(ids(claim(10, "orders"))).containsExactly(all.get(1));
  }

  @ParameterizedTest
  @EnumSource
  void aRowLockedByAStrangerIsBusyAndTheOthersAreWritten(Write write) {
    List<Long> all = publish("orders", 3);
    LeaseRef[] leases = leases(claim(10, "orders")).toArray(LeaseRef[]::new);

    try (Held lock = lock(all.get(1))) {
      assertThat(write.on(store(), leases))
          .isEqualTo(new Written(Set.of(all.get(0), all.get(2)), Set.of(all.get(1))));
      assertThat(write.on(store(), leases[1])).isEqualTo(new Written(Set.of(), Set.of(all.get(1))));
    }

    assertThat(write.on(store(), leases[1])).isEqualTo(Written.done(Set.of(all.get(1))));
  }

  @ParameterizedTest
  @EnumSource
  void aLockedRowOfAnotherOwnerIsNotBusy(Write write) {
    LeaseRef stale = only(claim(1, publishOne())).lease();
    pass(PAST_LEASE);
    claim(1, "orders");

    try (Held lock = lock(stale.id())) {
      assertThat(write.on(store(), stale)).isEqualTo(NONE);
    }
  }

  @Test
  void rowsWhoseLeaseIsRefusedAreToldAndTheOthersAreClaimed() {
    List<Long> all = publish("orders", 5);

    try (Held first = refuseLease(all.get(0));
        Held third = refuseLease(all.get(2))) {
      ClaimResult result = claim(10, "orders");
      assertThat(ids(result)).containsExactly(all.get(1), all.get(3), all.get(4));
      assertThat(result.refused()).containsExactlyInAnyOrder(all.get(0), all.get(2));
      assertThat(result.full()).isFalse();
    }

    assertThat(ids(claim(10, "orders"))).containsExactly(all.get(0), all.get(2));
  }

  @Test
  void aClaimBesideARefusedRowKeepsToItsBytesButForOneRow() {
    List<Long> all = Stream.generate(() -> sized(400)).limit(6).toList();

    try (Held first = refuseLease(all.get(0))) {
      ClaimResult result = claim(bytes(1_000));
      assertThat(result.rows()).hasSizeBetween(2, 3);
      assertThat(result.refused()).containsExactly(all.get(0));
      assertThat(result.full()).isTrue();
    }
  }

  @Test
  void aClaimBesideARefusedRowStillSaysAndLearnsWhatItWasAskedTo() {
    List<Long> all = publish("orders", 2);
    publish(message("orders").deliverIn(Duration.ofMinutes(1)).body("later").build());

    try (Held first = refuseLease(all.get(0))) {
      ClaimResult result =
          claim(
              new ClaimRequest(
                  "orders", Range.ALL, 10, BYTES, LEASE, "me", Idle.sleep(WAKE_IN, null), null));
      assertThat(ids(result)).containsExactly(all.get(1));
      assertThat(result.lookAhead().watch()).isEqualTo(Watch.MINE);
      assertThat(result.lookAhead().nextDueIn()).isLessThanOrEqualTo(Duration.ofMinutes(1));
    }
    assertThat(claimAs("other", Idle.LOOK_AHEAD).watch()).isEqualTo(Watch.TAKEN);
  }

  @Test
  void rowsWhoseLeaseIsRefusedDoNotBlockTheirQueue() {
    List<Long> all = publish("orders", 6);

    try (Held first = refuseLease(all.get(0));
        Held second = refuseLease(all.get(1));
        Held third = refuseLease(all.get(2))) {
      assertThat(ids(claim(2, "orders"))).containsExactly(all.get(3), all.get(4));
      assertThat(ids(claim(2, "orders"))).containsExactly(all.get(5));
    }
  }

  @Test
  void aClaimThatEndsAtRefusedRowsTellsWhereAndTheNextGoesOnBehindThem() throws Exception {
    List<Long> all = publish("orders", 120);
    List<Long> good = publish("orders", 3);
    List<Held> refusals = new ArrayList<>();
    all.forEach(id -> refusals.add(refuseLease(id)));

    ClaimResult first = claim(10, "orders");
    assertThat(first.rows()).isEmpty();
    assertThat(first.full()).isTrue();
    assertThat(first.refusedUpTo().id()).isBetween(all.get(9), all.get(119));
    ClaimResult second = claim(above(first.refusedUpTo()));
    assertThat(ids(second)).isEqualTo(good);

    for (Held refusal : refusals) {
      refusal.close();
    }
  }

  @Test
  void aClaimThatTakesLongerThanItMayFailsAsATimeoutAndLeasesNothing() {
    List<Long> all = publish("orders", 1);

    try (Held slow = slowClaims(Duration.ofSeconds(2))) {
      assertThatThrownBy(() -> claim(limited(Duration.ofMillis(50))))
          .isInstanceOfSatisfying(
              OutboxStoreException.class,
              failure -> {
                assertThat(failure.fault()).isEqualTo(Fault.TIMEOUT);
                assertThat(failure.outcomeUnknown()).isFalse();
              });
    }

    assertThat(ids(claim(limited(Duration.ofSeconds(10))))).isEqualTo(all);
  }

  private static ClaimRequest limited(Duration timeLimit) {
    return new ClaimRequest("orders", Range.ALL, 10, BYTES, LEASE, "me", Idle.UNCHANGED, timeLimit);
  }

  @ParameterizedTest
  @EnumSource(names = {"SLEEP", "LOOK_AHEAD"})
  void aLookAheadTellsWhenTheNextRowFallsDue(Idle.Mode mode) {
    Idle idle = new Idle(mode, Duration.ofSeconds(10), null);
    publish(message("a").deliverIn(Duration.ofSeconds(500)).build());
    publish(message("a").deliverIn(Duration.ofMinutes(15)).build());

    LookAhead some = claim(request("a", 1, idle)).lookAhead();
    LookAhead none = claim(request("b", 1, idle)).lookAhead();

    assertThat(some.nextDueIn()).isBetween(Duration.ofSeconds(440), Duration.ofSeconds(500));
    assertThat(none.nextDueIn()).isNull();
  }

  @Test
  void aLookAheadOverAWholeQueueTellsWhenALeaseRunsOut() {
    long id = publish("orders", 1).get(0);
    publish(message("orders").deliverIn(Duration.ofSeconds(500)).build());
    claim(1, "orders");

    LookAhead whole = claim(request("orders", 1, Idle.LOOK_AHEAD)).lookAhead();
    Range range = new Range(new ScanBound(LONG_AGO, id), null);
    LookAhead part =
        claim(new ClaimRequest("orders", range, 1, BYTES, LEASE, "me", Idle.LOOK_AHEAD, null))
            .lookAhead();

    assertThat(whole.nextDueIn()).isBetween(LEASE.minusSeconds(20), LEASE);
    assertThat(part.nextDueIn()).isBetween(Duration.ofSeconds(440), Duration.ofSeconds(500));
  }

  @ParameterizedTest
  @EnumSource
  void everyIdleModeClaimsTheSame(Idle.Mode mode) {
    List<Long> all = publish("orders", 3);
    Idle idle = new Idle(mode, Duration.ofSeconds(10), null);

    assertThat(ids(claim(request("orders", 2, idle)))).isEqualTo(all.subList(0, 2));
    assertThat(ids(claim(request("orders", 2, idle)))).isEqualTo(all.subList(2, 3));
  }

  @Test
  void aMarkIsSettledOnceTheTransactionsOpenWhenItWasGivenHaveEnded() {
    Held early = openTransaction();
    LookAhead given = claimAs("a", Idle.lookAhead(Idle.NEW_MARK));
    Held late = openTransaction();

    assertThat(given.mark()).isPositive();
    assertThat(given.settled()).isFalse();
    assertThat(claimAs("a", Idle.lookAhead(given.mark())).settled()).isFalse();
    assertThat(claimAs("a", Idle.lookAhead(null)).settled()).isFalse();
    early.close();
    LookAhead after = claimAs("a", Idle.sleep(WAKE_IN, given.mark()));
    assertThat(after.settled()).isTrue();
    assertThat(after.mark()).isZero();
    LookAhead second = claimAs("a", Idle.sleep(WAKE_IN, Idle.NEW_MARK));
    assertThat(second.mark()).isGreaterThan(given.mark());
    assertThat(claimAs("a", Idle.lookAhead(second.mark())).settled()).isFalse();
    late.close();
    assertThat(claimAs("a", Idle.lookAhead(second.mark())).settled()).isTrue();
  }

  @Test
  void theFirstToSleepIsOnWatchAndTheNextIsInReserve() {
    assertThat(claimAs("b", Idle.LOOK_AHEAD).watch()).isEqualTo(Watch.VACANT);
    assertThat(claimAs("b", Idle.sleep(WAKE_IN, null)).watch()).isEqualTo(Watch.MINE);

    assertThat(claimAs("a", Idle.LOOK_AHEAD).watch()).isEqualTo(Watch.TAKEN);
    assertThat(claimAs("a", Idle.sleep(WAKE_IN, null)).watch()).isEqualTo(Watch.TAKEN);
    assertThat(claimAs("b", Idle.LOOK_AHEAD).watch()).isEqualTo(Watch.MINE);
    assertThat(claimAs("b", Idle.sleep(WAKE_IN, null)).watch()).isEqualTo(Watch.MINE);
  }

  @Test
  void eachQueueHasAWatchOfItsOwn() {
    claimAs("a", Idle.sleep(WAKE_IN, null));

    assertThat(claim(request("letters", 1, Idle.LOOK_AHEAD)).lookAhead().watch())
        .isEqualTo(Watch.VACANT);
  }

  @Test
  void aWatchThatIsNotKeptUpIsVacantAndMayBeTaken() {
    claimAs("a", Idle.sleep(WAKE_IN, null));
    pass(WAKE_IN.plusSeconds(1));

    assertThat(claimAs("b", Idle.LOOK_AHEAD).watch()).isEqualTo(Watch.VACANT);
    assertThat(claimAs("b", Idle.sleep(WAKE_IN, null)).watch()).isEqualTo(Watch.MINE);
    assertThat(claimAs("a", Idle.sleep(WAKE_IN, null)).watch()).isEqualTo(Watch.TAKEN);
  }

  @Test
  void whoIsAwakeKeepsItsWatchUnlessForNoTime() {
    claimAs("a", Idle.sleep(WAKE_IN, null));

    assertThat(claimAs("a", Idle.awake(WAKE_IN))).isNull();
    assertThat(claimAs("b", Idle.LOOK_AHEAD).watch()).isEqualTo(Watch.TAKEN);
    claimAs("a", Idle.awake(Duration.ZERO));
    assertThat(claimAs("b", Idle.LOOK_AHEAD).watch()).isEqualTo(Watch.VACANT);
  }

  @Test
  void aWatchThatWasLostIsNotTakenBackByWhoIsAwake() {
    claimAs("a", Idle.sleep(WAKE_IN, null));
    pass(WAKE_IN.plusSeconds(1));
    claimAs("b", Idle.sleep(WAKE_IN, null));

    claimAs("a", Idle.awake(WAKE_IN));

    assertThat(claimAs("a", Idle.LOOK_AHEAD).watch()).isEqualTo(Watch.TAKEN);
    assertThat(claimAs("b", Idle.sleep(WAKE_IN, null)).watch()).isEqualTo(Watch.MINE);
  }

  @Test
  void whoIsAwakeIsNotRegisteredByThat() {
    claimAs("a", Idle.awake(WAKE_IN));

    assertThat(claimAs("b", Idle.LOOK_AHEAD).watch()).isEqualTo(Watch.VACANT);
    assertThat(claimAs("b", Idle.sleep(WAKE_IN, null)).watch()).isEqualTo(Watch.MINE);
    store().pass("orders", "b");
    assertThat(heard()).isEmpty();
  }

  @Test
  void whatIsSentIsHeardThoughNobodySleeps() {
    heard();
    store().send(NotificationSource.toItself("a"));

    assertThat(heard()).containsExactly(NotificationSource.toItself("a"));
  }

  @Test
  void publishingNotifiesOnlyWhileSomebodyOnWatchSleepsPastTheDueInstant() {
    heard();
    publish("orders", 1);
    claim(1, "orders");
    claimAs("a", Idle.sleep(WAKE_IN, null));
    publish(message("orders").deliverIn(WAKE_IN.plusSeconds(30)).build());
    assertThat(heard()).isEmpty();

    publish("orders", 1);
    assertThat(heard()).containsExactly("orders");
    claimAs("a", Idle.awake(WAKE_IN));
    publish("orders", 1);
    assertThat(heard()).isEmpty();
  }

  @Test
  void whoIsInReserveIsNotNotifiedOfWhatIsPublished() {
    claimAs("a", Idle.sleep(WAKE_IN, null));
    claimAs("b", Idle.sleep(WAKE_IN, null));
    claimAs("a", Idle.awake(Duration.ZERO));
    heard();

    publish("orders", 1);

    assertThat(heard()).isEmpty();
  }

  @ParameterizedTest
  @EnumSource(names = {"RETRY", "RESCHEDULE", "RELEASE"})
  void aRowThatIsDueAgainWakesWhoSleepsPastThat(Write write) {
    publish("orders", 2);
    List<LeaseRef> leases = leases(claim(2, "orders"));
    heard();
    write.on(store(), leases.get(0));
    assertThat(heard()).isEmpty();
    claimAs("a", Idle.sleep(WAKE_IN, null));
    heard();

    write.on(store(), leases.get(1));

    assertThat(heard()).containsExactly("orders");
  }

  @Test
  void whoPassesGivesTheWatchUpAndWakesOneInReserveByName() {
    claimAs("a", Idle.sleep(WAKE_IN, null));
    claimAs("b", Idle.sleep(WAKE_IN, null));
    claimAs("c", Idle.sleep(WAKE_IN.plusSeconds(5), null));
    claimAs("d", Idle.sleep(WAKE_IN.minusSeconds(5), null));
    heard();

    store().pass("orders", "a");

    assertThat(heard()).containsExactly(NotificationSource.BY_NAME + "c");
    assertThat(claimAs("c", Idle.LOOK_AHEAD).watch()).isEqualTo(Watch.VACANT);
    publish("orders", 1);
    assertThat(heard()).isEmpty();
  }

  @Test
  void whoPassedIsNotWokenByTheNextWhoPasses() {
    claimAs("a", Idle.sleep(WAKE_IN.plusSeconds(5), null));
    claimAs("b", Idle.sleep(WAKE_IN, null));
    store().pass("orders", "a");
    assertThat(claimAs("b", Idle.sleep(WAKE_IN, null)).watch()).isEqualTo(Watch.MINE);
    heard();

    store().pass("orders", "b");

    assertThat(heard()).isEmpty();
  }

  @Test
  void reservesWhoseTimeIsUpAreNotWoken() {
    claimAs("a", Idle.sleep(WAKE_IN.multipliedBy(3), null));
    claimAs("b", Idle.sleep(WAKE_IN, null));
    pass(WAKE_IN.plusSeconds(1));
    heard();

    store().pass("orders", "a");
    store().pass("letters", "a");

    assertThat(heard()).isEmpty();
  }

  @Test
  void whoIsForgottenLeavesItsWatchToOneInReserve() {
    claimAs("a", Idle.sleep(WAKE_IN, null));
    claimAs("b", Idle.sleep(WAKE_IN, null));
    heard();

    store().forget("b");
    assertThat(heard()).isEmpty();
    claimAs("b", Idle.sleep(WAKE_IN, null));
    store().forget("a");

    assertThat(heard()).containsExactly(NotificationSource.BY_NAME + "b");
    assertThat(claimAs("b", Idle.LOOK_AHEAD).watch()).isEqualTo(Watch.VACANT);
  }

  @Test
  void aWriteOnTwoQueuesIsRefused() {
    List<LeaseRef> leases = List.of(new LeaseRef("a", 1, 1), new LeaseRef("b", 2, 1));

    assertThatThrownBy(() -> store().ack(leases)).isInstanceOf(IllegalArgumentException.class);
  }

  /** The writes that carry a lease. */
  @SuppressWarnings("ImmutableEnumChecker") // lambdas without state
  private long publishInPlace(String body) {
    return publish(
        OutboxMessage.to("orders").timerId("t", IfLive.REPLACE).type(body).body(body).build());
  }

  @Test
  void aMessageTakesThePlaceOfOneThatWaits() {
    long first = publishInPlace("first");
    long second = publishInPlace("second");

    assertThat(liveIds()).containsExactly(second).doesNotContain(first);
    ClaimedRow row = only(claim(10, "orders"));
    assertThat(row.lease().id()).isEqualTo(second);
    assertThat(row.message().payload()).isEqualTo(Payload.ofText("second"));
    assertThat(row.message().type()).isEqualTo("second");
  }

  @Test
  void aMessageTakesThePlaceOfOneThatWaitsForARetry() {
    publishInPlace("first");
    Write.RETRY.on(store(), only(claim(1, "orders")).lease());
    long second = publishInPlace("second");

    ClaimedRow row = only(claim(10, "orders"));
    assertThat(row.lease().id()).isEqualTo(second);
    assertThat(row.history().attempts()).isZero();
    assertThat(row.history().deliveries()).isEqualTo(1);
  }

  @Test
  void whatIsPublishedInPlaceIsDueWhenItSaysAndAtOnceKeepsThePlace() {
    publish(message("orders").timerId("t").build());
    pass(Duration.ofSeconds(1));
    publish(message("orders").type("between").build());
    pass(Duration.ofSeconds(1));
    publishInPlace("at once");
    publish(message("orders").timerId("later").build());
    publish(
        message("orders").timerId("later", IfLive.REPLACE).deliverIn(Duration.ofHours(1)).build());

    assertThat(claim(10, "orders").rows())
        .extracting(row -> row.message().type())
        .containsExactly("at once", "between");
    pass(Duration.ofMinutes(61));
    assertThat(claim(10, "orders").rows())
        .extracting(row -> row.message().timerId())
        .contains("later");
  }

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "RENEW")
  void whatIsPublishedInPlaceOfALeasedRowComesOnceThatIsWrittenWhateverThatIs(Write write) {
    long first = publishInPlace("first");
    LeaseRef lease = only(claim(1, "orders")).lease();
    long dropped = publishInPlace("dropped");
    long second = publishInPlace("second");

    assertThat(claim(10, "orders").rows()).isEmpty();
    assertThat(write.on(store(), lease)).isEqualTo(new Written(Set.of(), Set.of(), Set.of(first)));
    assertThat(write.on(store(), lease)).isEqualTo(NONE);

    ClaimedRow row = only(claim(10, "orders"));
    assertThat(row.lease().id()).isEqualTo(second).isNotIn(first, dropped);
    assertThat(row.message().payload()).isEqualTo(Payload.ofText("second"));
    assertThat(row.history().deliveries()).isEqualTo(1);
    assertThat(row.history().attempts()).isZero();
    assertThat(store().ack(List.of(row.lease())).done()).containsExactly(second);
    assertThat(liveIds()).isEmpty();
  }

  @Test
  void theLeaseOfARowIsRenewedInWhosePlaceAnotherMessageWasPublished() {
    long first = publishInPlace("first");
    LeaseRef lease = only(claim(1, "orders")).lease();
    publishInPlace("second");
    pass(LEASE.dividedBy(2));

    assertThat(Write.RENEW.on(store(), lease)).isEqualTo(Written.done(Set.of(first)));

    pass(LEASE.dividedBy(2).plusSeconds(1));
    assertThat(claim(10, "orders").rows()).isEmpty();
  }

  @ParameterizedTest
  @EnumSource
  void whatIsPublishedInPlaceOfALeasedRowComesUnderItsOwnIdOnceTheLeaseIsOver(Write write) {
    long first = publishInPlace("first");
    LeaseRef stale = only(claim(1, "orders")).lease();
    long second = publishInPlace("second");
    pass(PAST_LEASE);

    ClaimedRow row = only(claim(10, "orders"));
    assertThat(row.lease().id()).isEqualTo(second).isNotEqualTo(first);
    assertThat(row.history().deliveries()).isEqualTo(1);
    assertThat(row.message().payload()).isEqualTo(Payload.ofText("second"));
    assertThat(write.on(store(), stale)).isEqualTo(NONE);
    assertThat(store().ack(List.of(row.lease())).done()).containsExactly(second);
  }

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "RENEW")
  void aWriteTellsApartWhatIsDoneReplacedAndLocked(Write write) {
    long plain = publish(message("orders").build());
    long replaced = publishInPlace("first");
    long locked = publish(message("orders").timerId("u").build());
    LeaseRef[] leases = leases(claim(10, "orders")).toArray(LeaseRef[]::new);
    publishInPlace("second");
    publish(message("orders").timerId("u", IfLive.REPLACE).build());

    try (Held lock = lock(locked)) {
      assertThat(write.on(store(), leases))
          .isEqualTo(new Written(Set.of(plain), Set.of(locked), Set.of(replaced)));
    }
    assertThat(write.on(store(), leases))
        .isEqualTo(new Written(Set.of(), Set.of(), Set.of(locked)));
  }

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "RENEW")
  void whatWasPublishedInPlaceWakesWhoSleepsOnceTheRowIsLetGoOf(Write write) {
    publishInPlace("first");
    LeaseRef lease = only(claim(1, "orders")).lease();
    publishInPlace("second");
    claimAs("a", Idle.sleep(WAKE_IN, null));
    heard();

    write.on(store(), lease);

    assertThat(heard()).containsExactly("orders");
  }

  @Test
  void aSlotStaysTakenWhileARowIsHeldInWhosePlaceAnotherMessageWasPublished() {
    slots().open("orders", 2);
    publishInPlace("first");
    LeaseRef lease = only(claimInSlots(1)).lease();
    publishInPlace("second");
    publish(message("orders").build());
    publish(message("orders").build());

    assertThat(claimInSlots(2).rows()).hasSize(1);
    store().ack(List.of(lease));
    assertThat(claimInSlots(2).rows()).hasSize(1);
  }

  @SuppressWarnings("ImmutableEnumChecker") // the functions hold nothing
  protected enum Write {
    ACK((store, leases) -> store.ack(leases)),
    RETRY(
        (store, leases) ->
            store.retry(
                leases.stream()
                    .map(lease -> new RetryUpdate(lease, Duration.ofSeconds(5), "failed"))
                    .toList())),
    RESCHEDULE(
        (store, leases) ->
            store.reschedule(
                leases.stream()
                    .map(lease -> new RescheduleUpdate(lease, Duration.ofSeconds(5)))
                    .toList())),
    RENEW((store, leases) -> store.renew(leases, LEASE)),
    RELEASE((store, leases) -> store.release(leases));

    private final BiFunction<OutboxStore, List<LeaseRef>, Written> write;

    Write(BiFunction<OutboxStore, List<LeaseRef>, Written> write) {
      this.write = write;
    }

    /** Writes, and returns what that did. */
    public Written on(OutboxStore store, LeaseRef... leases) {
      return write.apply(store, List.of(leases));
    }
  }

  private String publishOne() {
    publish("orders", 1);
    return "orders";
  }

  protected final List<Long> publish(String queue, int count) {
    return Stream.generate(() -> publish(message(queue).build())).limit(count).toList();
  }

  protected static OutboxMessage.Builder message(String queue) {
    return OutboxMessage.to(queue).body("x");
  }

  @Test
  void makesSlotsThatAreMissing() {
    assertThat(slots().open("orders", 2)).isEqualTo(2);
    assertThat(slots().open("orders", 2)).isZero();
    assertThat(slots().open("orders", 5)).isEqualTo(3);
    assertThat(slots().open("orders", 1)).isZero();
    assertThat(slots().open("mails", 2)).isEqualTo(2);
  }

  @Test
  void leasesAsManyRowsAtOnceAsThereAreSlots() {
    slots().open("orders", 2);
    for (int i = 0; i < 4; i++) {
      publish(message("orders").build());
    }

    ClaimResult one = claimInSlots(1);
    assertThat(one.rows()).hasSize(1);
    assertThat(one.outOfSlots()).isFalse();
    ClaimResult other = claimInSlots(10);
    assertThat(other.rows()).hasSize(1);
    assertThat(other.outOfSlots()).isTrue();
    assertThat(other.full()).isTrue();
    ClaimResult none = claimInSlots(10);
    assertThat(none.rows()).isEmpty();
    assertThat(none.outOfSlots()).isTrue();

    store().ack(leases(one));
    assertThat(claimInSlots(10).rows()).hasSize(1);
    assertThat(claimInSlots(10).rows()).isEmpty();
  }

  @Test
  void aClaimThatEndsForItsSizeIsNotOutOfSlots() {
    slots().open("orders", 2);
    for (int i = 0; i < 3; i++) {
      publish(message("orders").body("x".repeat(1_000)).build());
    }

    ClaimResult result =
        claim(
            new ClaimRequest("orders", Range.ALL, 10, 1_500, LEASE, "me", Idle.UNCHANGED, null, 2));

    assertThat(result.rows()).hasSize(1);
    assertThat(result.full()).isTrue();
    assertThat(result.outOfSlots()).isFalse();
  }

  @Test
  void anEmptyQueueIsNotOutOfSlots() {
    slots().open("orders", 2);

    ClaimResult result = claimInSlots(2);

    assertThat(result.rows()).isEmpty();
    assertThat(result.full()).isFalse();
    assertThat(result.outOfSlots()).isFalse();
  }

  @Test
  void leasesNothingInSlotsThatNobodyHasMade() {
    publish(message("orders").build());

    ClaimResult result = claimInSlots(10);

    assertThat(result.rows()).isEmpty();
    assertThat(result.outOfSlots()).isTrue();
  }

  @Test
  void slotsAreOfOneQueueAndOfClaimsThatAskForThem() {
    slots().open("orders", 2);
    slots().open("mails", 2);
    publish(message("mails").build());
    for (int i = 0; i < 5; i++) {
      publish(message("orders").build());
    }
    assertThat(claimInSlots(10).rows()).hasSize(2);

    assertThat(claimInSlots("mails", 10).rows()).hasSize(1);
    assertThat(claim(2, "orders").rows()).as("without slots").hasSize(2);
    assertThat(claimInSlots(10).rows()).isEmpty();
  }

  /** What ends a lease, and with it frees its slot. */
  private enum End {
    ACK,
    RETRY,
    RESCHEDULE,
    RELEASE,
    RUN_OUT
  }

  @ParameterizedTest
  @EnumSource(End.class)
  void aSlotIsFreeOnceTheRowIsNoLongerLeased(End end) {
    slots().open("orders", 2);
    publish(message("orders").build());
    publish(message("orders").build());
    List<LeaseRef> held = leases(claimInSlots(10));
    publish(message("orders").build());
    publish(message("orders").build());
    assertThat(claimInSlots(10).rows()).isEmpty();

    switch (end) {
      case ACK -> store().ack(held);
      case RETRY ->
          store()
              .retry(
                  held.stream()
                      .map(lease -> new RetryUpdate(lease, Duration.ofHours(1), "failed"))
                      .toList());
      case RESCHEDULE ->
          store()
              .reschedule(
                  held.stream()
                      .map(lease -> new RescheduleUpdate(lease, Duration.ofHours(1)))
                      .toList());
      case RELEASE -> store().release(held);
      case RUN_OUT -> pass(PAST_LEASE);
      default -> throw new AssertionError(end);
    }

    assertThat(claimInSlots(10).rows()).hasSize(2);
    assertThat(claimInSlots(10).rows()).isEmpty();
  }

  @Test
  void aSlotStaysTakenWhileTheLeaseIsRenewed() {
    slots().open("orders", 1);
    publish(message("orders").build());
    publish(message("orders").build());
    List<LeaseRef> held = leases(claimInSlots(10));

    pass(LEASE.minusSeconds(5));
    store().renew(held, LEASE);
    pass(LEASE.minusSeconds(5));

    assertThat(claimInSlots(10).rows()).isEmpty();
  }

  @Test
  void slotsAboveALowerLimitAreNotUsed() {
    slots().open("orders", 5);
    for (int i = 0; i < 5; i++) {
      publish(message("orders").build());
    }

    assertThat(claimInSlots(10).rows()).hasSize(2);
  }

  private SlotStore slots() {
    return store().slots().orElseThrow();
  }

  private ClaimResult claimInSlots(int limit) {
    return claimInSlots("orders", limit);
  }

  /** Claims where two rows may be leased at once. */
  private ClaimResult claimInSlots(String queue, int limit) {
    return claim(
        new ClaimRequest(queue, Range.ALL, limit, BYTES, LEASE, "me", Idle.UNCHANGED, null, 2));
  }

  protected final ClaimResult claim(int limit, String queue) {
    return claim(request(queue, limit, Idle.UNCHANGED));
  }

  protected final ClaimResult claim(ClaimRequest request) {
    return store().claim(request);
  }

  /** Claims one row as an owner who says what it is about to do, and returns its look-ahead. */
  protected final LookAhead claimAs(String owner, Idle idle) {
    return claim(new ClaimRequest("orders", Range.ALL, 1, BYTES, LEASE, owner, idle, null))
        .lookAhead();
  }

  protected static ClaimRequest request(String queue, int limit, Idle idle) {
    return new ClaimRequest(queue, Range.ALL, limit, BYTES, LEASE, "me", idle, null);
  }

  private static ClaimRequest above(ScanBound bound) {
    return within(new Range(bound, null), 10);
  }

  private static ClaimRequest within(Range range, int limit) {
    return new ClaimRequest("orders", range, limit, BYTES, LEASE, "me", Idle.UNCHANGED, null);
  }

  protected static List<Long> ids(ClaimResult result) {
    return map(result, row -> row.lease().id());
  }

  protected static List<LeaseRef> leases(ClaimResult result) {
    return map(result, ClaimedRow::lease);
  }

  private static <T> List<T> map(ClaimResult result, Function<ClaimedRow, T> column) {
    return result.rows().stream().map(column).toList();
  }

  protected static ClaimedRow only(ClaimResult result) {
    assertThat(result.rows()).hasSize(1);
    return result.rows().get(0);
  }
}
