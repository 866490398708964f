package dev.outbox4j.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Test;

class CausesTest {

  @Test
  void listsAnExceptionAndItsCausesInOrder() {
    Exception root = new Exception("root");
    Exception middle = new CompletionException(root);
    Exception top = new Exception(middle);

    assertThat(Causes.of(top)).containsExactly(top, middle, root);
  }

  @Test
  void listsEachOfACircleOnce() {
    Exception one = new Exception("one");
    Exception two = new Exception("two", one);
    one.initCause(two);

    assertThat(Causes.of(one)).containsExactly(one, two);
  }

  @Test
  void endsWhereEachCauseIsMadeAnew() {
    assertThat(Causes.of(new Endless())).hasSize(100);
  }

  private static final class Endless extends Exception {
    private static final long serialVersionUID = 1L;

    @Override
    public synchronized Throwable getCause() {
      return new Endless();
    }
  }
}
