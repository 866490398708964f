package dev.outbox4j.internal.run;

import dev.outbox4j.OutboxException;
import dev.outbox4j.internal.Causes;
import dev.outbox4j.internal.OneLine;
import dev.outbox4j.internal.Utf8;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A failure in one line, for logs: classes and places. Messages of user code may quote a payload,
 * so they are left out unless the user wants them.
 */
final class FailureWords {
  private static final int MOST_BYTES = 500;

  /**
   * Where the library refuses something in words of its own, also under a handler that publishes.
   */
  private static final List<String> OURS =
      List.of(
          "dev.outbox4j.internal.",
          "dev.outbox4j.codec.",
          "dev.outbox4j.postgres.",
          "dev.outbox4j.spring.");

  /**
   * What throws for the user's code, which is to be named: the JDK, drivers, frameworks, and us.
   */
  private static final List<String> NOT_THE_USERS =
      List.of(
          "java.",
          "javax.",
          "jakarta.",
          "jdk.",
          "sun.",
          "com.sun.",
          "org.postgresql.",
          "com.zaxxer.hikari.",
          "org.jooq.",
          "org.hibernate.",
          "org.springframework.",
          "dev.outbox4j.internal.",
          "dev.outbox4j.postgres.internal.");

  private final boolean withMessages;

  FailureWords(boolean withMessages) {
    this.withMessages = withMessages;
  }

  /** The failure, and what is at its root; its class alone if it cannot be asked. */
  String of(Throwable failure) {
    try {
      return wordsOf(failure);
    } catch (Throwable broken) { // a class of the user's
      return failure.getClass().getName();
    }
  }

  private String wordsOf(Throwable failure) {
    if (isOurs(failure)) {
      return bounded(failure.getMessage());
    }
    List<Throwable> causes = Causes.of(failure);
    Throwable root = causes.get(causes.size() - 1);
    return root == failure ? one(failure) : one(failure) + ", caused by " + one(root);
  }

  /** A text that user code gave, or what may be said in its place. */
  String of(String text, String instead) {
    return withMessages ? bounded(text) : instead;
  }

  private String one(Throwable failure) {
    return failure.getClass().getName() + message(failure) + place(failure.getStackTrace());
  }

  /** Where it was thrown: the nearest place that is the user's, if there is one. */
  private static String place(StackTraceElement[] trace) {
    if (trace.length == 0) {
      return "";
    }
    StackTraceElement place =
        Arrays.stream(trace).filter(FailureWords::isTheUsers).findFirst().orElse(trace[0]);
    return " at " + place.getClassName() + "." + place.getMethodName() + line(place);
  }

  private static boolean isTheUsers(StackTraceElement frame) {
    return NOT_THE_USERS.stream().noneMatch(frame.getClassName()::startsWith);
  }

  private static String line(StackTraceElement frame) {
    return frame.getLineNumber() < 0 ? "" : ":" + frame.getLineNumber();
  }

  private String message(Throwable failure) {
    if (!withMessages && !isOurs(failure)) {
      return "";
    }
    String message = failure.getMessage();
    return message == null ? "" : " (" + bounded(message) + ")";
  }

  /** Whether the library made it: user code may throw the same classes with any text. */
  private static boolean isOurs(Throwable failure) {
    StackTraceElement[] trace = failure.getStackTrace();
    return failure instanceof OutboxException
        && trace.length > 0
        && OURS.stream().anyMatch(trace[0].getClassName()::startsWith);
  }

  private static String bounded(@Nullable String text) {
    return Utf8.bounded(OneLine.of(text), MOST_BYTES);
  }
}
