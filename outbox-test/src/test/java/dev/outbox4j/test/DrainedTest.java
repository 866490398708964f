package dev.outbox4j.test;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.util.List;
import org.junit.jupiter.api.Test;

class DrainedTest {
  private final IllegalStateException first = new IllegalStateException("no answer");
  private final IllegalStateException second = new IllegalStateException("closed");

  @Test
  void isContentWhereNothingFailed() {
    Drained drained = new Drained(3, List.of(), 0, 0);

    assertThat(drained.requireNoFailures()).isSameAs(drained);
  }

  @Test
  void showsWhatHandlersThrew() {
    Throwable failure =
        catchThrowable(() -> new Drained(3, List.of(first, second), 2, 0).requireNoFailures());

    assertThat(failure)
        .isInstanceOf(AssertionError.class)
        .hasMessageContainingAll("handlers threw in 2 of 3 runs", "retried 2 times", "no answer")
        .hasCause(first)
        .hasSuppressedException(second);
  }

  @Test
  void failsByWhatNoHandlerThrew() {
    assertThatThrownBy(() -> new Drained(0, List.of(), 1, 0).requireNoFailures())
        .isInstanceOf(AssertionError.class)
        .hasMessageContainingAll("retried 1 times", "look at the last error of what waits");
    assertThatThrownBy(() -> new Drained(0, List.of(), 0, 1).requireNoFailures())
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("1 failed for good");
  }
}
