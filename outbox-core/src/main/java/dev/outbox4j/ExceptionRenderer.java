package dev.outbox4j;

import dev.outbox4j.internal.Causes;
import dev.outbox4j.internal.StackTraceRenderer;
import java.util.stream.Collectors;

/**
 * Turns a handler's exception into the text that is kept with the row ({@code last_error}) and with
 * the dead letter ({@code last_exception}). Replace it to keep secrets out. What it returns is
 * bounded afterwards, so it need not be.
 */
@FunctionalInterface
public interface ExceptionRenderer {

  /**
   * Renders an exception.
   *
   * @param failure what the handler threw
   * @return the text to keep
   */
  String render(Throwable failure);

  /**
   * {@return the default: the exception and its causes, a line each, and then the stack trace}
   * Where the text is cut short, the causes are what is left; what would be cut off is not
   * rendered.
   */
  static ExceptionRenderer stackTrace() {
    return new StackTraceRenderer();
  }

  /** {@return a renderer that keeps class names only, so that no message text is stored} */
  static ExceptionRenderer classNames() {
    return failure ->
        Causes.of(failure).stream()
            .map(each -> each.getClass().getName())
            .collect(Collectors.joining(" <- "));
  }
}
