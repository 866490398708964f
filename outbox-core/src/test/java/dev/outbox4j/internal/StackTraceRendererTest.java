package dev.outbox4j.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.ExceptionRenderer;
import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;

class StackTraceRendererTest {
  private final StackTraceRenderer renderer = new StackTraceRenderer();

  @Test
  void isTheDefaultWhoseTextBeginsWithTheCauses() {
    Exception root = new IllegalArgumentException("root");
    Exception failure = new IllegalStateException("top", root);

    String text = ExceptionRenderer.stackTrace().render(failure);

    assertThat(text)
        .isEqualTo(
            "java.lang.IllegalStateException: top\n"
                + "caused by java.lang.IllegalArgumentException: root\n\n"
                + printed(failure));
  }

  @Test
  void theRootIsToldAlsoBehindALongMessage() {
    Exception root = new IllegalArgumentException("root");
    Exception between = new IllegalStateException("m".repeat(3_000), root);
    Exception failure = new IllegalStateException("select\n".repeat(500), between);

    String text = renderer.render(failure, 1_024);

    assertThat(text.indexOf("caused by java.lang.IllegalArgumentException: root"))
        .isBetween(1, 1_000);
    assertThat(text.lines().findFirst().orElseThrow().length()).isBetween(200, 310);
    assertThat(text.lines().skip(4)).as("its whole text").contains("select");
  }

  @Test
  void stopsWhereTheTextIsLongEnough() {
    Deep failure = new Deep(1000);
    String whole = renderer.render(failure);

    for (int enough : new int[] {1, 50, 1000, whole.length()}) {
      String text = renderer.render(failure, enough);

      assertThat(text.length()).isBetween(enough, enough + 200);
      assertThat(whole).startsWith(text);
    }
    assertThat(renderer.render(failure, whole.length() + 1)).isEqualTo(whole);
  }

  @Test
  void writesNoFrameAfterThat() {
    Deep failure = new Deep(1000);

    renderer.render(failure, 1000);

    assertThat(failure.framesWritten).isBetween(1, 100);
  }

  private static String printed(Throwable failure) {
    StringWriter text = new StringWriter();
    failure.printStackTrace(new PrintWriter(text));
    return text.toString();
  }

  /** Writes its trace itself and counts the frames. */
  private static final class Deep extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private final int frames;
    private int framesWritten;

    Deep(int frames) {
      super("deep");
      this.frames = frames;
    }

    @Override
    public void printStackTrace(PrintWriter writer) {
      for (int i = 0; i < frames; i++) {
        framesWritten++;
        writer.println("\tat frame " + i);
      }
    }
  }
}
