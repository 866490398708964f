package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(10)
class ExceptionRendererTest {

  @Test
  void namesTheClassesOfAnExceptionAndItsCauses() {
    Exception failure = new IllegalStateException("secret", new java.io.IOException("secret"));

    assertThat(ExceptionRenderer.classNames().render(failure))
        .isEqualTo("java.lang.IllegalStateException <- java.io.IOException");
  }

  @Test
  void rendersCausesThatFormACircle() {
    Exception one = new IllegalStateException("one");
    Exception two = new IllegalArgumentException("two");
    one.initCause(two);
    two.initCause(one);

    assertThat(ExceptionRenderer.classNames().render(one))
        .isEqualTo("java.lang.IllegalStateException <- java.lang.IllegalArgumentException");
    assertThat(ExceptionRenderer.stackTrace().render(one)).contains("CIRCULAR REFERENCE");
  }
}
