package dev.outbox4j.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.state.EngineParts;
import dev.outbox4j.internal.state.Events;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.OpenDeadLetters;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class DeadLetterHoldTest {
  private static final int MOST = 2;
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

  private final EngineThreads threads =
      new EngineThreads("orders", DeadLetterHoldTest.class.getClassLoader());
  private final Shared shared =
      EngineParts.shared(threads, new Events("orders", threads, List.of()), Duration.ofMinutes(1));
  private final Letters letters = new Letters();
  private final KeyChains chains =
      new KeyChains(new KeyChains.Limits(4, 100, MOST), true, row -> false, new Nowhere(), () -> 0);
  private final DeadLetterHold hold =
      new DeadLetterHold("orders", letters, chains, shared, MOST, 0);

  /** Open dead letters: of each key its bucket. */
  private static final class Letters implements OpenDeadLetters {
    private final Map<String, Integer> open = new TreeMap<>();
    private boolean broken;

    @Override
    public List<OpenKey> ofBuckets(String queue, Set<Integer> buckets, int most) {
      if (broken) {
        throw new OutboxStoreException(
            "of a test", OutboxStoreException.Fault.TRANSIENT, false, null);
      }
      return open.entrySet().stream()
          .filter(each -> buckets.contains(each.getValue()))
          .map(each -> new OpenKey(each.getKey(), each.getValue(), 1))
          .limit(most)
          .toList();
    }

    @Override
    public Set<String> among(String queue, Set<String> keys) {
      Set<String> among = new TreeSet<>(keys);
      among.retainAll(open.keySet());
      return among;
    }
  }

  /** Nothing is handled. */
  private static final class Nowhere implements KeyChains.Out {
    @Override
    public void ready(List<HeldRow> rows) {
      assertThat(rows).isEmpty();
    }

    @Override
    public void withdrawn(List<HeldRow> rows) {
      assertThat(rows).isEmpty();
    }

    @Override
    public void again(HeldRow row, long at) {
      throw new AssertionError(row);
    }

    @Override
    public void hungry() {}

    @Override
    public void onHold(HeldRow row) {
      throw new AssertionError(row);
    }

    @Override
    public void broken(Throwable failure) {
      throw new AssertionError(failure);
    }
  }

  @Test
  void bucketsWithMoreKeysThanMayBeOnHoldAreNotAdoptedUntilSomeOfTheseAreResolved() {
    letters.open.putAll(Map.of("a", 1, "b", 2, "c", 2));
    assertThat(hold.adopt(Set.of(1, 2), 0)).isFalse();
    assertThat(chains.onHold()).as("none of them goes on meanwhile, as none is read").isZero();
    assertThat(shared.health().failing()).isTrue();
    assertThat(hold.mayAdopt(0)).as("it costs something to ask").isFalse();
    assertThat(hold.untilDue(0)).isEqualTo(5 * SECOND);

    letters.open.remove("c");
    assertThat(hold.mayAdopt(5 * SECOND)).isTrue();
    assertThat(hold.adopt(Set.of(1, 2), 5 * SECOND)).isTrue();
    assertThat(chains.onHold()).isEqualTo(2);
    assertThat(shared.health().failing()).isFalse();
  }

  @Test
  void keysThatAreOnHoldAlreadyCountAndHealthTellsUntilThereIsNothingMoreToAdopt() {
    letters.open.putAll(Map.of("a", 1, "b", 2, "c", 2));
    assertThat(hold.adopt(Set.of(1), 0)).isTrue();
    assertThat(hold.adopt(Set.of(2), 0)).isFalse();
    assertThat(hold.ask(SECOND)).as("that of the first is open still").isFalse();
    assertThat(shared.health().failing()).as("the second is not read").isTrue();

    hold.adopted(); // another owner has it
    assertThat(shared.health().failing()).isFalse();
  }

  @Test
  void healthTellsThatBucketsCouldNotBeAskedForUntilTheyAreAdopted() {
    letters.open.put("a", 1);
    assertThat(hold.adopt(Set.of(1), 0)).isTrue();
    letters.broken = true;
    assertThat(hold.adopt(Set.of(2), 0)).isFalse();
    assertThat(hold.mayAdopt(0)).isFalse();
    letters.open.clear();
    assertThat(hold.ask(SECOND)).as("the other key goes on").isTrue();
    assertThat(shared.health().failing()).isTrue();

    letters.broken = false;
    assertThat(hold.mayAdopt(SECOND)).isTrue();
    assertThat(hold.adopt(Set.of(2), SECOND)).isTrue();
    assertThat(shared.health().failing()).isFalse();
  }
}
