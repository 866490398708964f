package dev.outbox4j.internal;

import dev.outbox4j.AckMode;
import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxException;
import dev.outbox4j.Outcome;
import dev.outbox4j.spi.UndecodableException;
import java.time.Duration;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Turns a handler's end into what is to be written: the only class that takes an outcome apart. */
final class OutcomeApplier {
  private static final Logger log = LoggerFactory.getLogger(OutcomeApplier.class);

  /** The size of {@code last_error}. */
  private static final int MAX_ERROR_BYTES = 1024;

  private static final Duration FALLBACK_DELAY = Duration.ofSeconds(30);

  private final String subscriber;
  private final SubscriberSettings.Failing settings;

  OutcomeApplier(String subscriber, SubscriberSettings.Failing settings) {
    this.subscriber = subscriber;
    this.settings = settings;
  }

  /** The handler returned, or its stage completed, with an outcome or anything else. */
  Settlement returned(InFlight delivery, @Nullable Object result) {
    if (result instanceof CompletionStage<?>) { // nobody waits for it: an ack would be a guess
      return threw(
          delivery,
          new OutboxException(
              "The handler's stage completed with another stage, for which nobody waits;"
                  + " use thenCompose in place of thenApply"));
    }
    Outcome outcome = result instanceof Outcome given ? given : delivery.decision();
    if (outcome == null && settings.ackMode() == AckMode.MANUAL) {
      log.error(
          "[{}] the handler of type {} returned without deciding {} in ack mode MANUAL; it is retried."
              + " Call delivery.decide(...) or return an outcome",
          subscriber,
          OneLine.of(delivery.type()),
          delivery);
      return failed(
          delivery, null, "the handler returned without deciding in ack mode MANUAL", null);
    }
    return outcome == null ? Settlement.Ack.INSTANCE : apply(delivery, outcome);
  }

  private Settlement apply(InFlight delivery, Outcome outcome) {
    if (outcome instanceof Outcome.Ack) {
      return Settlement.Ack.INSTANCE;
    }
    if (outcome instanceof Outcome.Retry retry) {
      return failed(delivery, null, retry.why(), null);
    }
    if (outcome instanceof Outcome.RetryAfter retry) {
      return failed(delivery, null, "retry asked for by the handler", retry.delay());
    }
    if (outcome instanceof Outcome.Reschedule reschedule) {
      return new Settlement.Reschedule(reschedule.delay());
    }
    if (outcome instanceof Outcome.Reject reject) {
      return new Settlement.DeadLetter(
          FailureReason.REJECTED, delivery.attempt(), exceptionText(reject.reason()));
    }
    throw new AssertionError(outcome);
  }

  /** The handler threw, or its stage failed. */
  Settlement threw(InFlight delivery, Throwable thrown) {
    Throwable failure = unwrapped(thrown);
    if (settings.ackMode() == AckMode.REJECT_ON_ERROR) {
      return new Settlement.DeadLetter(
          FailureReason.REJECTED, delivery.attempt(), exceptionText(render(failure)));
    }
    return failed(delivery, failure, render(failure), null);
  }

  /** The handler ran too long: it gave no verdict on its message, so no ack mode makes it one. */
  Settlement timedOut(InFlight delivery, TimeoutException failure) {
    return failed(delivery, failure, render(failure), null);
  }

  /** The codec failed, not the bytes; the handler gave no verdict, so no ack mode makes it one. */
  Settlement codecFailed(InFlight delivery, Throwable failure) {
    return failed(delivery, failure, render(failure), null);
  }

  /** The bytes do not decode; the handler was not called. */
  Settlement undecodable(InFlight delivery, UndecodableException failure) {
    return new Settlement.DeadLetter(
        FailureReason.UNDECODABLE, delivery.history().attempts(), exceptionText(render(failure)));
  }

  /** The row was claimed more often than allowed; the handler was not called. */
  Settlement tooManyDeliveries(InFlight delivery) {
    return new Settlement.DeadLetter(
        FailureReason.MAX_DELIVERIES,
        delivery.history().attempts(),
        "claimed "
            + delivery.deliveries()
            + " times, at most "
            + settings.maxDeliveries()
            + " are allowed");
  }

  private Settlement failed(
      InFlight delivery, @Nullable Throwable failure, String text, @Nullable Duration delay) {
    int attempt = delivery.attempt();
    try {
      if (settings
          .retry()
          .givesUp(attempt, delivery.sinceFirstAttempt(System.nanoTime()), failure)) {
        return new Settlement.DeadLetter(
            FailureReason.RETRY_TERMINAL, attempt, exceptionText(text));
      }
      Duration wait = delay == null ? settings.retry().delayAfter(attempt, failure) : delay;
      return new Settlement.Retry(wait, Utf8.bounded(text, MAX_ERROR_BYTES));
    } catch (RuntimeException | Error broken) { // a predicate or curve of the user's
      log.error(
          "[{}] the retry policy failed on {}; it is retried in {}",
          subscriber,
          delivery,
          FALLBACK_DELAY,
          RedactedThrowable.of(broken));
      return new Settlement.Retry(FALLBACK_DELAY, Utf8.bounded(text, MAX_ERROR_BYTES));
    }
  }

  private String exceptionText(String text) {
    return Utf8.bounded(text, settings.maxExceptionBytes());
  }

  private String render(Throwable failure) {
    try {
      String text = settings.renderer().render(failure);
      if (text != null) {
        return text;
      }
    } catch (RuntimeException | Error broken) {
      log.warn(
          "[{}] the exception renderer failed; only the class name is kept",
          subscriber,
          RedactedThrowable.of(broken));
    }
    return failure.getClass().getName();
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
            ? "No handler for messages without a type; add otherwise(...)"
            : "No handler for type '" + type + "'; add on(...) for it, or otherwise(...)");
  }
}
