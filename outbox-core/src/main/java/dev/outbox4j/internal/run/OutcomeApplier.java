package dev.outbox4j.internal.run;

import dev.outbox4j.AckMode;
import dev.outbox4j.ExceptionRenderer;
import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxException;
import dev.outbox4j.Outcome;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.internal.Causes;
import dev.outbox4j.internal.RedactedThrowable;
import dev.outbox4j.internal.StackTraceRenderer;
import dev.outbox4j.internal.Utf8;
import dev.outbox4j.internal.reactive.PublisherResults;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.internal.settings.Terminal;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.spi.UndecodableException;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Turns a handler's end into what is to be written: the only class that takes an outcome apart. */
public final class OutcomeApplier {
  private static final Logger log = LoggerFactory.getLogger(OutcomeApplier.class);

  /** The size of {@code last_error}. */
  private static final int MAX_ERROR_BYTES = 1024;

  private static final String ASKED = "retry asked for by the handler";
  private static final Duration FALLBACK_DELAY = Duration.ofSeconds(30);

  private final String subscriber;
  private final SubscriberSettings.Failing settings;
  private final FailureWords words;

  public OutcomeApplier(String subscriber, SubscriberSettings.Failing settings) {
    this.subscriber = subscriber;
    this.settings = settings;
    this.words = new FailureWords(settings.logsMessages());
  }

  /** The handler returned, or its stage completed, with an outcome or anything else. */
  Settlement returned(HeldRow row, @Nullable Object result) {
    if (result instanceof CompletionStage<?> || PublisherResults.isPublisher(result)) {
      return threw( // an ack would be a guess
          row,
          new OutboxException(
              "The handler's stage completed with another stage or a publisher, for which nobody"
                  + " waits; use thenCompose in place of thenApply"));
    }
    Outcome decided = row.delivery().end();
    Outcome outcome = result instanceof Outcome given ? given : decided;
    if (outcome == null && settings.ackMode() == AckMode.MANUAL) {
      String undecided = "the handler returned without deciding in ack mode MANUAL";
      return failed(
          row,
          Failure.said(undecided, undecided + "; call delivery.decide(...) or return an outcome"),
          null);
    }
    return outcome == null ? Settlement.Ack.INSTANCE : apply(row, outcome);
  }

  private Settlement apply(HeldRow row, Outcome outcome) {
    if (outcome instanceof Outcome.Ack) {
      return Settlement.Ack.INSTANCE;
    }
    if (outcome instanceof Outcome.Retry retry) {
      return failed(row, askedFor(retry.why()), null);
    }
    if (outcome instanceof Outcome.RetryAfter retry) {
      return failed(row, askedFor(ASKED), retry.delay());
    }
    if (outcome instanceof Outcome.Reschedule reschedule) {
      return new Settlement.Reschedule(reschedule.delay());
    }
    if (outcome instanceof Outcome.Leave leave) {
      return new Settlement.Leave(leave.delay());
    }
    if (outcome instanceof Outcome.Reject reject) {
      return new Settlement.DeadLetter(
          FailureReason.REJECTED,
          row.attempt(),
          Utf8.bounded(reject.reason(), settings.maxExceptionBytes()),
          words.of(reject.reason(), "its handler rejected it"));
    }
    throw new AssertionError(outcome);
  }

  /** The handler threw, or its stage failed. */
  Settlement threw(HeldRow row, Throwable thrown) {
    Throwable failure = unwrapped(thrown);
    if (settings.ackMode() == AckMode.REJECT_ON_ERROR) {
      return new Settlement.DeadLetter(
          FailureReason.REJECTED,
          row.attempt(),
          rendered(failure, settings.maxExceptionBytes()),
          words.of(failure));
    }
    return failed(row, failureOf(failure), null);
  }

  /**
   * The handler threw on several rows, and which of them is at fault is not known: none has failed,
   * and each comes alone.
   */
  Settlement threwOnSeveral(HeldRow row, Throwable thrown) {
    return comesAlone(row, failureOf(unwrapped(thrown)));
  }

  /** What a handler threw, as the log says it. */
  String inWords(Throwable thrown) {
    return words.of(unwrapped(thrown));
  }

  /** The handler ran too long: it gave no verdict on its message, so no ack mode makes it one. */
  Settlement timedOut(HeldRow row, TimeoutException failure) {
    return failed(row, tooLong(failure), null);
  }

  /** The handler ran too long on several rows. */
  Settlement timedOutOnSeveral(HeldRow row, TimeoutException failure) {
    return comesAlone(row, tooLong(failure));
  }

  private static Failure tooLong(TimeoutException failure) {
    return new Failure(failure, null, Objects.requireNonNull(failure.getMessage(), "message"));
  }

  /** The codec failed, not the bytes; the handler gave no verdict, so no ack mode makes it one. */
  Settlement codecFailed(HeldRow row, Throwable failure) {
    return failed(row, failureOf(failure), null);
  }

  /** The bytes do not decode; the handler was not called. */
  Settlement undecodable(HeldRow row, UndecodableException failure) {
    return new Settlement.DeadLetter(
        FailureReason.UNDECODABLE,
        row.history().attempts(),
        rendered(failure, settings.maxExceptionBytes()),
        words.of(failure));
  }

  /** The row was claimed more often than allowed; the handler was not called. */
  private Settlement tooManyDeliveries(HeldRow row) {
    String claims =
        "claimed "
            + row.deliveries()
            + " times, at most "
            + settings.maxDeliveries(row.typeOrNull())
            + " are allowed";
    return new Settlement.DeadLetter(
        FailureReason.MAX_DELIVERIES, row.history().attempts(), claims, claims);
  }

  /** The message's time was over; the handler was not called. */
  private Settlement expired(HeldRow row) {
    String when = "expired at " + row.message().expiresAt() + ", before a handler could begin";
    return new Settlement.DeadLetter(FailureReason.EXPIRED, row.history().attempts(), when, when);
  }

  /** Returns what becomes of a row whose handler is not to be called; null if it is to be. */
  @Nullable Settlement withoutHandler(HeldRow row, long now) {
    if (row.hasExpired(now)) {
      return expired(row);
    }
    return row.deliveries() > settings.maxDeliveries(row.typeOrNull())
        ? tooManyDeliveries(row)
        : null;
  }

  /**
   * Why an attempt failed.
   *
   * @param thrown for the policy, which may look at it
   * @param said kept with the row in place of what was thrown
   * @param words the same for the log
   */
  private record Failure(@Nullable Throwable thrown, @Nullable String said, String words) {
    static Failure said(String text, String words) {
      return new Failure(null, text, words);
    }
  }

  private Failure failureOf(Throwable thrown) {
    return new Failure(thrown, null, words.of(thrown));
  }

  private Failure askedFor(String why) {
    return Failure.said(why, words.of(why, ASKED));
  }

  private Settlement failed(HeldRow row, Failure failure, @Nullable Duration delay) {
    int attempt = row.attempt();
    RetryPolicy policy = settings.retry(row.typeOrNull());
    Duration wait;
    try {
      if (failure.thrown() instanceof Terminal
          || policy.givesUp(attempt, row.sinceFirstAttempt(System.nanoTime()), failure.thrown())) {
        return new Settlement.DeadLetter(
            FailureReason.RETRY_TERMINAL,
            attempt,
            textOf(failure, settings.maxExceptionBytes()),
            failure.words());
      }
      wait = delay == null ? policy.delayAfter(attempt, failure.thrown()) : delay;
    } catch (RuntimeException | Error broken) { // a predicate or curve of the user's
      wait = policyFailed(row, broken);
    }
    return new Settlement.Retry(
        wait,
        textOf(failure, MAX_ERROR_BYTES),
        true,
        false,
        new Settlement.FailedAttempt(policy.maxAttempts(), failure.words()));
  }

  private Settlement comesAlone(HeldRow row, Failure failure) {
    RetryPolicy policy = settings.retry(row.typeOrNull());
    return new Settlement.Retry(
        delayAfter(row, policy, failure),
        textOf(failure, MAX_ERROR_BYTES),
        false,
        false,
        new Settlement.FailedAttempt(policy.maxAttempts(), failure.words()));
  }

  private Duration delayAfter(HeldRow row, RetryPolicy policy, Failure failure) {
    try {
      return policy.delayAfter(row.attempt(), failure.thrown());
    } catch (RuntimeException | Error broken) { // a curve of the user's
      return policyFailed(row, broken);
    }
  }

  private Duration policyFailed(HeldRow row, Throwable broken) {
    log.error(
        "[{}] the retry policy failed on {}; it is retried in {}",
        subscriber,
        row,
        FALLBACK_DELAY,
        RedactedThrowable.of(broken));
    return FALLBACK_DELAY;
  }

  private String textOf(Failure failure, int maxBytes) {
    return failure.said() == null
        ? rendered(Objects.requireNonNull(failure.thrown(), "thrown"), maxBytes)
        : Utf8.bounded(failure.said(), maxBytes);
  }

  private String rendered(Throwable failure, int maxBytes) {
    return Utf8.bounded(render(failure, maxBytes), maxBytes);
  }

  private String render(Throwable failure, int maxBytes) {
    try {
      ExceptionRenderer renderer = settings.renderer();
      String text =
          renderer instanceof StackTraceRenderer ours
              ? ours.render(failure, maxBytes + 1) // one more, so that what is cut off is marked
              : renderer.render(failure);
      return Objects.requireNonNull(text, "the renderer returned null");
    } catch (RuntimeException | Error broken) {
      log.warn(
          "[{}] the exception renderer failed; only the class name is kept",
          subscriber,
          RedactedThrowable.of(broken));
      return failure.getClass().getName();
    }
  }

  private static Throwable unwrapped(Throwable thrown) {
    for (Throwable each : Causes.of(thrown)) {
      if (!(each instanceof CompletionException || each instanceof ExecutionException)
          || each.getCause() == null) {
        return each;
      }
    }
    return thrown;
  }

  /** A message whose type no handler serves. */
  static OutboxException noHandler(@Nullable String type) {
    return new OutboxException(
        type == null
            ? "No handler for messages without a type; add otherwise(...), with Spring an @OutboxHandler without type"
            : "No handler for type '"
                + type
                + "'; add on(...) for it, or otherwise(...), with Spring an @OutboxHandler; each subscriber of the queue must handle it");
  }
}
