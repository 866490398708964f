package dev.outbox4j.internal.claim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.SubscriberHealth.Listener;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.state.EngineHealth;
import dev.outbox4j.internal.state.Events;
import dev.outbox4j.testing.CapturedLogs;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What a subscriber sends to itself, to find out whether LISTEN hears its store. */
class ListenEchoTest {
  private final Events events =
      new Events(
          "orders", new EngineThreads("orders", ListenEchoTest.class.getClassLoader()), List.of());
  private final EngineHealth health = new EngineHealth("orders", events);
  private final ListenState state =
      new ListenState("orders", "owner", (channel, listener) -> () -> {}, events, health);
  private final List<String> sent = new ArrayList<>();
  private long now;

  private long prove() {
    return state.prove(sent::add, () -> now);
  }

  @Test
  void nothingIsSentBeforeListenIsInForce() {
    prove();
    assertThat(sent).isEmpty();
  }

  @Test
  void whatIsHeardIsNotSentAgainUntilTheNextConnection() {
    state.connected();
    assertThat(prove()).isEqualTo(ListenEcho.LIMIT);
    state.notified(sent.get(0));
    now += 10 * ListenEcho.AGAIN;
    assertThat(prove()).isEqualTo(Long.MAX_VALUE);
    assertThat(sent).hasSize(1);
    assertThat(state.state()).isEqualTo(Listener.UP);

    state.disconnected(new IOException("gone"));
    state.connected();
    prove();
    assertThat(sent).hasSize(2);
  }

  @Test
  void whatIsHeardBeforeItsSendingHasReturnedCounts() {
    state.connected();
    state.prove(state::notified, () -> now);
    now += ListenEcho.LIMIT;
    prove();
    assertThat(state.state()).isEqualTo(Listener.UP);
  }

  @Test
  void whatIsNotHeardInTimeIsToldOnceAndSentAgain() {
    try (CapturedLogs logs = new CapturedLogs()) {
      state.connected();
      prove();
      now += ListenEcho.LIMIT;
      prove();
      assertThat(state.state()).isEqualTo(Listener.DOWN);
      assertThat(health.lastFailure().text())
          .startsWith("listen: ")
          .contains("another database or server")
          .contains("give it the address and the database of the store");
      assertThat(sent).hasSize(1);

      for (int i = 0; i < 3; i++) {
        now += ListenEcho.AGAIN;
        prove();
        now += ListenEcho.LIMIT;
        prove();
      }
      assertThat(sent).hasSize(4);
      assertThat(logs.lines()).filteredOn(line -> line.startsWith("WARN")).hasSize(1);
    }
  }

  @Test
  void whatIsHeardLateBringsListenIntoForce() {
    state.connected();
    prove();
    now += ListenEcho.LIMIT;
    prove();
    int epoch = state.epoch();

    state.notified(sent.get(0));

    assertThat(state.state()).isEqualTo(Listener.UP);
    assertThat(state.epoch()).isEqualTo(epoch + 1);
  }

  @Test
  void whatCouldNotBeSentIsSentLaterAndNotMissed() {
    state.connected();
    state.prove(
        payload -> {
          throw new IllegalStateException("no connection");
        },
        () -> now);
    now += 2 * ListenEcho.LIMIT;
    prove();
    assertThat(sent).hasSize(1);
    assertThat(state.state()).isEqualTo(Listener.UP);
  }

  @Test
  void anErrorThatKeepsItFromBeingSentIsPassedOnAndItIsSentLater() {
    state.connected();
    Error failure = new NoClassDefFoundError("x");
    assertThatThrownBy(
            () ->
                state.prove(
                    text -> {
                      throw failure;
                    },
                    () -> now))
        .isSameAs(failure);
    prove();
    assertThat(sent).hasSize(1);
  }

  @Test
  void whatComesAfterTheConnectionWasLostProvesNothing() {
    state.connected();
    prove();
    state.disconnected(new IOException("gone"));
    state.notified(sent.get(0));
    assertThat(state.state()).isEqualTo(Listener.DOWN);
  }
}
