package dev.outbox4j.examples.shop;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.spring.OutboxSubscriberCustomizer;
import dev.outbox4j.spring.OutboxTemplate;
import dev.outbox4j.test.spring.OutboxTest;
import dev.outbox4j.test.spring.TestOutbox;
import java.time.Instant;
import java.util.NoSuchElementException;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.transaction.support.TransactionTemplate;

@OutboxTest
class CustomizerTest {
  @Autowired OutboxTemplate template;
  @Autowired TransactionTemplate transaction;
  @Autowired TestOutbox outbox;

  @TestConfiguration
  static class Settings {
    // tag::customizer
    @Bean
    OutboxSubscriberCustomizer givesUpOnOrdersThatAreGone() {
      return (queue, subscriber) -> {
        if (queue.equals("orders")) {
          subscriber.retry(
              "order.placed", RetryPolicy.standard().giveUpOn(NoSuchElementException.class));
        }
      };
    }
    // end::customizer
  }

  @Test
  void anOrderThatIsGoneIsNotTriedAgain() {
    transaction.executeWithoutResult(
        status ->
            template.publish(
                OutboxMessage.to("orders")
                    .type("order.placed")
                    .body(new OrderPlaced("gone", 1, Instant.now()))
                    .build()));

    assertThat(outbox.drain("orders").retried()).isZero();
    outbox
        .assertThatOutbox()
        .hasDeadLetter("orders", "order.placed", FailureReason.RETRY_TERMINAL);
  }
}
