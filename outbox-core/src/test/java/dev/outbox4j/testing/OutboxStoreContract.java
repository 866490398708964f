package dev.outbox4j.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.QueueScan;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.LookAhead;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.RescheduleUpdate;
import dev.outbox4j.spi.RetryUpdate;
import dev.outbox4j.spi.ScanBound;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
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
  private static final Instant LONG_AGO = Instant.parse("2020-01-01T00:00:00Z");

  /** The store under test. */
  protected abstract OutboxStore store();

  /** Publishes a message whose body is a String or a Payload, and returns the row's id. */
  protected abstract long publish(OutboxMessage message);

  /** Lets so much time go by, as the store sees it. */
  protected abstract void pass(Duration time);

  /** Returns the ids of all rows. */
  protected abstract Set<Long> liveIds();

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
    assertThat(row.type()).isEqualTo("order.placed");
    assertThat(row.orderingKey()).isEqualTo("acme");
    assertThat(row.timerId()).isEqualTo("t-1");
    assertThat(row.payload()).isEqualTo(Payload.ofText("hello"));
    assertThat(row.headers())
        .isEqualTo(Map.of("tenant", "acme \"quoted\" \\ \n ü €", "content-type", "text/plain"));
    assertThat(row.deliveries()).isEqualTo(1);
    assertThat(row.attempts()).isZero();
    assertThat(row.sinceFirstAttempt()).isZero();
    assertThat(row.age()).isBetween(Duration.ZERO, Duration.ofMinutes(1));
    assertThat(row.availableAt()).isBetween(row.createdAt(), row.createdAt().plusSeconds(60));
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
  void claimsOnlyNamedQueues() {
    publish(message("invoices").build());

    assertThat(claim(10, "orders").rows()).isEmpty();
    assertThat(claim(10, "orders", "letters").rows()).isEmpty();
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
  void theLimitHoldsOverSeveralQueuesTogether() {
    List<Long> orders = publish("orders", 4);
    List<Long> letters = publish("letters", 4);

    assertThat(ids(claim(6, "letters", "orders", "none")))
        .containsExactly(
            letters.get(0),
            letters.get(1),
            letters.get(2),
            letters.get(3),
            orders.get(0),
            orders.get(1));
    assertThat(ids(claim(6, "letters", "orders", "none"))).isEqualTo(orders.subList(2, 4));
  }

  @Test
  void rotatingTheQueuesServesAllOfThem() {
    List<String> queues = new ArrayList<>(List.of("a", "b", "c"));
    queues.forEach(queue -> publish(queue, 50));
    Set<String> served = new HashSet<>();

    for (int i = 0; i < 3; i++) {
      ClaimResult result = claim(10, queues.toArray(String[]::new));
      assertThat(result.rows()).hasSize(10);
      result.rows().forEach(row -> served.add(row.lease().queue()));
      queues.add(queues.remove(0));
    }

    assertThat(served).containsExactlyInAnyOrder("a", "b", "c");
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
    assertThat(again.deliveries()).isEqualTo(2);
    assertThat(again.attempts()).isZero();
  }

  @Test
  void anAckDeletesTheRow() {
    LeaseRef lease = only(claim(1, publishOne())).lease();

    assertThat(store().ack(List.of(lease))).containsExactly(lease.id());
    assertThat(liveIds()).isEmpty();
    assertThat(store().ack(List.of(lease))).isEmpty();
  }

  @Test
  void aWriteTouchesOnlyTheRowsItNames() {
    List<Long> all = publish("orders", 5);
    List<LeaseRef> leases = leases(claim(5, "orders"));

    assertThat(store().ack(leases.subList(1, 3))).containsExactlyInAnyOrder(all.get(1), all.get(2));
    assertThat(liveIds()).containsExactlyInAnyOrder(all.get(0), all.get(3), all.get(4));
  }

  @ParameterizedTest
  @EnumSource
  void aStaleOwnerChangesNothing(Write write) {
    LeaseRef stale = only(claim(1, publishOne())).lease();
    pass(PAST_LEASE);
    ClaimedRow owned = only(claim(1, "orders"));

    assertThat(write.on(store(), stale)).isEmpty();

    assertThat(claim(1, "orders").rows()).isEmpty();
    pass(PAST_LEASE);
    ClaimedRow after = only(claim(1, "orders"));
    assertThat(after.lease().token()).isEqualTo(owned.lease().token() + 1);
    assertThat(after.deliveries()).isEqualTo(3);
    assertThat(after.attempts()).isZero();
    assertThat(after.availableAt().plus(PAST_LEASE.multipliedBy(2)))
        .isAfterOrEqualTo(owned.availableAt());
  }

  @ParameterizedTest
  @EnumSource
  void aWriteNeedsTheRightQueue(Write write) {
    LeaseRef lease = only(claim(1, publishOne())).lease();

    assertThat(write.on(store(), new LeaseRef("letters", lease.id(), lease.token()))).isEmpty();
    assertThat(store().ack(List.of(lease))).hasSize(1);
  }

  @ParameterizedTest
  @EnumSource
  void aLeaseThatRanOutUnclaimedIsStillGood(Write write) {
    LeaseRef lease = only(claim(1, publishOne())).lease();
    pass(PAST_LEASE);

    assertThat(write.on(store(), lease)).containsExactly(lease.id());
  }

  @ParameterizedTest
  @EnumSource
  void aLeaseThatWasGivenUpIsGoodForNothing(Write write) {
    List<Write> giveUps = List.of(Write.RETRY, Write.RESCHEDULE, Write.RELEASE);
    publish("orders", giveUps.size());
    List<LeaseRef> leases = leases(claim(10, "orders"));

    for (int i = 0; i < giveUps.size(); i++) {
      assertThat(giveUps.get(i).on(store(), leases.get(i))).hasSize(1);
      assertThat(write.on(store(), leases.get(i))).isEmpty();
    }

    assertThat(liveIds()).hasSize(giveUps.size());
  }

  @ParameterizedTest
  @EnumSource
  void duplicatesInOneCallCountOnce(Write write) {
    publish("orders", 2);
    List<LeaseRef> leases = leases(claim(2, "orders"));
    LeaseRef twice = leases.get(0);

    assertThat(write.on(store(), twice, twice, leases.get(1), twice))
        .containsExactlyInAnyOrder(twice.id(), leases.get(1).id());
    if (write == Write.RETRY) {
      pass(Duration.ofSeconds(20));
      assertThat(claim(2, "orders").rows()).allMatch(row -> row.attempts() == 1);
    }
  }

  @Test
  void aRetryWithoutARunIsDueAfterItsDelayAndCountsNoAttempt() {
    publish("orders", 2);
    List<LeaseRef> leases = leases(claim(2, "orders"));
    Duration delay = Duration.ofSeconds(30);

    assertThat(
            store()
                .retry(
                    List.of(
                        new RetryUpdate(leases.get(0), delay, "put off", false),
                        new RetryUpdate(leases.get(1), delay, "failed", true))))
        .hasSize(2);

    assertThat(claim(2, "orders").rows()).isEmpty();
    pass(Duration.ofSeconds(40));
    List<ClaimedRow> again = claim(2, "orders").rows();
    assertThat(again).extracting(ClaimedRow::attempts).containsExactly(0, 1);
    assertThat(again).extracting(ClaimedRow::deliveries).containsExactly(2, 2);
    assertThat(again.get(0).sinceFirstAttempt()).isZero();
    assertThat(again.get(1).sinceFirstAttempt()).isPositive();
  }

  @Test
  void aRetryIsDueAfterItsDelayAndCountsTheAttempt() {
    LeaseRef lease = only(claim(1, publishOne())).lease();

    assertThat(store().retry(List.of(new RetryUpdate(lease, Duration.ofSeconds(100), "no answer"))))
        .containsExactly(lease.id());

    assertThat(claim(1, "orders").rows()).isEmpty();
    pass(Duration.ofSeconds(60));
    assertThat(claim(1, "orders").rows()).isEmpty();
    pass(Duration.ofSeconds(60));
    ClaimedRow again = only(claim(1, "orders"));
    assertThat(again.attempts()).isEqualTo(1);
    assertThat(again.deliveries()).isEqualTo(2);
    assertThat(again.sinceFirstAttempt())
        .isBetween(Duration.ofSeconds(119), Duration.ofSeconds(180));

    store().retry(List.of(new RetryUpdate(again.lease(), Duration.ZERO, "again")));
    ClaimedRow third = only(claim(1, "orders"));
    assertThat(third.attempts()).isEqualTo(2);
    assertThat(third.sinceFirstAttempt())
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
    assertThat(fresh.attempts()).isZero();
    assertThat(fresh.deliveries()).isEqualTo(1);
    assertThat(fresh.sinceFirstAttempt()).isZero();
    assertThat(fresh.lease().token()).isEqualTo(failed.lease().token() + 1);
  }

  @Test
  void aRenewalExtendsTheLeaseFromNow() {
    LeaseRef lease = only(claim(1, publishOne())).lease();
    pass(Duration.ofSeconds(20));

    assertThat(store().renew(List.of(lease), LEASE)).containsExactly(lease.id());

    pass(Duration.ofSeconds(20));
    assertThat(claim(1, "orders").rows()).isEmpty();
    pass(Duration.ofSeconds(20));
    assertThat(only(claim(1, "orders")).lease().token()).isEqualTo(lease.token() + 1);
  }

  @Test
  void aReleaseGivesTheDeliveryBackButNotTheToken() {
    LeaseRef lease = only(claim(1, publishOne())).lease();

    assertThat(store().release(List.of(lease))).containsExactly(lease.id());

    ClaimedRow again = only(claim(1, "orders"));
    assertThat(again.deliveries()).isEqualTo(1);
    assertThat(again.lease().token()).isEqualTo(lease.token() + 1);
  }

  @Test
  void aDelayedRowIsNotClaimedBeforeItIsDue() {
    publish(message("orders").deliverIn(Duration.ofSeconds(90)).build());

    assertThat(claim(1, "orders").rows()).isEmpty();
    assertThat(claim(1, "orders", "letters").rows()).isEmpty();
    pass(Duration.ofSeconds(91));
    assertThat(claim(1, "letters", "orders").rows()).hasSize(1);
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

    assertThat(ids(claim(request(10, Idle.UNCHANGED, new QueueScan("orders", bound)))))
        .containsExactly(same.get(2), same.get(3), later);
    assertThat(claim(request(10, Idle.UNCHANGED, new QueueScan("orders", bound))).rows()).isEmpty();
    assertThat(ids(claim(10, "orders"))).containsExactly(same.get(0), same.get(1));
  }

  @Test
  void eachQueueHasItsOwnBound() {
    long low = publish(message("a").deliverAt(LONG_AGO).build());
    long high = publish(message("a").deliverAt(LONG_AGO.plusSeconds(2)).build());
    long other = publish(message("b").deliverAt(LONG_AGO).build());
    ScanBound bound = new ScanBound(LONG_AGO.plusSeconds(1), 0);

    assertThat(
            ids(
                claim(
                    request(
                        10, Idle.UNCHANGED, new QueueScan("a", bound), new QueueScan("b", null)))))
        .containsExactly(high, other);
    assertThat(ids(claim(10, "a", "b"))).containsExactly(low);
  }

  @Test
  void aBoundAtARowsOwnPlaceIsExactToTheMicrosecond() {
    publish("orders", 3);
    List<ClaimedRow> rows = claim(10, "orders").rows();
    store().release(rows.stream().map(ClaimedRow::lease).toList());
    ScanBound bound = new ScanBound(rows.get(0).availableAt(), rows.get(0).lease().id());

    assertThat(ids(claim(request(10, Idle.UNCHANGED, new QueueScan("orders", bound)))))
        .containsExactly(rows.get(1).lease().id(), rows.get(2).lease().id());
  }

  @ParameterizedTest
  @EnumSource(names = {"SLEEP", "LOOK_AHEAD"})
  void aLookAheadTellsWhenTheNextRowFallsDue(Idle.Mode mode) {
    Idle idle = new Idle(mode, Duration.ofSeconds(10));
    publish(message("a").deliverIn(Duration.ofSeconds(500)).build());
    publish(message("b").deliverIn(Duration.ofMinutes(5)).build());

    LookAhead both =
        claim(request(1, idle, new QueueScan("a", null), new QueueScan("b", null))).lookAhead();
    LookAhead one = claim(request(1, idle, new QueueScan("a", null))).lookAhead();
    LookAhead none = claim(request(1, idle, new QueueScan("c", null))).lookAhead();

    assertThat(both.nextDueIn()).isBetween(Duration.ofMinutes(4), Duration.ofMinutes(5));
    assertThat(one.nextDueIn()).isBetween(Duration.ofSeconds(440), Duration.ofSeconds(500));
    assertThat(none.nextDueIn()).isNull();
    assertThat(both.oldestTransaction()).isPositive();
    assertThat(none.nextTransaction()).isGreaterThanOrEqualTo(both.oldestTransaction());
  }

  @Test
  void lookAheadOfASweepTellsWhenALeaseRunsOut() {
    publish("a", 1);
    publish(message("a").deliverIn(Duration.ofSeconds(500)).build());
    claim(1, "a");

    LookAhead one = claim(request(1, Idle.LOOK_AHEAD, new QueueScan("a", null))).lookAhead();
    LookAhead both =
        claim(request(1, Idle.LOOK_AHEAD, new QueueScan("b", null), new QueueScan("a", null)))
            .lookAhead();

    assertThat(one.nextDueIn()).isBetween(LEASE.minusSeconds(20), LEASE);
    assertThat(both.nextDueIn()).isBetween(LEASE.minusSeconds(20), LEASE);
  }

  @ParameterizedTest
  @EnumSource
  void everyIdleModeClaimsTheSame(Idle.Mode mode) {
    List<Long> all = publish("orders", 3);
    List<Long> letters = publish("letters", 1);
    Idle idle = new Idle(mode, Duration.ofSeconds(10));

    assertThat(ids(claim(request(2, idle, new QueueScan("orders", null)))))
        .isEqualTo(all.subList(0, 2));
    assertThat(
            ids(
                claim(
                    request(
                        5, idle, new QueueScan("letters", null), new QueueScan("orders", null)))))
        .isEqualTo(Stream.concat(letters.stream(), all.stream().skip(2)).toList());
    store().forget("me");
  }

  /** The writes that carry a lease. */
  @SuppressWarnings("ImmutableEnumChecker") // lambdas without state
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

    private final BiFunction<OutboxStore, List<LeaseRef>, Set<Long>> write;

    Write(BiFunction<OutboxStore, List<LeaseRef>, Set<Long>> write) {
      this.write = write;
    }

    /** Writes, and returns the ids changed. */
    public Set<Long> on(OutboxStore store, LeaseRef... leases) {
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

  protected final ClaimResult claim(int limit, String... queues) {
    return claim(
        request(
            limit,
            Idle.UNCHANGED,
            Stream.of(queues).map(queue -> new QueueScan(queue, null)).toArray(QueueScan[]::new)));
  }

  protected final ClaimResult claim(ClaimRequest request) {
    return store().claim(request);
  }

  protected static ClaimRequest request(int limit, Idle idle, QueueScan... scans) {
    return new ClaimRequest(List.of(scans), limit, LEASE, "me", idle);
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
