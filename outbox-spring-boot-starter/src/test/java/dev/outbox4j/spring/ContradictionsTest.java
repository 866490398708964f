package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThatCode;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;

class ContradictionsTest {
  @Test
  void aQueueMayHaveTheLongestDelayThatAllLack() {
    OutboxProperties properties =
        new Binder(
                new MapConfigurationPropertySource(
                    Map.of(
                        "outbox4j.subscriber.retry.initial", "10m",
                        "outbox4j.queues.orders.retry.max", "1h")))
            .bindOrCreate("outbox4j", OutboxProperties.class);
    assertThatCode(() -> Contradictions.refuse(properties)).doesNotThrowAnyException();
  }

  @Test
  void aNameThatIsTakenBackByAnEmptyOneDoesNotCount() {
    OutboxProperties properties =
        new Binder(
                new MapConfigurationPropertySource(
                    Map.of(
                        "outbox4j.delete-terminal-failures", "true",
                        "outbox4j.dead-letter-table", "")))
            .bindOrCreate("outbox4j", OutboxProperties.class);
    assertThatCode(() -> Contradictions.refuse(properties)).doesNotThrowAnyException();
  }
}
