package dev.outbox4j.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class LateRowsTest {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

  private long now = 5 * SECOND;
  private final LateRows late = new LateRows(() -> now);

  /**
   * All transactions that were there at the mark have ended, and what is there is looked through.
   */
  private void pass(long oldest) {
    late.oldestIs(oldest, now);
    now += SECOND;
    LateRows.Step step = late.next(List.of(), now);
    step.passed(Long.MAX_VALUE, false);
  }

  private void mark(long next, long newest) {
    now += SECOND;
    assertThat(late.wantsMark(now)).isTrue();
    late.marked(next, newest, now);
  }

  @Test
  void anIdSettlesWithTheMarkAfterTheOneThatSawIt() {
    late.seen(100);
    mark(7, 0);
    pass(7);
    assertThat(late.settled()).as("its transaction may not have been counted as one").isZero();

    late.seen(200);
    mark(8, 0);
    pass(7);
    assertThat(late.settled()).as("a transaction is open that was there at the mark").isZero();
    pass(8);
    assertThat(late.settled()).isEqualTo(100);
  }

  @Test
  void whatWasNotReadYetSettlesTooIfItWasThere() {
    late.seen(100);
    mark(7, 5_000);
    pass(7);
    mark(8, 6_000);
    pass(8);

    assertThat(late.settled()).isEqualTo(5_000);
    assertThat(late.wantsMark(now + SECOND)).as("before it has come there").isFalse();
    late.seen(5_001);
    assertThat(late.wantsMark(now + SECOND)).isTrue();
  }

  @Test
  void nothingIsSettledOnceWhatWasCommittedMeanwhileIsNotKnown() {
    late.seen(100);
    mark(7, 0);
    pass(7);
    mark(8, 0);
    late.oldestIs(8, now);
    now += SECOND;
    LateRows.Step begunBefore = late.next(List.of(), now);
    late.nothingIsSettled();
    begunBefore.passed(Long.MAX_VALUE, false);

    assertThat(late.settled()).isZero();
  }
}
