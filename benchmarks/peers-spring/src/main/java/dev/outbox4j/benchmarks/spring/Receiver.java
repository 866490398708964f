package dev.outbox4j.benchmarks.spring;

import dev.outbox4j.benchmarks.spi.Payloads;
import dev.outbox4j.benchmarks.spi.Sink;
import java.util.Base64;
import org.jspecify.annotations.Nullable;

/** Where handlers, which Spring makes, find the run's sink. */
final class Receiver {
  private static volatile @Nullable Sink sink;

  private Receiver() {}

  static void set(@Nullable Sink sink) {
    Receiver.sink = sink;
  }

  static void receive(Message message) {
    byte[] payload = Base64.getDecoder().decode(message.payload());
    Sink current = sink;
    if (current == null || Payloads.sequence(payload) < 0) {
      throw new IllegalStateException("the template's message stays where it is");
    }
    current.handle(payload);
  }
}
