package dev.outbox4j;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Keeps how the first message ended. */
final class EndRecorder implements SubscriberEvents {
  private final CompletableFuture<String> end = new CompletableFuture<>();

  String await() throws Exception {
    return end.get(10, TimeUnit.SECONDS);
  }

  @Override
  public void acked(String subscriber, Delivery delivery) {
    end.complete("acked");
  }

  @Override
  public void retried(String subscriber, Delivery delivery, Duration delay) {
    end.complete("retried");
  }

  @Override
  public void deadLettered(
      String subscriber, Delivery delivery, FailureReason reason, boolean written) {
    end.complete(reason.code());
  }
}
