package dev.outbox4j.internal.lease;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.internal.state.HeldRow;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Which queue has its turn when the renewals of one fail or take long. */
class RowLeasesTurnsTest extends RowLeasesFixture {
  @Test
  void manyRefusedRowsOfOneQueueDoNotKeepTheNextFromBeingRenewed() {
    HeldRow payment = running("payments", 1).get(0);
    pass(SECOND);
    List<HeldRow> orders = running("orders", 100);
    orders.forEach(row -> store.failWrites(row.id(), Fault.ROW));
    store.failWrites(payment.id(), Fault.TRANSIENT);
    pass(HALF.minus(SECOND));
    leases.renewDue(); // of payments, which are served last from now on
    store.mend(payment.id());
    pass(SECOND);
    leases.renewDue();
    assertThat(leaseLeft(payment)).isEqualTo(LEASE);
    assertThat(payment.batch().lease().overdue()).isFalse();
    assertThat(orders.get(0).batch().lease().overdue()).isTrue();
  }

  @Test
  void whileTheServerIsInTroubleARoundSendsOneStatement() {
    stuck("refunds", 1);
    running("orders", 1);
    running("payments", 1);
    pass(HALF);
    int before = renewals();
    store.beforeEach(
        operation -> {
          throw new OutboxStoreException("down", Fault.TRANSIENT, false, null);
        });
    leases.renewDue();
    assertThat(renewals()).isEqualTo(before + 1);
  }

  @Test
  void aQueueThatFailedComesAfterTheOtherInTheNextRound() {
    HeldRow order = running("orders", 1).get(0);
    HeldRow payment = running("payments", 1).get(0);
    List<HeldRow> tried = new ArrayList<>();
    store.failWrites(order.id(), Fault.CONNECTION, () -> tried.add(order));
    store.failWrites(payment.id(), Fault.CONNECTION, () -> tried.add(payment));
    pass(HALF);
    leases.renewDue();
    assertThat(tried).hasSize(1);
    HeldRow failed = tried.get(0);
    HeldRow other = failed == order ? payment : order;
    store.mend(other.id());
    pass(SECOND);
    leases.renewDue();
    assertThat(failed.batch().lease().overdue()).isTrue();
    assertThat(other.batch().lease().overdue()).isFalse();
    assertThat(leaseLeft(other)).isEqualTo(LEASE);
  }

  @Test
  void aQueueThatFailedHasItsOldPlaceAgainOnceItIsRenewed() {
    HeldRow order = running("orders", 1).get(0);
    HeldRow payment = running("payments", 1).get(0);
    store.beforeEach(operation -> pass(Duration.ofMillis(1))); // so that their order can be seen
    pass(HALF);
    leases.renewDue();
    HeldRow first = renewedFirst(order, payment);
    HeldRow second = first == order ? payment : order;

    store.failWrites(first.id(), Fault.TRANSIENT);
    pass(HALF);
    leases.renewDue();
    store.mend(first.id());
    pass(SECOND);
    leases.renewDue();
    assertThat(renewedFirst(order, payment)).isSameAs(second);

    pass(HALF);
    leases.renewDue();
    assertThat(renewedFirst(order, payment)).isSameAs(first);
  }

  @Test
  void slowQueuesAreTriedInTurn() {
    List<HeldRow> orders = running("orders", 3);
    List<HeldRow> payments = running("payments", 3);
    takesTooLong(orders.get(0));
    takesTooLong(payments.get(0));
    pass(HALF);
    leases.renewDue();
    assertThat(orders).allMatch(HeldRow::isApart);
    assertThat(payments).allMatch(HeldRow::isApart);

    store.mend(orders.get(0).id());
    store.mend(payments.get(0).id());
    store.afterEach(operation -> pass(SECOND)); // so that a round has time for one statement
    leases.renewDue();
    pass(LONGEST_PAUSE);
    leases.renewDue();
    assertThat(orders).filteredOn(row -> !row.isApart()).hasSize(1);
    assertThat(payments).filteredOn(row -> !row.isApart()).hasSize(1);
  }

  @Test
  void aQueueWithManySlowRowsDoesNotTryThemAllBeforeAnothersTurn() {
    List<HeldRow> orders = running("orders", 10);
    orders.forEach(this::takesTooLong);
    pass(HALF);
    leases.renewDue();
    HeldRow payment = running("payments", 1).get(0);
    takesTooLong(payment);
    pass(HALF);
    leases.renewDue();
    assertThat(payment.isApart()).isTrue();

    store.mend(payment.id());
    leases.renewDue();
    pass(LONGEST_PAUSE);
    leases.renewDue();
    assertThat(payment.isApart()).isFalse();
  }

  @Test
  void manyRefusedRowsOfOneQueueKeepNoStuckRowOfAnotherFromBeingTriedInTheSameRound() {
    List<HeldRow> orders = stuck("orders", 50);
    HeldRow payment = stuck("payments", 1).get(0);
    assertThat(orders).allMatch(HeldRow::isApart);
    assertThat(payment.isApart()).isTrue();

    orders.forEach(row -> store.unlock(row.id()));
    orders.forEach(row -> store.failWrites(row.id(), Fault.ROW));
    store.unlock(payment.id());
    int before = renewals();
    pass(SECOND);
    leases.renewDue();
    assertThat(orders).allMatch(HeldRow::isApart);
    assertThat(renewals()).as("more than 24 were refused").isGreaterThan(before + 24);
    assertThat(payment.isApart()).isFalse();
  }

  @Test
  void aStuckRowThatTakesTooLongIsTheLastThatIsTriedInItsRound() {
    HeldRow order = stuck("orders", 1).get(0);
    HeldRow payment = running("payments", 1).get(0);
    takesTooLong(payment);
    pass(HALF);
    leases.renewDue();
    assertThat(payment.isApart()).isTrue();

    store.unlock(order.id());
    takesTooLong(order);
    int before = renewals();
    leases.renewDue();
    assertThat(renewals()).isEqualTo(before + 1);
  }

  @Test
  void aStuckRowThatWaitsLongForALostAnswerEndsTheRoundAndTheOtherQueueIsNext() {
    HeldRow order = stuck("orders", 1).get(0);
    HeldRow payment = stuck("payments", 1).get(0);
    store.unlock(order.id());
    store.failWrites(order.id(), Fault.CONNECTION, () -> pass(TOO_LONG));
    store.unlock(payment.id());
    int before = renewals();
    pass(SECOND);
    leases.renewDue();
    assertThat(renewals()).isEqualTo(before + 1);
    assertThat(payment.isApart()).isTrue();

    pass(LONGEST_PAUSE);
    leases.renewDue();
    assertThat(payment.isApart()).isFalse();
    assertThat(order.isApart()).isTrue();
  }

  private HeldRow renewedFirst(HeldRow one, HeldRow other) {
    return leaseLeft(one).compareTo(leaseLeft(other)) < 0 ? one : other;
  }
}
