package dev.outbox4j.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.FailureReason;
import dev.outbox4j.Payload;
import dev.outbox4j.internal.state.ClaimedBatch;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.HeldRows;
import dev.outbox4j.internal.state.Lease;
import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.spi.BucketLease;
import dev.outbox4j.spi.BucketStore;
import dev.outbox4j.spi.BucketStore.KeyRange;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.History;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.StoredMessage;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

class KeyChainsTest {
  private static final int MOST = 4;
  private static final int MOST_BYTES = 100;
  private static final long FAR = 1_000_000;
  private static final Settlement DEAD =
      new Settlement.DeadLetter(FailureReason.REJECTED, 1, null, "of a test");

  private final HeldRows registry = new HeldRows();
  private final List<HeldRow> ready = new ArrayList<>();
  private final List<Long> withdrawn = new ArrayList<>();
  private final List<Long> again = new ArrayList<>();
  private final List<Long> onHold = new ArrayList<>();
  private long now;
  private int hungry;

  private final KeyChains.Out out =
      new KeyChains.Out() {
        @Override
        public void ready(List<HeldRow> rows) {
          ready.addAll(rows);
        }

        @Override
        public void withdrawn(List<HeldRow> rows) {
          for (HeldRow row : rows) {
            if (row.withdraw()) {
              withdrawn.add(row.id());
              registry.settle(row);
            }
          }
        }

        @Override
        public void again(HeldRow row, long at) {
          again.add(row.id());
          again.add(at);
        }

        @Override
        public void hungry() {
          hungry++;
        }

        @Override
        public void onHold(HeldRow row) {
          onHold.add(row.id());
        }

        @Override
        public void broken(Throwable failure) {
          throw new AssertionError(failure);
        }
      };

  private final Set<Long> transactional = new HashSet<>();
  private KeyChains chains = chains(false);

  private KeyChains chains(boolean holdsOnDeadLetter) {
    return new KeyChains(
        new KeyChains.Limits(MOST, MOST_BYTES, 2),
        holdsOnDeadLetter,
        row -> transactional.contains(row.id()),
        out,
        () -> now);
  }

  private static BucketStore.Row read(@Nullable String key, long id) {
    return read(key, id, 1);
  }

  private static BucketStore.Row read(@Nullable String key, long id, int bytes) {
    ClaimedRow row =
        new ClaimedRow(
            new LeaseRef("orders", id, 0, new BucketLease(1, 1, false)),
            new StoredMessage(
                "t",
                key,
                null,
                Payload.of(new byte[bytes]),
                Map.of(),
                Instant.EPOCH,
                Instant.EPOCH,
                null),
            new History(1, 0, Duration.ZERO, Duration.ZERO));
    return new BucketStore.Row(BucketStore.Part.RANGE, 1, row, true, Duration.ZERO, false);
  }

  private HeldRow held(BucketStore.Row read) {
    ClaimedBatch batch =
        new ClaimedBatch("orders", List.of(read.row()), 0, new Lease(0, FAR), chains);
    registry.add(batch);
    return batch.at(0);
  }

  /** Reads a row, and holds it if it is expected. */
  private boolean take(@Nullable String key, long id) {
    return take(read(key, id));
  }

  private boolean take(BucketStore.Row read) {
    if (!chains.expect(read)) {
      return false;
    }
    chains.admit(List.of(held(read)));
    return true;
  }

  private HeldRow row(long id) {
    for (ClaimedBatch batch : registry.batches()) {
      HeldRow row = batch.at(0);
      if (row != null && row.id() == id) {
        return row;
      }
    }
    throw new AssertionError(id);
  }

  private List<Long> readyIds() {
    return ready.stream().map(HeldRow::id).toList();
  }

  private HeldRow begin(int index) {
    HeldRow row = ready.get(index);
    assertThat(row.take()).isTrue();
    return row;
  }

  private void end(HeldRow row, Settlement settlement) {
    decide(row, settlement);
    registry.settle(row);
  }

  private static void decide(HeldRow row, Settlement settlement) {
    row.decide(settlement);
    row.tellDecided();
  }

  private List<KeyRange> more() {
    return chains.hungry(10, bucket -> FAR);
  }

  @Test
  void rowsOfAKeyGoOneByOneAndOthersBesideThem() {
    take("a", 1);
    take("a", 2);
    take("b", 3);
    take(null, 4);
    take(null, 5);
    assertThat(readyIds()).containsExactly(1L, 3L, 4L, 5L);
    decide(begin(0), Settlement.Ack.INSTANCE); // not written yet
    assertThat(readyIds()).containsExactly(1L, 3L, 4L, 5L, 2L);
  }

  @Test
  void whatIsNotAckedMustBeWrittenFirst() {
    take("a", 1);
    take("a", 2);
    HeldRow first = begin(0);
    decide(first, new Settlement.DeadLetter(FailureReason.REJECTED, 1, null, "why"));
    assertThat(readyIds()).containsExactly(1L);
    registry.settle(first);
    assertThat(readyIds()).containsExactly(1L, 2L);
  }

  @Test
  void anAckThatCannotBeWrittenHoldsUpItsKeyAlone() {
    take("a", 1);
    take("a", 2);
    take("a", 3);
    take("b", 4);
    take("b", 5);
    HeldRow first = begin(0);
    decide(first, Settlement.Ack.INSTANCE);
    assertThat(readyIds()).containsExactly(1L, 4L, 2L);
    first.tellUnwritten();
    assertThat(withdrawn).as("it takes no room meanwhile").containsExactly(3L);
    assertThat(chains.unwanted(10)).containsExactly("a");
    HeldRow second = begin(2);
    end(second, Settlement.Ack.INSTANCE);
    assertThat(readyIds()).containsExactly(1L, 4L, 2L);
    decide(begin(1), Settlement.Ack.INSTANCE);
    assertThat(readyIds()).containsExactly(1L, 4L, 2L, 5L);
    assertThat(more()).isEmpty();

    registry.settle(first);
    assertThat(more()).containsExactly(new KeyRange("a", 2, FAR));
    assertThat(chains.beginKey(more().get(0))).isTrue();
    take("a", 3);
    assertThat(readyIds()).containsExactly(1L, 4L, 2L, 5L, 3L);
  }

  @Test
  void whatComesToAKeyWhoseAckCannotBeWrittenWaits() {
    take("a", 1);
    HeldRow first = begin(0);
    decide(first, Settlement.Ack.INSTANCE);
    first.tellUnwritten();
    assertThat(take("a", 2)).isFalse();

    registry.settle(first);
    assertThat(more()).containsExactly(new KeyRange("a", 1, FAR));
  }

  @Test
  void whateverCouldNotBeWrittenAtOnceItsKeyGoesOnOnceItIs() {
    chains = chains(true);
    take("retried", 1);
    take("dead", 2);
    for (HeldRow row : List.of(begin(0), begin(1))) {
      decide(
          row,
          row.id() == 1
              ? new Settlement.Retry(Duration.ZERO, "failed")
              : new Settlement.DeadLetter(FailureReason.REJECTED, 1, null, "why"));
      row.tellUnwritten();
      registry.settle(row);
    }
    chains.release("dead", chains.nextOnHold(1).get("dead"));

    assertThat(take("retried", 1)).isTrue();
    assertThat(chains.beginKey(more().get(0))).isTrue();
    assertThat(take("dead", 3)).isTrue();
    assertThat(readyIds()).containsExactly(1L, 2L, 1L, 3L);
  }

  @Test
  void aDeadLetterInBetweenDoesNotLetATransactionPassTheAckBefore() {
    transactional.add(3L);
    take("a", 1);
    take("a", 2);
    take("a", 3);
    HeldRow first = begin(0);
    decide(first, Settlement.Ack.INSTANCE);
    end(begin(1), new Settlement.DeadLetter(FailureReason.REJECTED, 1, null, "why"));
    assertThat(readyIds()).containsExactly(1L, 2L);

    registry.settle(first);
    assertThat(readyIds()).containsExactly(1L, 2L, 3L);
  }

  @Test
  void aRowThatIsCommittedByItsHandlerWaitsUntilTheAckBeforeItIsWritten() {
    transactional.add(2L);
    take("a", 1);
    take("a", 2);
    take("a", 3);
    HeldRow first = begin(0);
    decide(first, Settlement.Ack.INSTANCE);
    assertThat(readyIds()).containsExactly(1L);
    registry.settle(first);
    assertThat(readyIds()).containsExactly(1L, 2L);
  }

  @Test
  void aRetryBlocksItsKeyAndLetsGoOfWhatWaits() {
    now = 100;
    take("a", 1);
    take("a", 2);
    take("a", 3);
    end(begin(0), new Settlement.Retry(Duration.ofNanos(50), "failed"));
    assertThat(again).containsExactly(1L, 150L);
    assertThat(withdrawn).containsExactlyInAnyOrder(2L, 3L);
    assertThat(registry.rows()).isZero();
    assertThat(take("a", 4)).isFalse();
    assertThat(more()).as("nothing is read while it waits").isEmpty();
    assertThat(chains.unwanted(10)).containsExactly("a");
    assertThat(take("a", 1)).isTrue();
    assertThat(readyIds()).containsExactly(1L, 1L);
    assertThat(more()).containsExactly(new KeyRange("a", 1, FAR));
  }

  @Test
  void aRowThatIsNotThereAnyMoreFreesItsKey() {
    take("a", 1);
    take("a", 2);
    end(begin(0), new Settlement.Reschedule(Duration.ofNanos(50)));
    chains.gone(1);
    assertThat(more()).containsExactly(new KeyRange("a", 0, FAR));
    assertThat(chains.blocked()).isZero();
  }

  @Test
  void theRowThatAKeyWaitsForIsLookedAtWhenMoreOfItIsThereButNotAllTheTime() {
    take("a", 1);
    assertThat(chains.look("a", 0, 100)).as("it waits for none").isNull();
    end(begin(0), new Settlement.Reschedule(Duration.ofHours(1)));
    assertThat(take("a", 2)).isFalse();
    assertThat(chains.look("a", 10, 100)).isEqualTo(new KeyChains.Look(1, 10));
    assertThat(chains.look("a", 20, 100)).isEqualTo(new KeyChains.Look(1, 110));
    assertThat(chains.look("a", 30, 100)).as("it will be").isNull();
    assertThat(chains.look("a", 40, 25))
        .as("that is too late")
        .isEqualTo(new KeyChains.Look(1, 40));
    assertThat(chains.look("a", 50, 25)).isEqualTo(new KeyChains.Look(1, 65));
    assertThat(chains.look("a", 500, 100)).isEqualTo(new KeyChains.Look(1, 500));
    chains.gone(1);
    assertThat(chains.look("a", 900, 100)).isNull();
    assertThat(take("a", 2)).isFalse();
    assertThat(more()).containsExactly(new KeyRange("a", 0, FAR));
  }

  @Test
  void aNewRowThatAKeyWaitsForIsLookedAtAtOnce() {
    take("a", 1);
    end(begin(0), new Settlement.Reschedule(Duration.ofHours(1)));
    assertThat(chains.look("a", 10, 100)).isNotNull();
    assertThat(take("a", 1)).isTrue();
    end(begin(1), new Settlement.Reschedule(Duration.ofHours(1)));
    assertThat(chains.look("a", 11, 100)).isEqualTo(new KeyChains.Look(1, 11));
  }

  @Test
  void aKeyWhoseRowBecameADeadLetterIsOnHoldUntilItIsReleased() {
    chains = chains(true);
    take("a", 1);
    take("a", 2);
    take("b", 3);
    end(begin(0), DEAD);
    assertThat(onHold).containsExactly(1L);
    assertThat(withdrawn).containsExactly(2L);
    assertThat(readyIds()).containsExactly(1L, 3L);
    assertThat(take("a", 4)).as("of its key").isFalse();
    assertThat(take("a", 1)).as("put back, while another dead letter may be open").isFalse();
    assertThat(chains.more("a", 1, 1)).isFalse();
    chains.gone(1);
    assertThat(more()).isEmpty();
    assertThat(chains.blocked()).isZero();
    assertThat(chains.onHold()).isEqualTo(1);

    Map<String, Long> asked = chains.nextOnHold(5);
    assertThat(asked.keySet()).containsExactly("a");
    chains.release("a", asked.get("a"));

    assertThat(chains.onHold()).isZero();
    assertThat(more()).containsExactly(new KeyRange("a", 0, FAR));
    chains.beginKey(more().get(0));
    assertThat(take("a", 1)).isTrue();
    assertThat(take("a", 2)).isTrue();
    chains.endKey("a", null);
    assertThat(readyIds()).containsExactly(1L, 3L, 1L);
  }

  @Test
  void aKeyThatWasPutOnHoldAgainIsNotReleasedByAnOlderAnswer() {
    chains = chains(true);
    take("a", 1);
    end(begin(0), DEAD);
    long asked = chains.nextOnHold(5).get("a");
    chains.release("a", asked);
    chains.beginKey(more().get(0));
    take("a", 1);
    chains.endKey("a", null);
    end(begin(1), DEAD);

    chains.release("a", asked);

    assertThat(chains.onHold()).isEqualTo(1);
    assertThat(more()).isEmpty();
  }

  @Test
  void eachKeyOnHoldIsAskedForInTurn() {
    chains = chains(true);
    for (String key : List.of("a", "b", "c")) {
      chains.hold(key, 1, key.charAt(0));
    }
    assertThat(chains.nextOnHold(2).keySet()).containsExactlyInAnyOrder("a", "b");
    assertThat(chains.nextOnHold(2).keySet()).containsExactlyInAnyOrder("c", "a");
    chains.drop(Set.of(1));
    assertThat(chains.nextOnHold(2)).isEmpty();
    assertThat(chains.onHold()).isZero();
  }

  @Test
  void aKeyIsOnHoldWhileARowThatRunsEnds() {
    chains = chains(true);
    take("a", 5);
    HeldRow runs = begin(0);
    chains.hold("a", 1, 2);
    take("a", 6);
    end(runs, Settlement.Ack.INSTANCE);
    assertThat(readyIds()).containsExactly(5L);
    chains.release("a", chains.nextOnHold(1).get("a"));
    assertThat(more()).containsExactly(new KeyRange("a", 1, FAR));
  }

  @Test
  void aKeyHoldsABoundedNumberAndIsReadOn() {
    for (long id = 1; id <= 10; id++) {
      assertThat(take("a", id)).isEqualTo(id <= MOST + 1);
    }
    assertThat(more()).isEmpty();
    for (int i = 0; i < 3; i++) {
      end(begin(i), Settlement.Ack.INSTANCE);
    }
    assertThat(readyIds()).containsExactly(1L, 2L, 3L, 4L);
    assertThat(hungry).isPositive();
    KeyRange range = more().get(0);
    assertThat(range).isEqualTo(new KeyRange("a", 5, FAR));
    assertThat(chains.beginKey(range)).isTrue();
    assertThat(take("a", 6)).isTrue();
    assertThat(take("a", 7)).isTrue();
    chains.endKey("a", null);
    assertThat(more()).as("all are read").isEmpty();
    assertThat(take("a", 11)).isTrue();
  }

  @Test
  void aKeyHoldsABoundedNumberOfBytes() {
    assertThat(take(read("a", 1, 500))).as("one may be larger").isTrue();
    assertThat(take(read("a", 2, 500))).as("as the first runs").isTrue();
    assertThat(take(read("a", 3, 1))).isFalse();
    assertThat(more()).isEmpty();
    end(begin(0), Settlement.Ack.INSTANCE);
    KeyRange range = more().get(0);
    assertThat(chains.rowsThatFit(List.of(range))).isEqualTo(1);
    assertThat(chains.beginKey(range)).isTrue();
    assertThat(take(read("a", 3, MOST_BYTES))).isTrue();
    assertThat(take(read("a", 4, 1))).isFalse();
    assertThat(take(read("b", 5, 1))).isTrue();
    assertThat(take(read("b", 6, MOST_BYTES - 1))).isTrue();
    assertThat(take(read("b", 7, 1))).isTrue();
    assertThat(take(read("b", 8, 1))).isFalse();
  }

  @Test
  void aRowThatCouldNotBeCountedHoldsUpItsKeyUntilItIsReadAgain() {
    take("a", 1);
    BucketStore.Row first = read("a", 2);
    BucketStore.Row second = read("a", 3);
    assertThat(chains.expect(first)).isTrue();
    assertThat(chains.expect(second)).isTrue();
    chains.unexpected(held(first));
    chains.unexpected(held(second));
    chains.waits("a", 1, 2);
    assertThat(chains.blocked()).as("the first runs").isZero();
    end(begin(0), Settlement.Ack.INSTANCE);
    KeyRange range = more().get(0);
    assertThat(range.above()).isEqualTo(1);
    chains.beginKey(range);
    assertThat(chains.expect(first)).isTrue();
    chains.endKey("a", null);
    chains.unexpected(held(first));
    chains.waits("a", 1, 2);
    assertThat(chains.blocked()).isEqualTo(1);
    assertThat(more()).as("what follows").isEmpty();
    assertThat(take("a", 3)).isFalse();
    assertThat(take("a", 2)).isTrue();
    assertThat(more().get(0).above()).isEqualTo(2);
  }

  @Test
  void aRowWhoseHandlerRanAndLeftItAsItWasIsNotReadAtOnce() {
    take("a", 1);
    HeldRow row = ready.get(0);
    assertThat(row.start(0)).isNotNull();
    registry.settle(row); // as when its transaction changed nothing
    assertThat(again).containsExactly(1L, 1_000_000_000L);
  }

  @Test
  void aRowThatWasCommittedLateGoesBeforeThoseThatWait() {
    take("a", 5);
    take("a", 7);
    take("a", 6);
    end(begin(0), Settlement.Ack.INSTANCE);
    end(begin(1), Settlement.Ack.INSTANCE);
    assertThat(readyIds()).containsExactly(5L, 6L, 7L);
  }

  @Test
  void aRowWhoseHandlerNeverBeganIsReadAgainBeforeTheNext() {
    take("a", 1);
    take("a", 2);
    HeldRow row = ready.get(0);
    assertThat(row.withdraw()).isTrue(); // its lease was over
    registry.settle(row);
    assertThat(again).containsExactly(1L, 0L);
    assertThat(readyIds()).containsExactly(1L);
    assertThat(take("a", 2)).isFalse();
  }

  @Test
  void bucketsThatAreGivenUpTakeTheirKeysAlong() {
    take("a", 1);
    take("a", 2);
    HeldRow running = begin(0);
    chains.drop(Set.of(1));
    assertThat(withdrawn).containsExactly(2L);
    end(running, Settlement.Ack.INSTANCE);
    assertThat(readyIds()).containsExactly(1L);
    assertThat(more()).isEmpty();
  }

  @Test
  void aRowThatIsAdmittedAfterItsBucketWasGivenUpIsWithdrawn() {
    BucketStore.Row read = read("a", 1);
    assertThat(chains.expect(read)).isTrue();
    HeldRow row = held(read);
    chains.drop(Set.of(1));
    chains.admit(List.of(row));
    assertThat(ready).isEmpty();
    assertThat(withdrawn).containsExactly(1L);
  }

  @Test
  void aRowThatWasWithdrawnBeforeItIsAdmittedDoesNotHoldUpItsKey() {
    BucketStore.Row read = read("a", 1);
    assertThat(chains.expect(read)).isTrue();
    HeldRow row = held(read);
    assertThat(row.withdraw()).isTrue();
    registry.settle(row);
    chains.admit(List.of(row));
    assertThat(ready).isEmpty();
    assertThat(more()).containsExactly(new KeyRange("a", 0, FAR));
  }

  @Test
  void aKeyWaitsForARowOfItThatIsNotDue() {
    chains.waits("a", 1, 5);
    assertThat(take("a", 6)).isFalse();
    assertThat(take("a", 5)).isTrue();
    assertThat(more()).containsExactly(new KeyRange("a", 5, FAR));
  }

  @Test
  void aKeyWaitsForARowThatIsHeldAndNotItsOwnAndDoesNotPassItBy() {
    take("a", 1);
    assertThat(chains.isHeld("a", 1, 1)).as("one of its own").isFalse();
    assertThat(chains.isHeld("a", 1, 2)).as("while it has rows before it").isFalse();
    assertThat(take("a", 3)).isFalse();
    assertThat(more()).isEmpty();
    end(begin(0), Settlement.Ack.INSTANCE);
    KeyRange range = more().get(0);
    assertThat(range).isEqualTo(new KeyRange("a", 1, FAR));
    assertThat(chains.beginKey(range)).isTrue();
    assertThat(chains.isHeld("a", 1, 2)).as("now it waits for it").isTrue();
    assertThat(take("a", 3)).isFalse();
    chains.endKey("a", null);
    assertThat(more()).isEmpty();
    chains.gone(2);
    assertThat(more()).containsExactly(new KeyRange("a", 1, FAR));
  }

  @Test
  void aRowThatIsExpectedWhenTheOneBeforeItFailsIsNotHeld() {
    take("a", 1);
    BucketStore.Row read = read("a", 2);
    assertThat(chains.expect(read)).isTrue();
    HeldRow second = held(read);
    end(begin(0), new Settlement.Retry(Duration.ofNanos(50), "failed"));
    chains.admit(List.of(second));
    assertThat(withdrawn).containsExactly(2L);
    assertThat(take("a", 1)).isTrue();
    end(begin(1), Settlement.Ack.INSTANCE);
    assertThat(readyIds()).containsExactly(1L, 1L);
    assertThat(more()).containsExactly(new KeyRange("a", 1, FAR));
  }

  @Test
  void aRowThatIsNotDueIsNotWaitedForWhileOneBeforeItIsExpected() {
    BucketStore.Row read = read("a", 1);
    assertThat(chains.expect(read)).isTrue();
    chains.waits("a", 1, 2);
    chains.admit(List.of(held(read)));
    assertThat(readyIds()).containsExactly(1L);
    assertThat(more()).as("nothing to read until the key comes to it").isEmpty();
    end(begin(0), Settlement.Ack.INSTANCE);
    assertThat(more()).containsExactly(new KeyRange("a", 1, FAR));
  }

  @Test
  void whatWaitsBehindARowThatIsFoundLateIsReadAgainWithIt() {
    take("a", 1);
    take("a", 3);
    assertThat(chains.more("a", 1, 2)).isFalse();
    assertThat(withdrawn).containsExactly(3L);
    end(begin(0), Settlement.Ack.INSTANCE);
    assertThat(readyIds()).containsExactly(1L);
    assertThat(more()).containsExactly(new KeyRange("a", 1, FAR));
  }

  @Test
  void whatWaitsBehindARowWhoseLeaseIsOverIsReadAgainWithIt() {
    take("a", 1);
    take("a", 2);
    take("a", 3);
    HeldRow second = row(2);
    assertThat(second.withdraw()).isTrue();
    registry.settle(second);
    assertThat(withdrawn).containsExactly(3L);
    end(begin(0), Settlement.Ack.INSTANCE);
    assertThat(readyIds()).containsExactly(1L);
    assertThat(more()).containsExactly(new KeyRange("a", 1, FAR));
  }

  @Test
  void theRowThatItsKeyWaitsForIsLookedAtIfItIsFound() {
    take("a", 1);
    end(begin(0), new Settlement.Retry(Duration.ofNanos(50), "failed"));
    assertThat(chains.more("a", 1, 1)).isTrue();
    assertThat(chains.more("a", 1, 2)).isFalse();
  }

  @Test
  void anOlderRowThatIsFoundGoesBeforeOneThatWaitsForItsRetry() {
    take("a", 5);
    end(begin(0), new Settlement.Retry(Duration.ofHours(1), "failed"));
    assertThat(chains.more("a", 1, 3)).isFalse();
    assertThat(chains.more("a", 1, 2)).isFalse();
    assertThat(chains.blocked()).isZero();
    assertThat(take("a", 5)).as("though it is due now").isFalse();
    KeyRange range = more().get(0);
    assertThat(range).isEqualTo(new KeyRange("a", 1, FAR));

    assertThat(chains.beginKey(range)).isTrue();
    assertThat(take("a", 2)).isTrue();
    assertThat(take("a", 3)).isTrue();
    chains.waits("a", 1, 5);
    assertThat(take("a", 6)).isFalse();
    chains.endKey("a", null);
    assertThat(more()).as("while older ones are there").isEmpty();

    end(begin(1), Settlement.Ack.INSTANCE);
    end(begin(2), Settlement.Ack.INSTANCE);
    assertThat(readyIds()).containsExactly(5L, 2L, 3L);
    range = more().get(0);
    assertThat(range).isEqualTo(new KeyRange("a", 4, FAR));
    assertThat(chains.beginKey(range)).isTrue();
    chains.waits("a", 1, 5);
    chains.endKey("a", null);
    assertThat(chains.blocked()).isEqualTo(1);
    assertThat(more()).isEmpty();
    assertThat(take("a", 5)).isTrue();
  }

  @Test
  void anOlderRowThatIsReadByItsIdGoesBeforeOneThatWaitsForItsRetry() {
    take("a", 5);
    end(begin(0), new Settlement.Retry(Duration.ofHours(1), "failed"));
    assertThat(take("a", 3)).as("it is read with its key").isFalse();
    assertThat(more()).containsExactly(new KeyRange("a", 2, FAR));
  }

  @Test
  void anOlderRowThatIsFoundWhileOneRunsGoesBeforeItsRetry() {
    take("a", 5);
    HeldRow runs = begin(0);
    assertThat(chains.more("a", 1, 3)).isFalse();
    end(runs, new Settlement.Retry(Duration.ofHours(1), "failed"));
    assertThat(chains.blocked()).isZero();
    assertThat(more()).containsExactly(new KeyRange("a", 2, FAR));
  }

  @Test
  void anOlderRowThatWaitsWhileOneRunsGoesBeforeItsRetry() {
    take("a", 5);
    take("a", 3);
    end(begin(0), new Settlement.Retry(Duration.ofHours(1), "failed"));
    assertThat(withdrawn).containsExactly(3L);
    assertThat(more()).containsExactly(new KeyRange("a", 2, FAR));
  }

  @Test
  void anOlderRowThatIsExpectedWhenOneFailsGoesBeforeItsRetry() {
    take("a", 5);
    BucketStore.Row read = read("a", 3);
    assertThat(chains.expect(read)).isTrue();
    HeldRow older = held(read);
    end(begin(0), new Settlement.Retry(Duration.ofHours(1), "failed"));
    chains.admit(List.of(older));
    assertThat(withdrawn).containsExactly(3L);
    assertThat(more()).containsExactly(new KeyRange("a", 2, FAR));
  }

  @Test
  void aKeyComesToWaitForAnOlderRowThatIsFoundAndNotDue() {
    take("a", 5);
    end(begin(0), new Settlement.Retry(Duration.ofSeconds(1), "failed"));
    chains.waits("a", 1, 3);
    KeyRange range = more().get(0);
    assertThat(range).isEqualTo(new KeyRange("a", 2, FAR));
    chains.beginKey(range);
    chains.waits("a", 1, 3);
    chains.waits("a", 1, 5);
    chains.endKey("a", null);
    assertThat(take("a", 5)).as("its time has come").isFalse();
    assertThat(chains.blocked()).isEqualTo(1);
    assertThat(take("a", 3)).isTrue();
  }

  @Test
  void anOlderRowThatIsFoundWaitsForAHandlerOfAnEarlierTimeAsOwner() {
    take("a", 5);
    HeldRow runs = begin(0);
    loseAndRegain(runs);
    assertThat(chains.more("a", 1, 3)).isFalse();
    assertThat(take("a", 2)).isFalse();
    assertThat(chains.isHeld("a", 1, 5)).as("it is told when that ends").isFalse();
    chains.waits("a", 1, 5); // another owner let it be retried
    assertThat(more()).isEmpty();
    assertThat(chains.blocked()).isEqualTo(1);

    runs.lose();
    end(runs, Settlement.Ack.INSTANCE);

    assertThat(more()).containsExactly(new KeyRange("a", 1, FAR));
  }

  private void loseAndRegain(HeldRow... heldBefore) {
    chains.drop(Set.of(1));
    chains.await(List.of(heldBefore));
  }

  @Test
  void nothingOfAKeyBeginsUntilAllThatItHadBeforeItsBucketWasLostHaveEnded() {
    for (boolean ackIsFirst : new boolean[] {true, false}) {
      ready.clear();
      chains = chains(false);
      take("a", 1);
      take("a", 2);
      HeldRow acked = begin(0);
      decide(acked, Settlement.Ack.INSTANCE);
      HeldRow runs = begin(1);
      if (ackIsFirst) {
        loseAndRegain(acked, runs);
      } else {
        loseAndRegain(runs, acked);
      }
      acked.missing = true;
      registry.settle(acked);
      assertThat(take("a", 1)).as("beside the second").isFalse();
      assertThat(more()).isEmpty();
      int hungryBefore = hungry;

      end(runs, new Settlement.Retry(Duration.ofHours(1), "failed"));

      assertThat(hungry).isGreaterThan(hungryBefore);
      assertThat(more()).containsExactly(new KeyRange("a", 0, FAR));
      chains.beginKey(more().get(0));
      assertThat(take("a", 1)).isTrue();
      assertThat(readyIds()).containsExactly(1L, 2L, 1L);
    }
  }

  @Test
  void aKeyThatIsReleasedWaitsForAHandlerOfAnEarlierTimeAsOwner() {
    chains = chains(true);
    take("a", 2);
    HeldRow runs = begin(0);
    loseAndRegain(runs);
    chains.hold("a", 1, 2); // another owner had it, and let it become a dead letter
    chains.release("a", chains.nextOnHold(1).get("a"));
    assertThat(take("a", 3)).isFalse();
    assertThat(more()).isEmpty();

    runs.lose();
    end(runs, DEAD);

    assertThat(more()).containsExactly(new KeyRange("a", 1, FAR));
    assertThat(chains.onHold()).isZero();
  }

  @Test
  void aRowThatEndedBeforeItIsAwaitedIsNot() {
    take("a", 1);
    HeldRow first = begin(0);
    chains.drop(Set.of(1));
    end(first, Settlement.Ack.INSTANCE);
    chains.await(List.of(first));
    assertThat(take("a", 2)).isTrue();
  }

  @Test
  void aDeadLetterWhoseIdARowHasLetsTheKeyThatWaitsForTheRowGoOn() {
    chains = chains(true);
    chains.waits("a", 1, 7);
    chains.hold("b", 1, 7);
    assertThat(chains.isFull()).isTrue();
    assertThat(chains.blocked()).isEqualTo(1);
    chains.gone(7);
    assertThat(chains.blocked()).isZero();
    assertThat(chains.onHold()).isEqualTo(1);
    assertThat(more()).containsExactly(new KeyRange("a", 6, FAR));
  }

  @Test
  void aKeyThatIsPutOnHoldComesBackToTheRowThatItWaitedFor() {
    chains = chains(true);
    chains.waits("a", 1, 2);
    chains.hold("a", 1, 5);
    chains.release("a", chains.nextOnHold(1).get("a"));
    assertThat(more()).containsExactly(new KeyRange("a", 1, FAR));
  }

  @Test
  void anOlderRowThatIsFoundWaitsWhileItsKeyIsOnHold() {
    chains = chains(true);
    take("a", 5);
    end(begin(0), DEAD);
    assertThat(chains.more("a", 1, 3)).isFalse();
    assertThat(more()).isEmpty();
    assertThat(chains.onHold()).isEqualTo(1);
    chains.release("a", chains.nextOnHold(1).get("a"));
    assertThat(more()).containsExactly(new KeyRange("a", 2, FAR));
  }

  /** One key of many rows, and all that can happen to it in any order. */
  @Test
  @Tag("once")
  void noRowIsBegunBeforeThoseThatPrecedeItAreDone() {
    for (int seed = 0; seed < 3_000; seed++) {
      new OneKey(seed).run();
    }
  }

  @Test
  void manyKeysThatWaitAreToo() {
    chains.waits("a", 1, 1);
    assertThat(chains.isFull()).isFalse();
    chains.waits("b", 1, 2);
    assertThat(chains.isFull()).isTrue();
    chains.gone(1);
    assertThat(chains.isFull()).isFalse();
  }

  @Test
  void onceClosedNothingGoesOn() {
    take("a", 1);
    take("a", 2);
    take("a", 3);
    HeldRow running = begin(0);
    chains.close();
    assertThat(withdrawn).containsExactlyInAnyOrder(2L, 3L);
    end(running, Settlement.Ack.INSTANCE);
    assertThat(readyIds()).containsExactly(1L);
  }

  @Test
  void aRowThatRunsAndIsToBeRetriedLeavesItsKeyOnHold() {
    chains = chains(true);
    take("k", 5);
    HeldRow runs = row(5);
    chains.hold("k", 1, 3); // a dead letter of the key is open
    runs.start(0);
    decide(runs, new Settlement.Retry(Duration.ofSeconds(1), "of a test"));
    registry.settle(runs);

    assertThat(chains.onHold()).isEqualTo(1);
    assertThat(again).isEmpty();
  }

  @Test
  void aLargeRowIsReadAgainOnlyOnceThereIsRoomForIt() {
    take("k", 1);
    take(read("k", 2, 40));
    assertThat(take(read("k", 3, 80))).isFalse();
    assertThat(chains.hungry(64, bucket -> 100)).isEmpty();

    row(1).start(0);
    decide(row(1), Settlement.Ack.INSTANCE);
    registry.settle(row(1));
    assertThat(chains.hungry(64, bucket -> 100)).containsExactly(new KeyRange("k", 2, 100));
  }

  @Test
  void aKeyWhoseBucketIsNotReadNowIsNotAskedFor() {
    chains.more("k", 1, 3);
    assertThat(chains.hungry(64, bucket -> 0)).isEmpty();
    assertThat(chains.hungry(64, bucket -> 3)).containsExactly(new KeyRange("k", 2, 3));
  }

  @Test
  void itIsKnownFromWhichRowOnAKeyIsReadInItsTurn() {
    assertThat(chains.isKnown("k", 3)).isFalse();
    chains.more("k", 1, 3);
    assertThat(chains.isKnown("k", 2)).isFalse();
    assertThat(chains.isKnown("k", 3)).isTrue();
    assertThat(chains.isKnown("k", 9)).isTrue();
    assertThat(chains.isKnown("other", 9)).isFalse();
  }
}
