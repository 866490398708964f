package dev.outbox4j.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class DueLookTest {
  private final DueLook look = new DueLook(0);

  private static long millis(long count) {
    return TimeUnit.MILLISECONDS.toNanos(count);
  }

  private void look(long now, int known, boolean more) {
    assertThat(look.isDue(now)).isTrue();
    look.looked(now);
    for (int i = 0; i < known; i++) {
      look.foundKnown();
    }
    look.ended(more);
  }

  @Test
  void isDueAtOnceAndThenFiveTimesASecond() {
    look(0, 0, false);
    assertThat(look.isDue(millis(199))).isFalse();
    look(millis(200), 999, false);
    assertThat(look.isDue(millis(399))).isFalse();
    assertThat(look.isDue(millis(400))).isTrue();
  }

  @Test
  void goesOnWhileThereIsMore() {
    look(0, 600, true);
    assertThat(look.hasMore()).isTrue();
    look(1, 600, false);
    assertThat(look.hasMore()).isFalse();
    assertThat(look.isDue(millis(399))).as("1,200 of the pass were known").isFalse();
    assertThat(look.isDue(millis(401))).isTrue();
  }

  @Test
  void isRarerAfterManyRowsThatAreKnownAndNeverRarerThanEachFiveSeconds() {
    look(0, 10_000, false);
    assertThat(look.isDue(millis(2_199))).isFalse();
    look(millis(2_200), 32_000, false);
    assertThat(look.isDue(millis(7_199))).isFalse();
    look(millis(7_200), 0, false);
    assertThat(look.isDue(millis(7_400))).isTrue();
  }

  @Test
  void isDueWhenARowFallsDueThatIsKnownOf() {
    look(0, 10_000, false);
    assertThat(look.untilDue(0)).isEqualTo(Long.MAX_VALUE);
    look.nextAt(millis(50));
    look.alsoAt(millis(70));
    assertThat(look.untilDue(millis(10))).isEqualTo(millis(40));
    look.alsoAt(millis(30));
    assertThat(look.isDue(millis(29))).isFalse();
    look(millis(30), 0, false);
    assertThat(look.untilDue(millis(30))).isEqualTo(Long.MAX_VALUE);
  }

  @Test
  void isDueWhenThereIsANewBucket() {
    look(0, 10_000, false);
    look.restart();
    assertThat(look.isDue(1)).isTrue();
  }
}
