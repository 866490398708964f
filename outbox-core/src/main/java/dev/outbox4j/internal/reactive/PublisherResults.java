package dev.outbox4j.internal.reactive;

import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/** Tells results that are publishers, by the JDK's type and by that of Reactive Streams. */
public final class PublisherResults {
  private static final boolean REACTIVE_STREAMS = isThere("org.reactivestreams.Publisher");

  private PublisherResults() {}

  /** Tells whether results of a type are publishers. */
  public static boolean isPublisher(Class<?> type) {
    return Flow.Publisher.class.isAssignableFrom(type)
        || (REACTIVE_STREAMS && ReactiveStreams.isPublisher(type));
  }

  /** Tells whether a value is a publisher. */
  public static boolean isPublisher(@Nullable Object value) {
    return value != null && isPublisher(value.getClass());
  }

  /**
   * Subscribes to a publisher.
   *
   * @param result what a handler returned
   * @return completes when the publisher does, with the outcome that it gave or null; cancelling it
   *     cancels the subscription. Null if the result is no publisher
   */
  public static @Nullable CompletionStage<?> subscribe(@Nullable Object result) {
    if (result instanceof Flow.Publisher<?> publisher) {
      return PublisherStage.of(publisher);
    }
    return isPublisher(result) ? PublisherStage.of(ReactiveStreams.flow(result)) : null;
  }

  private static boolean isThere(String name) {
    try {
      Class.forName(name, false, PublisherResults.class.getClassLoader());
      return true;
    } catch (ClassNotFoundException | LinkageError absent) {
      return false;
    }
  }
}
