package dev.outbox4j.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.internal.EngineHealth.Failure;
import dev.outbox4j.internal.EngineHealth.Operation;
import java.util.List;
import org.junit.jupiter.api.Test;

class EngineHealthTest {
  private final EngineHealth health =
      new EngineHealth(
          "orders",
          new Events(
              "orders",
              new EngineThreads("orders", EngineHealthTest.class.getClassLoader()),
              List.of()));

  @Test
  void whatStillFailsIsToldThoughSomethingElseFailedLaterAndWorksAgain() {
    health.held(Operation.ACK, "row 7 is locked");
    health.failed(Operation.CLAIM, new IllegalStateException("a moment's trouble"));
    assertThat(told()).isEqualTo("claim: a moment's trouble");
    health.claimed(true);

    assertThat(told()).isEqualTo("ack: row 7 is locked");
    assertThat(health.failing()).isTrue();
  }

  @Test
  void whatFailedLastIsToldOnceNothingFailsAnyMore() {
    health.held(Operation.ACK, "row 7 is locked");
    health.succeeded(Operation.ACK);

    assertThat(told()).isEqualTo("ack: row 7 is locked");
    assertThat(health.failing()).isFalse();
  }

  @Test
  void aClaimOfOneQueueDoesNotHideThatThoseOfAnotherFail() {
    health.failed(Operation.CLAIM, new IllegalStateException("the other queue"));
    health.claimed(false);

    assertThat(health.failing()).isTrue();
    assertThat(health.lastClaimAt()).isNotNull();
  }

  private String told() {
    Failure failure = health.lastFailure();
    return failure == null ? "" : failure.text();
  }
}
