package dev.outbox4j.internal.claim;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.state.EngineHealth;
import dev.outbox4j.internal.state.Events;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** When what becomes of LISTEN wakes the fetcher. */
class ListenStateTest {
  private final AtomicInteger signals = new AtomicInteger();
  private final Events events =
      new Events(
          "orders", new EngineThreads("orders", ListenStateTest.class.getClassLoader()), List.of());
  private final ListenState state =
      new ListenState("orders", "owner", null, events, new EngineHealth("orders", events));

  @BeforeEach
  void countSignals() {
    state.signal(signals::incrementAndGet);
  }

  @Test
  void itsLossWakesOnceThoughMoreAttemptsFail() {
    state.connected();
    signals.set(0);

    state.disconnected(new IOException("gone"));
    state.disconnected(new IOException("refused"));
    state.disconnected(new IOException("refused"));

    assertThat(signals).hasValue(1);
  }

  @Test
  void itsReturnWakesEachTime() {
    state.connected();
    state.disconnected(new IOException("gone"));
    state.connected();

    assertThat(signals).hasValue(3);
  }
}
