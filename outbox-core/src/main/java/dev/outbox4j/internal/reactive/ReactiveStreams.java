package dev.outbox4j.internal.reactive;

import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.FlowAdapters;
import org.reactivestreams.Publisher;

/** The only class that needs Reactive Streams; loaded where that is there. */
final class ReactiveStreams {
  private ReactiveStreams() {}

  static boolean isPublisher(Class<?> type) {
    return Publisher.class.isAssignableFrom(type);
  }

  static Flow.Publisher<?> flow(@Nullable Object publisher) {
    return FlowAdapters.toFlowPublisher((Publisher<?>) publisher);
  }
}
