package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.PollerFailure;
import dev.outbox4j.poller.Position;
import org.jspecify.annotations.Nullable;

/** Ends a tick that has failed. */
final class StepException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final PollerFailure step;
  private final transient @Nullable Position behind;

  StepException(PollerFailure step, Throwable cause) {
    this(step, cause, null);
  }

  /**
   * Creates it.
   *
   * @param behind the position behind the batch that its handler failed at; null for another step
   */
  StepException(PollerFailure step, Throwable cause, @Nullable Position behind) {
    super(cause);
    this.step = step;
    this.behind = behind;
  }

  PollerFailure step() {
    return step;
  }

  Throwable reason() {
    Throwable cause = getCause();
    return cause == null ? this : cause;
  }

  @Nullable Position behind() {
    return behind;
  }
}
