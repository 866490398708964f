package dev.outbox4j.internal.run;

import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Waits for stages of the user's own: one may complete twice, or refuse to be waited for. */
final class Stages {
  private Stages() {}

  /** Calls one of both, once: when the stage completes, or if it cannot be waited for. */
  static void whenComplete(
      CompletionStage<?> stage,
      BiConsumer<@Nullable Object, @Nullable Throwable> completed,
      Consumer<Throwable> refused) {
    AtomicBoolean called = new AtomicBoolean();
    try {
      stage.whenComplete(
          (value, thrown) -> {
            if (called.compareAndSet(false, true)) {
              completed.accept(value, thrown);
            }
          });
    } catch (Throwable refusal) {
      if (called.compareAndSet(false, true)) {
        refused.accept(refusal);
      }
    }
  }
}
