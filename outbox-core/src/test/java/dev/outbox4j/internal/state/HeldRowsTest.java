package dev.outbox4j.internal.state;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.spi.ClaimedRow;
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

  private static ClaimedBatch batch(String queue) {
    return new ClaimedBatch(
        queue,
        List.of(
            EngineParts.row(new ScanBound(EngineParts.SERVER, 1)),
            EngineParts.row(new ScanBound(EngineParts.SERVER, 2))),
        0,
        1);
  }
}
