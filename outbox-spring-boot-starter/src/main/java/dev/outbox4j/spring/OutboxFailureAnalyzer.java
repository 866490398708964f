package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/**
 * Shows why the outbox keeps a service from starting, in its own words: what is wrong, and what to
 * do. A text of several lines has a fault in each line but the first.
 */
final class OutboxFailureAnalyzer extends AbstractFailureAnalyzer<OutboxException> {
  /** Of the validator; a statement often follows, which is shown as it is. */
  private static final String STATEMENT = "; to fix it: ";

  OutboxFailureAnalyzer() {}

  @Override
  protected FailureAnalysis analyze(Throwable rootFailure, OutboxException cause) {
    List<Sentence> sentences =
        String.valueOf(cause.getMessage()).lines().map(Sentence::of).toList();
    String what = sentences.stream().map(Sentence::what).collect(Collectors.joining("\n"));
    String remedies =
        sentences.stream()
            .flatMap(sentence -> Stream.ofNullable(sentence.remedy()))
            .distinct()
            .collect(Collectors.joining("\n"));
    return new FailureAnalysis(what, remedies.isEmpty() ? null : remedies, cause);
  }

  /** A fault, and what to do about it, which is behind the last mark. */
  private record Sentence(String what, @Nullable String remedy) {
    static Sentence of(String line) {
      int statement = line.indexOf(STATEMENT);
      int remedy = line.lastIndexOf("; ");
      if (statement >= 0) {
        return new Sentence(
            line.substring(0, statement) + ".", line.substring(statement + STATEMENT.length()));
      }
      return remedy < 0
          ? new Sentence(line, null)
          : new Sentence(line.substring(0, remedy) + ".", sentence(line.substring(remedy + 2)));
    }

    private static String sentence(String text) {
      return Character.toUpperCase(text.charAt(0)) + text.substring(1) + ".";
    }
  }
}
