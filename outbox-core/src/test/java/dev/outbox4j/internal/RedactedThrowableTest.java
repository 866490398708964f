package dev.outbox4j.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.testing.CapturedLogs;
import org.junit.jupiter.api.Test;

class RedactedThrowableTest {
  @Test
  void keepsClassesAndFramesOfAllThatHangsTogether() {
    IllegalStateException thrown =
        new IllegalStateException("secret", new IllegalArgumentException("secret"));
    thrown.addSuppressed(new UnsupportedOperationException("secret"));

    assertThat(CapturedLogs.printed(RedactedThrowable.of(thrown)))
        .startsWith("java.lang.IllegalStateException" + System.lineSeparator())
        .contains("Caused by: java.lang.IllegalArgumentException")
        .contains("Suppressed: java.lang.UnsupportedOperationException")
        .contains("RedactedThrowableTest.keepsClassesAndFrames")
        .doesNotContain("secret");
  }

  @Test
  void endsWhereAChainBitesItsTail() {
    IllegalStateException one = new IllegalStateException("secret");
    IllegalStateException two = new IllegalStateException("secret", one);
    one.initCause(two);

    assertThat(CapturedLogs.printed(RedactedThrowable.of(one)))
        .containsOnlyOnce("Caused by: java.lang.IllegalStateException");
  }

  @Test
  void whatBreaksALineIsReplaced() {
    assertThat(OneLine.of("a\r\nb\u0085c\u2028d\u2029e\u001b[31m")).isEqualTo("a??b?c?d?e?[31m");
    assertThat(OneLine.of(null)).isEqualTo("null");
  }
}
