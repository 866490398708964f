package dev.outbox4j.internal.lease;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.internal.state.EngineParts;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.HeldRow.State;
import dev.outbox4j.internal.state.Lease;
import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.spi.ClaimRequest;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a round of renewals sends, and what becomes of the rows that it leaves to a later one. */
class RowLeasesRoundTest extends RowLeasesFixture {
  private static final Pattern SINCE = Pattern.compile("has not been extended since (\\S+): it");

  @Test
  void aRowThatIsGivenBackIsNotRenewed() {
    HeldRow row = claim("orders", 1, LEASE).get(0);
    pass(HALF);
    leases.renewDue();
    assertThat(row.state()).isEqualTo(State.DECIDED);
    assertThat(row.settlement()).isEqualTo(Settlement.Release.INSTANCE);
    assertThat(renewals()).isZero();
  }

  @Test
  void aRowThatIsGivenBackHasNoPartInTheNextLeaseOfItsBatch() {
    List<HeldRow> rows = claim("orders", 2, LEASE);
    rows.get(0).start(0);
    long over = rows.get(1).batch().lease().expiresAt();
    pass(HALF);
    leases.renewDue();
    assertThat(leaseLeft(rows.get(0))).isEqualTo(LEASE);
    assertThat(rows.get(0).leaseOver(over)).isFalse();
    assertThat(rows.get(1).leaseOver(over)).isTrue();
  }

  @Test
  void aRowThatItsTransactionSettlesIsNotRenewedAndTheOthersAre() {
    List<HeldRow> rows = running("orders", 2);
    HeldRow committing = rows.get(0);
    assertThat(Objects.requireNonNull(committing.run()).commits()).isTrue();
    long over = committing.batch().lease().expiresAt();
    pass(HALF);
    leases.renewDue();
    assertThat(leaseLeft(committing)).isEqualTo(HALF);
    assertThat(leaseLeft(rows.get(1))).isEqualTo(LEASE);
    assertThat(committing.leaseOver(over)).isTrue();
    assertThat(rows.get(1).leaseOver(over)).isFalse();
    assertThat(shared.health().failing()).isFalse();
  }

  @Test
  void aDecidedRowThatAnotherOwnerHasTakenHasNoPartInTheNextLeaseOfItsBatch() {
    HeldRow row = running("orders", 1).get(0);
    EngineParts.decide(row, Settlement.Ack.INSTANCE);
    long over = row.batch().lease().expiresAt();
    pass(LEASE.plus(SECOND)); // the process was suspended
    assertThat(taken(row)).isTrue();
    leases.renewDue();
    assertThat(row.leaseOver(over)).isTrue();
  }

  /** Whether another owner could claim a row. */
  private boolean taken(HeldRow row) {
    ClaimRequest request =
        new ClaimRequest(
            row.queue(),
            ClaimRequest.Range.ALL,
            1,
            1,
            LEASE,
            "another",
            ClaimRequest.Idle.UNCHANGED,
            null);
    return store.claim(request).rows().stream().anyMatch(c -> c.lease().id() == row.id());
  }

  @Test
  void aRowThatIsSettledWhileTheRoundIsAtItIsNotRenewed() {
    List<HeldRow> rows = running("orders", 4);
    store.failWrites(rows.get(0).id(), Fault.ROW, () -> shared.registry().settle(rows.get(3)));
    pass(HALF);
    leases.renewDue();
    assertThat(leaseLeft(rows.get(2))).isEqualTo(LEASE);
    assertThat(leaseLeft(rows.get(3))).isEqualTo(HALF);
  }

  @Test
  void aRowThatIsSettledWhileItsRenewalIsRefusedIsNeitherNamedNorTriedAgain() {
    HeldRow row = running("orders", 1).get(0);
    store.failWrites(row.id(), Fault.ROW, () -> shared.registry().settle(row));
    pass(HALF);
    leases.renewDue();
    assertThat(lastFailure()).isNotEmpty().doesNotContain("has not been extended");
    pass(SECOND);
    leases.renewDue();
    assertThat(renewals()).isEqualTo(1);
    assertThat(shared.health().failing()).isFalse();
  }

  @Test
  void healthRecoversOnceStuckRowsAreSettledOrLost() {
    List<HeldRow> rows = running("orders", 2);
    rows.forEach(row -> store.failWrites(row.id(), Fault.ROW));
    pass(HALF);
    leases.renewDue();
    assertThat(shared.health().failing()).isTrue();
    shared.registry().settle(rows.get(0));
    rows.get(1).lose();
    leases.renewDue();
    assertThat(shared.health().failing()).isFalse();
  }

  @Test
  void aStuckRowThatIsGoneIsNotTriedAgainAndHealthRecovers() {
    HeldRow row = stuck("orders", 1).get(0);
    assertThat(shared.health().failing()).isTrue();
    EngineParts.decide(row, Settlement.Ack.INSTANCE);
    store.unlock(row.id());
    store.ack(List.of(row.lease())); // as if the answer were lost
    pass(SECOND);
    leases.renewDue();
    assertThat(shared.health().failing()).isFalse();
    int before = renewals();
    pass(SECOND);
    leases.renewDue();
    assertThat(renewals()).isEqualTo(before);
  }

  @Test
  void healthSaysSinceWhenALeaseHasNotBeenExtended() {
    stuck("orders", 1);
    Duration stuckFor = Duration.ofHours(1);
    pass(stuckFor);
    Instant before = Instant.now();
    leases.renewDue();
    Instant after = Instant.now();
    Matcher text = SINCE.matcher(lastFailure());
    assertThat(text.find()).isTrue();
    assertThat(Instant.parse(text.group(1)))
        .isBetween(before.minus(stuckFor).truncatedTo(ChronoUnit.SECONDS), after.minus(stuckFor));
  }

  @Test
  void ofAShortLeaseALockedRowIsTriedAgainAfterAnEighth() {
    Duration lease = Duration.ofSeconds(2);
    RowLeases ofShortLease = rowLeases(lease);
    HeldRow row = claim("orders", 1, lease).get(0);
    row.start(0);
    store.lock(row.id());
    pass(lease.dividedBy(2));
    ofShortLease.renewDue();
    int before = renewals();
    pass(lease.dividedBy(8).minusNanos(1));
    ofShortLease.renewDue();
    assertThat(renewals()).isEqualTo(before);
    pass(Duration.ofNanos(1));
    ofShortLease.renewDue();
    assertThat(renewals()).isEqualTo(before + 1);
  }

  @Test
  void aQueueWithTooManyRefusedRowsToFindAllIsTriedAgainInTheNextRound() {
    List<HeldRow> rows = running("orders", 100);
    rows.forEach(row -> store.failWrites(row.id(), Fault.ROW));
    pass(HALF);
    leases.renewDue();
    assertThat(rows).anyMatch(HeldRow::isApart).anyMatch(row -> !row.isApart());
    rows.forEach(row -> store.mend(row.id()));
    pass(SECOND);
    leases.renewDue();
    assertThat(rows)
        .noneMatch(HeldRow::isApart)
        .allSatisfy(row -> assertThat(leaseLeft(row)).isEqualTo(LEASE));
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 3})
  void ofRowsWhoseConnectionIsLostThriceTheOneAtFaultIsFoundWhereverItStands(int fault) {
    List<HeldRow> rows = running("orders", 4);
    store.failWrites(rows.get(fault).id(), Fault.CONNECTION);
    pass(HALF);
    for (int round = 1; round <= 3; round++) {
      assertThat(rows).noneMatch(HeldRow::isApart);
      leases.renewDue();
      pass(SECOND);
    }
    assertThat(rows).filteredOn(HeldRow::isApart).containsExactly(rows.get(fault));
  }

  @Test
  void aRowWhoseConnectionIsLostThriceIsStillOwedItsRenewalIfNothingElseSucceeds() {
    HeldRow row = running("orders", 1).get(0);
    store.failWrites(row.id(), Fault.CONNECTION);
    Lease lease = row.batch().lease();
    long expiresAt = lease.expiresAt();
    pass(HALF);
    for (int round = 1; round <= 3; round++) {
      leases.renewDue();
      assertThat(renewals()).isEqualTo(round);
      assertThat(lease.overdue()).isTrue();
      pass(SECOND);
    }
    assertThat(lease.expiresAt()).isEqualTo(expiresAt);
    assertThat(row.isApart()).isFalse();
  }

  @Test
  void whatARoundHeldAgainstARowIsForgottenIfAnErrorEndedIt() {
    List<HeldRow> rows = running("orders", 2);
    store.failWrites(rows.get(0).id(), Fault.CONNECTION);
    store.failWrites(
        rows.get(1).id(),
        Fault.CONNECTION,
        () -> {
          throw new LinkageError("a class is missing");
        });
    pass(HALF);
    leases.renewDue();
    pass(SECOND);
    leases.renewDue();
    pass(SECOND);
    // halved: the first row's answer is lost by itself, too, and then the second brings the Error
    assertThatThrownBy(leases::renewDue).isInstanceOf(LinkageError.class);
    rows.forEach(row -> store.mend(row.id()));
    int before = renewals();
    leases.renewDue();
    assertThat(renewals()).as("no row is tried by itself").isEqualTo(before + 1);
    assertThat(lastFailure()).doesNotContain("the connection is lost each time");
  }

  @Test
  void aRefusalThatTookASecondIsTheLastStatementOfItsRound() {
    HeldRow row = running("orders", 1).get(0);
    store.failWrites(row.id(), Fault.TIMEOUT, () -> pass(SECOND));
    pass(HALF);
    leases.renewDue();
    assertThat(renewals()).isEqualTo(1);
    assertThat(row.isApart()).isTrue();
  }

  @Test
  void aSearchThatTakesASecondLeavesTheRestToBeTriedAside() {
    List<HeldRow> rows = running("orders", 4);
    store.failWrites(rows.get(3).id(), Fault.ROW);
    store.afterEach(operation -> pass(SECOND)); // what is refused takes no time
    pass(HALF);
    leases.renewDue();
    assertThat(renewals()).as("all four, the first two, the third by itself").isEqualTo(3);
    assertThat(rows).filteredOn(HeldRow::isApart).containsExactly(rows.get(3));
  }

  @Test
  void aRenewalThatTakesASecondAndSucceedsLeavesNoneOfItsQueuesRowsToALaterRound() {
    stuck("payments", 1);
    List<HeldRow> rows = running("orders", 2_001); // more than one statement renews
    pass(HALF.minusMillis(500));
    leases.renewDue(); // tries the stuck row, so that none is tried in the next round
    pass(Duration.ofMillis(500));
    store.afterEach(operation -> pass(SECOND));
    int before = renewals();
    leases.renewDue();
    assertThat(renewals()).isEqualTo(before + 2);
    assertThat(rows).noneMatch(HeldRow::isApart);
  }

  @Test
  void rowsOfASlowQueueAreTriedForNoMoreThanASecondInARound() {
    List<HeldRow> rows = running("orders", 4);
    takesTooLong(rows.get(0));
    pass(HALF);
    leases.renewDue();
    assertThat(rows).allMatch(HeldRow::isApart);
    store.mend(rows.get(0).id());
    store.afterEach(operation -> pass(SECOND));
    leases.renewDue();
    assertThat(rows)
        .filteredOn(HeldRow::isApart)
        .containsExactlyElementsOf(rows.subList(1, rows.size()));
  }

  @Test
  void rowsThatBecomeDueInASlowQueueAreRenewedFewAtFirstAndBeforeTheSlowOne() {
    HeldRow slow = running("orders", 1).get(0);
    takesTooLong(slow);
    pass(HALF);
    leases.renewDue();
    assertThat(slow.isApart()).isTrue();

    List<HeldRow> rows = running("orders", 7);
    pass(HALF);
    int before = renewals();
    leases.renewDue();
    assertThat(renewals()).as("one row, two, four, and the slow one").isEqualTo(before + 4);
    assertThat(rows)
        .noneMatch(HeldRow::isApart)
        .allSatisfy(row -> assertThat(leaseLeft(row)).isEqualTo(LEASE.minus(TOO_LONG)));
    assertThat(slow.isApart()).isTrue();
  }
}
