package dev.outbox4j.internal;

import dev.outbox4j.ExceptionRenderer;
import java.io.PrintWriter;
import java.io.Writer;
import java.util.List;

/**
 * The exception and its causes, a bounded line each, and then the stack trace. It stops where the
 * text is long enough: of a deep trace, most would be rendered only to be cut off.
 */
public final class StackTraceRenderer implements ExceptionRenderer {
  // a long message, such as one that quotes SQL, must not push the root out
  private static final int MOST_OF_A_CAUSE = 300;
  private static final int LEAST_OF_A_CAUSE = 60;

  @Override
  public String render(Throwable failure) {
    return render(failure, Integer.MAX_VALUE);
  }

  /** Renders at least so many characters, if there are, and not many more. */
  public String render(Throwable failure, int enough) {
    StringBuilder text = new StringBuilder();
    List<Throwable> causes = Causes.of(failure);
    if (causes.size() > 1) {
      int most = Math.max(LEAST_OF_A_CAUSE, Math.min(MOST_OF_A_CAUSE, enough / causes.size() - 16));
      for (Throwable each : causes) {
        text.append(each == failure ? "" : "caused by ")
            .append(Utf8.bounded(OneLine.of(each.toString()), most))
            .append('\n');
      }
      text.append('\n');
    }
    if (text.length() < enough) {
      try {
        failure.printStackTrace(new PrintWriter(new Bounded(text, enough)));
      } catch (Enough reached) {
        return text.toString();
      }
    }
    return text.toString();
  }

  /** Ends the rendering at the write that reaches the limit. */
  private static final class Bounded extends Writer {
    private final StringBuilder text;
    private final int enough;

    Bounded(StringBuilder text, int enough) {
      this.text = text;
      this.enough = enough;
    }

    @Override
    public void write(String part, int from, int length) {
      text.append(part, from, from + length);
      stopIfEnough();
    }

    @Override
    public void write(char[] part, int from, int length) {
      text.append(part, from, length);
      stopIfEnough();
    }

    private void stopIfEnough() {
      if (text.length() >= enough) {
        throw new Enough();
      }
    }

    @Override
    public void flush() {
      // it is written at once
    }

    @Override
    public void close() {
      // it holds nothing
    }
  }

  /** Not an error: the way out of a method of the user's exception. */
  private static final class Enough extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private Enough() {
      super(null, null, false, false);
    }
  }
}
