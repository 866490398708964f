package dev.outbox4j.triggers.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** For how long messages are left that this node does not know. */
class LeftToOthersTest {
  private final AtomicLong now =
      new AtomicLong(Long.MAX_VALUE - 1_000_000); // may pass the greatest
  private final LeftToOthers left = new LeftToOthers(now::get);
  private final AtomicLong ids = new AtomicLong();

  @Test
  void nothingIsClaimedForAMomentAfterOneIsLeft() {
    assertThat(left.available()).isEqualTo(LeftToOthers.NO_LIMIT);
    left.leave("a", 1);
    assertThat(left.available()).isZero();
    assertThat(left.untilNext()).isEqualTo(Duration.ofMillis(50));
    now.addAndGet(Duration.ofMillis(50).toNanos());
    assertThat(left.available()).isEqualTo(LeftToOthers.NO_LIMIT);
  }

  @Test
  void manyMessagesAreEachLetGoOfAtOnce() {
    assertThat(LongStream.range(0, 1_000).mapToObj(id -> left.leave("a", id)))
        .containsOnly(Duration.ZERO);
  }

  @Test
  void oneThatNobodyTakesIsLeftForLongerAndLongerUpToHalfAMinute() {
    List<Duration> times = Stream.generate(() -> left.leave("a", 7)).limit(40).toList();
    assertThat(times.subList(0, 20)).containsOnly(Duration.ZERO);
    assertThat(times.subList(20, 40)).isSorted().startsWith(Duration.ofMillis(50));
    assertThat(times.get(39)).isEqualTo(Duration.ofSeconds(30));
  }

  @Test
  void oneThatOthersAreSeenToHandleIsLeftForASecondAtMost() {
    Stream.generate(() -> left.leave("a", 7, 0)).limit(40).forEach(time -> {});
    assertThat(left.leave("a", 7, 1)).as("others had it meanwhile").isEqualTo(Duration.ZERO);
    List<Duration> times = Stream.generate(() -> left.leave("a", 7, 1)).limit(40).toList();
    assertThat(times).isSorted().endsWith(Duration.ofSeconds(1));
    assertThat(LongStream.range(100, 10_000).mapToObj(id -> left.leave("a", id, 0)))
        .as("also where there are very many of the type")
        .containsOnly(Duration.ZERO);
    assertThat(Stream.generate(() -> left.leave("b", 1_000_000, 0)).limit(40))
        .as("of another type nothing is known")
        .endsWith(Duration.ofSeconds(30));
  }

  @Test
  void theMoreOfWhatIsClaimedOthersHandleTheLongerNothingIsClaimed() {
    assertThat(momentAfter(100, 100)).as("not known to be handled").isEqualTo(50);
    left.handled("a");
    assertThat(momentAfter(300, 100)).isEqualTo(10);
    assertThat(momentAfter(300, 225)).isEqualTo(17);
    for (int i = 0; i < 10; i++) {
      momentAfter(300, 300);
    }
    assertThat(momentAfter(300, 300)).isEqualTo(1_000);
    assertThat(momentAfter(300, 0)).isEqualTo(10);
  }

  @Test
  void afterAFewOthersHaveTimeToClaimThem() {
    left.handled("a");
    assertThat(momentAfter(1, 1)).isEqualTo(50);
    assertThat(momentAfter(100, 7)).isEqualTo(50);
  }

  /** In milliseconds, after a claim of so many of which so many are left. */
  private long momentAfter(int claimed, int others) {
    left.take(claimed);
    for (int i = 0; i < others; i++) {
      assertThat(left.leave("a", ids.incrementAndGet())).isEqualTo(Duration.ZERO);
    }
    return left.moment("a").toMillis();
  }

  @Test
  void thatOthersHandleATypeMakesUpForAllThatWereLeft() {
    LongStream.range(0, 5_000).forEach(id -> left.leave("a", id));
    assertThat(left.leave("a", 5_000)).isPositive();
    left.handled("a");
    assertThat(LongStream.range(5_001, 50_000).mapToObj(id -> left.leave("a", id)))
        .containsOnly(Duration.ZERO);
    assertThat(left.leave("b", 1)).isEqualTo(Duration.ZERO);
    assertThat(left.types()).containsExactly("a", "b");
  }

  /** However many they are, and however often each was left. */
  @Test
  void ofVeryManyMessagesOfATypeNoneKeepsThisNodeFromClaimingOthers() {
    List<Duration> times =
        LongStream.range(0, 100_000).mapToObj(id -> left.leave("a", id % 20_000)).toList();
    assertThat(times.subList(0, 1_000)).containsOnly(Duration.ZERO);
    assertThat(times.subList(1_000, 100_000)).doesNotContain(Duration.ZERO).isSorted();
    assertThat(times.get(1_000)).isEqualTo(Duration.ofMillis(1_600));
    assertThat(times.get(99_999)).isEqualTo(Duration.ofSeconds(30));
    assertThat(left.leave("b", 1)).isEqualTo(Duration.ZERO);
  }

  /** As of a timer that this node does not have, for a night. */
  @Test
  void thoseThatComeOneByOneAreLetGoOfAtOnceHoweverLongThatGoesOn() {
    for (int i = 0; i < 50_000; i++) {
      assertThat(left.leave("a", i)).isEqualTo(Duration.ZERO);
      assertThat(left.leave("a", i)).as("claimed here again").isEqualTo(Duration.ZERO);
      now.addAndGet(Duration.ofSeconds(1).toNanos());
    }
  }

  /**
   * Many wait for others, each for half a minute: that many are left is not forgotten meanwhile.
   */
  @Test
  void whatNobodyTakesIsLeftForLongAlsoAfterHours() {
    List<Duration> times = new ArrayList<>();
    for (int round = 0; round < 300; round++) {
      for (int id = 0; id < 2_000; id++) {
        times.add(left.leave("a", id));
      }
      now.addAndGet(times.get(times.size() - 1).toNanos());
    }
    assertThat(times.subList(times.size() - 200_000, times.size()))
        .containsOnly(Duration.ofSeconds(30));
  }

  @Test
  void aTypeIsNewOnce() {
    assertThat(left.isNew("a")).isTrue();
    left.leave("a", 1);
    assertThat(left.isNew("a")).isFalse();
    assertThat(left.isNew("b")).isTrue();
    left.leave("0", 2);
    assertThat(left.types()).containsExactly("0", "a");
  }
}
