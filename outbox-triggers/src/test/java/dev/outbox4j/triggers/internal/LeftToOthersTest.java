package dev.outbox4j.triggers.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** For how long messages are left that this node does not know. */
class LeftToOthersTest {
  private final LeftToOthers left = new LeftToOthers();

  @Test
  void nothingIsClaimedForAMomentAfterOneIsLeft() {
    assertThat(left.available()).isEqualTo(LeftToOthers.NO_LIMIT);
    left.leave("a", 1);
    assertThat(left.available()).isZero();
    assertThat(left.untilNext()).isPositive().isLessThanOrEqualTo(Duration.ofMillis(50));
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
        .endsWith(Duration.ofSeconds(1));
    assertThat(Stream.generate(() -> left.leave("b", 1_000_000, 0)).limit(40))
        .as("of another type nothing is known")
        .endsWith(Duration.ofSeconds(30));
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
