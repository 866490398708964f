package dev.outbox4j.internal.state;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.ScanBound;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class HeldRowsTest {
  private final HeldRows registry = new HeldRows();

  @Test
  void aBatchThatIsWithdrawnLeavesOnlyWhatAWorkerHasBegun() {
    List<ClaimedRow> rows =
        List.of(
            EngineParts.row(new ScanBound(EngineParts.SERVER, 1)),
            EngineParts.row(new ScanBound(EngineParts.SERVER, 2)),
            EngineParts.row(new ScanBound(EngineParts.SERVER, 3)));
    ClaimedBatch batch = new ClaimedBatch("orders", rows, 0, 1);
    registry.add(batch);
    HeldRow settled = batch.next();
    HeldRow begun = batch.next();
    registry.settle(settled);
    begun.start(0);

    registry.withdraw(batch);

    assertThat(registry.rows()).isEqualTo(1);
    assertThat(registry.bytes()).isEqualTo(1);
    assertThat(batch.firstLeft()).isSameAs(begun);
    assertThat(registry.batches()).containsExactly(batch);
  }

  @Test
  void aBatchThatIsWithdrawnAsAWholeIsForgotten() {
    ClaimedBatch batch =
        new ClaimedBatch(
            "orders", List.of(EngineParts.row(new ScanBound(EngineParts.SERVER, 1))), 0, 1);
    registry.add(batch);
    registry.withdraw(batch);
    assertThat(registry.batches()).isEmpty();
    assertThat(registry.rows()).isZero();
    assertThat(batch.firstLeft()).isNull();
  }

  @Test
  void rowsOfALimitedQueueAreCountedUntilTheyAreSettledOrParked() {
    HeldRows counting = new HeldRows(Set.of("orders"));
    ClaimedBatch batch = batch("orders");
    counting.add(batch);
    counting.add(batch("mails"));
    assertThat(counting.rowsOf("orders")).isEqualTo(2);

    HeldRow one = batch.next();
    counting.parked(one);
    assertThat(counting.rowsOf("orders")).isEqualTo(1);
    counting.unparked(one);
    assertThat(counting.rowsOf("orders")).isEqualTo(2);
    counting.settle(one);
    counting.settle(one);
    assertThat(counting.rowsOf("orders")).isEqualTo(1);
    counting.withdraw(batch);
    assertThat(counting.rowsOf("orders")).isZero();
  }

  @Test
  void fewerOfALimitedQueueAreToldUntilItIsForgottenAndOfOthersNothingIs() {
    HeldRows counting = new HeldRows(Set.of("orders"));
    ClaimedBatch limited = batch("orders");
    ClaimedBatch other = batch("mails");
    counting.add(limited);
    counting.add(other);

    counting.settle(other.next());
    assertThat(counting.fewerOfLimited()).isFalse();
    counting.settle(limited.next());
    assertThat(counting.fewerOfLimited()).isTrue();
    counting.forgetFewerOfLimited();
    assertThat(counting.fewerOfLimited()).isFalse();
    counting.parked(limited.next());
    assertThat(counting.fewerOfLimited()).isTrue();
  }

  private static ClaimedBatch batch(String queue) {
    return new ClaimedBatch(queue, List.of(row(queue, 1), row(queue, 2)), 0, 1);
  }

  private static ClaimedRow row(String queue, long id) {
    ClaimedRow row = EngineParts.row(new ScanBound(EngineParts.SERVER, id));
    return new ClaimedRow(new LeaseRef(queue, id, 1), row.message(), row.history());
  }
}
