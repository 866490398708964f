package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.testing.CapturedLogs;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Statements from which the driver never comes back. They take half a minute to be given up. */
class LostStatementsTest {
  private static final Duration LONG_ENOUGH = Duration.ofSeconds(60);

  private final CountDownLatch driver = new CountDownLatch(1);
  private final CountDownLatch handler = new CountDownLatch(1);

  @Test
  @Tag("once")
  void aStatementThatNeverComesBackIsToldByHealthAndForgottenOnceItDoes() {
    try (CapturedLogs logs = new CapturedLogs();
        OutboxSubscriber claiming = hangingAt("claim");
        OutboxSubscriber renewing = hangingAt("renew")) {
      await().atMost(LONG_ENOUGH).until(() -> tells(claiming) && tells(renewing));
      assertThat(claiming.health().failing()).isTrue();
      assertThat(renewing.health().failing()).isTrue();
      assertThat(claiming.health().failingSince()) // since it was sent, not since it was told
          .hasValueSatisfying(
              since -> assertThat(since).isBefore(Instant.now().minus(Duration.ofSeconds(25))));
      for (String name : new String[] {"claim", "renew"}) {
        String told = "[" + name + "] statement: one has not come back";
        logs.awaitLine(line -> line.contains(told));
        assertThat(logs.lines()).filteredOn(line -> line.contains(told)).hasSize(1);
      }
      driver.countDown();
      handler.countDown();
      await().until(() -> claiming.health().healthy() && renewing.health().healthy());
      assertThat(claiming.health().failingSince()).isEmpty();
    } finally {
      driver.countDown();
      handler.countDown();
    }
  }

  /** Its handlers wait, so that leases are renewed. */
  private OutboxSubscriber hangingAt(String hanging) {
    InMemoryStore store = new InMemoryStore(Clock.systemUTC());
    store.networkTimeout(Duration.ofMillis(1));
    store.beforeEach(
        operation -> {
          if (operation.equals(hanging)) {
            EngineFixture.awaitIgnoringInterrupts(driver);
          }
        });
    store.publish(OutboxMessage.to("orders").type("t").body("x").build());
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .name(hanging)
            .store(store)
            .deadLetters(store.deadLetters())
            .lease(Duration.ofMillis(200))
            .gracefulTimeout(Duration.ofMillis(300))
            .on(
                "t",
                (payload, delivery) -> {
                  EngineFixture.awaitIgnoringInterrupts(handler);
                })
            .build();
    subscriber.start();
    return subscriber;
  }

  private static boolean tells(OutboxSubscriber subscriber) {
    Optional<String> failure = subscriber.health().lastFailure();
    return failure.isPresent() && failure.get().startsWith("statement: one has not come back for");
  }
}
