package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/**
 * Shows why the outbox keeps a service from starting, in its own words: what is wrong, and after
 * the last semicolon of a sentence what to do.
 */
final class OutboxFailureAnalyzer extends AbstractFailureAnalyzer<OutboxException> {
  OutboxFailureAnalyzer() {}

  @Override
  protected FailureAnalysis analyze(Throwable rootFailure, OutboxException cause) {
    String text = String.valueOf(cause.getMessage());
    int remedy = text.indexOf('\n') < 0 ? text.lastIndexOf("; ") : -1;
    return remedy < 0
        ? new FailureAnalysis(text, null, cause)
        : new FailureAnalysis(
            text.substring(0, remedy) + ".", capitalized(text.substring(remedy + 2)) + ".", cause);
  }

  private static String capitalized(String text) {
    return Character.toUpperCase(text.charAt(0)) + text.substring(1);
  }
}
