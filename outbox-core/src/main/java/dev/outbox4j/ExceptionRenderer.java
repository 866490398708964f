package dev.outbox4j;

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

  /** {@return the default: the stack trace with all causes} */
  static ExceptionRenderer stackTrace() {
    return failure -> {
      java.io.StringWriter text = new java.io.StringWriter();
      failure.printStackTrace(new java.io.PrintWriter(text, true));
      return text.toString();
    };
  }

  /** {@return a renderer that keeps class names only, so that no message text is stored} */
  static ExceptionRenderer classNames() {
    return failure -> {
      StringBuilder text = new StringBuilder(failure.getClass().getName());
      for (Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
        text.append(" <- ").append(cause.getClass().getName());
      }
      return text.toString();
    };
  }
}
