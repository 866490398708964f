package dev.outbox4j.internal.reactive;

import dev.outbox4j.OutboxException;
import dev.outbox4j.Outcome;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The end of a publisher. It is subscribed to once, and asked for all that it has; what it gives
 * beside an outcome is of no interest.
 */
final class PublisherStage extends CompletableFuture<@Nullable Object>
    implements Flow.Subscriber<Object> {
  private static final Flow.Subscription ENDED =
      new Flow.Subscription() {
        @Override
        public void request(long n) {
          // there is none
        }

        @Override
        public void cancel() {
          // there is none
        }
      };

  private final AtomicReference<Flow.@Nullable Subscription> subscription = new AtomicReference<>();

  /** Signals come one after the other, so a publisher's threads see it. */
  private @Nullable Outcome outcome;

  private PublisherStage() {}

  static PublisherStage of(Flow.Publisher<?> publisher) {
    PublisherStage stage = new PublisherStage();
    try {
      publisher.subscribe(stage);
    } catch (Throwable broken) { // of a publisher of the user's own, which has to signal it
      stage.fail(broken);
    }
    return stage;
  }

  @Override
  public void onSubscribe(Flow.Subscription given) {
    Objects.requireNonNull(given, "subscription");
    if (subscription.compareAndSet(null, given)) {
      given.request(Long.MAX_VALUE);
    } else { // cancelled before, or a second one
      given.cancel();
    }
  }

  @Override
  public void onNext(Object item) {
    Objects.requireNonNull(item, "item");
    if (item instanceof CompletionStage<?> || PublisherResults.isPublisher(item)) {
      fail(
          new OutboxException(
              "The handler's publisher gave a stage or another publisher, for which nobody waits;"
                  + " use flatMap in place of map"));
    } else if (item instanceof Outcome given) {
      if (outcome != null) {
        fail(new OutboxException("The handler's publisher gave more than one Outcome; give one"));
      }
      outcome = given;
    }
  }

  @Override
  public void onError(Throwable failure) {
    completeExceptionally(Objects.requireNonNull(failure, "failure"));
  }

  @Override
  public void onComplete() {
    complete(outcome);
  }

  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    boolean cancelled = super.cancel(mayInterruptIfRunning);
    endSubscription();
    return cancelled;
  }

  private void fail(Throwable failure) {
    completeExceptionally(failure);
    endSubscription();
  }

  private void endSubscription() {
    Flow.Subscription known = subscription.getAndSet(ENDED);
    if (known != null) {
      known.cancel();
    }
  }
}
