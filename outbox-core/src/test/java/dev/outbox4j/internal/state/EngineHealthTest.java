package dev.outbox4j.internal.state;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.state.EngineHealth.Failure;
import dev.outbox4j.internal.state.EngineHealth.Operation;
import dev.outbox4j.testing.CapturedLogs;
import java.net.UnknownHostException;
import java.sql.SQLException;
import java.time.Instant;
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
  void tellsSinceWhenTheFirstOfWhatFailsNowHasFailed() {
    assertThat(health.failingSince()).isNull();
    health.failed(Operation.CLAIM, new IllegalStateException("no connection"));
    Instant claims = health.failingSince();
    assertThat(claims).isNotNull();
    health.held(Operation.ACK, "row 7 is locked");
    health.failed(Operation.CLAIM, new IllegalStateException("no connection"));
    assertThat(health.failingSince()).isEqualTo(claims);

    health.claimed(true);
    assertThat(health.failingSince()).isEqualTo(health.lastFailure().at()).isAfterOrEqualTo(claims);
    health.succeeded(Operation.ACK);
    assertThat(health.failingSince()).isNull();
  }

  @Test
  void aClaimOfOneQueueDoesNotHideThatThoseOfAnotherFail() {
    health.failed(Operation.CLAIM, new IllegalStateException("the other queue"));
    health.claimed(false);

    assertThat(health.failing()).isTrue();
    assertThat(health.lastClaimAt()).isNotNull();
  }

  @Test
  void aFailureOfTheStoreIsToldInASentenceWithItsRoot() {
    try (CapturedLogs logs = new CapturedLogs()) {
      health.failed(
          Operation.CLAIM,
          new OutboxStoreException(
              "claim failed: the server is in trouble [08001: The connection attempt failed.]",
              Fault.CONNECTION,
              false,
              new SQLException(
                  "The connection attempt failed.", new UnknownHostException("db.example"))));
      health.failed(
          Operation.ACK,
          new OutboxStoreException(
              "ack failed [57014: too long]",
              Fault.TIMEOUT,
              false,
              new SQLException("ERROR: too long")));

      assertThat(logs.lines())
          .filteredOn(line -> line.startsWith("WARN"))
          .extracting(line -> line.substring(line.indexOf("- [")))
          .containsExactly(
              "- [orders] claim failed and will be tried again: claim failed: the server is in"
                  + " trouble [08001: The connection attempt failed.]; at the root:"
                  + " java.net.UnknownHostException: db.example",
              "- [orders] ack failed and will be tried again: ack failed [57014: too long]");
    }
  }

  @Test
  void aFailureOfTheStoreIsToldAlsoIfItsCauseCannotBeAsked() {
    health.failed(
        Operation.CLAIM,
        new OutboxStoreException("claim failed", Fault.CONNECTION, false, null) {
          @Override
          public synchronized Throwable getCause() {
            throw new IllegalStateException("broken");
          }
        });

    assertThat(told()).isEqualTo("claim: claim failed");
    assertThat(health.failing()).isTrue();
  }

  @Test
  void aFailureOfAnythingElseIsToldWithItsTrace() {
    try (CapturedLogs logs = new CapturedLogs()) {
      health.failed(Operation.CLAIM, new IllegalStateException("a defect"));

      assertThat(logs.lines())
          .singleElement()
          .asString()
          .contains("a defect", "aFailureOfAnythingElseIsToldWithItsTrace");
    }
  }

  private String told() {
    Failure failure = health.lastFailure();
    return failure == null ? "" : failure.text();
  }
}
