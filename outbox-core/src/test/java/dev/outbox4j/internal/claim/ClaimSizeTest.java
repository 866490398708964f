package dev.outbox4j.internal.claim;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class ClaimSizeTest {
  private final ClaimSize size = new ClaimSize();

  @Test
  void asManyRowsAsThereIsRoomForAreAskedForAsLongAsNoSizeIsKnown() {
    assertThat(size.rows(500, 1)).isEqualTo(500);
    size.learn(10, 0);
    assertThat(size.rows(500, 1)).isEqualTo(500);
  }

  @Test
  void oneAndOneAndAHalfTimesWhatFitsIsAskedForByTheSizeOfTheFirstAnswer() {
    size.learn(10, 1_000);
    assertThat(size.rows(500, 2_000)).isEqualTo(31);
    assertThat(size.rows(20, 2_000)).isEqualTo(20);
    assertThat(size.rows(500, 1)).isEqualTo(1);
  }

  @Test
  void aLaterAnswerMovesTheSizeByAQuarter() {
    size.learn(10, 1_000);
    size.learn(1, 500);
    assertThat(size.rows(500, 2_000)).isEqualTo(16); // by 200 bytes a row
  }
}
