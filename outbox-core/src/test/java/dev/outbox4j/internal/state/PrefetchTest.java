package dev.outbox4j.internal.state;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** How many rows are held ready, with a hundred handled a second. */
class PrefetchTest {
  private static final long ROW = TimeUnit.MILLISECONDS.toNanos(10);

  private final Prefetch prefetch = new Prefetch(4, 100);
  private long handled;

  private void handle(int rows) {
    for (int i = 0; i < rows; i++) {
      prefetch.learn(1 + ROW * handled, handled, false);
      handled++;
    }
  }

  @Test
  void asManyAsAreHandledInFiftyMilliseconds() {
    handle(100);
    assertThat(prefetch.target()).isBetween(4, 5);
  }

  @Test
  void asManyAsAreHandledWhileTwiceMoreAreFetched() {
    for (int i = 0; i < 100; i++) {
      prefetch.takes(TimeUnit.MILLISECONDS.toNanos(200));
    }
    handle(100);
    assertThat(prefetch.target()).isBetween(39, 40);
  }

  @Test
  void asManyAsAreHandledInASecondAtMost() {
    for (int i = 0; i < 100; i++) {
      prefetch.takes(TimeUnit.SECONDS.toNanos(30));
    }
    handle(100);
    assertThat(prefetch.target()).isBetween(99, 100);
  }

  @Test
  void noMoreThanUsualOnceMoreIsFetchedSoonAgain() {
    prefetch.takes(TimeUnit.SECONDS.toNanos(30));
    for (int i = 0; i < 100; i++) {
      prefetch.takes(TimeUnit.MILLISECONDS.toNanos(2));
    }
    handle(100);
    assertThat(prefetch.target()).isBetween(4, 5);
  }
}
