package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.OutboxException;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.env.SystemEnvironmentPropertySource;

class DurationUnitsTest {
  private final StandardEnvironment environment = new StandardEnvironment();

  private void require(String... queues) {
    ConfigurationPropertySources.attach(environment);
    DurationUnits.require(environment, Set.of(queues));
  }

  private void set(String name, Object value) {
    environment.getPropertySources().addFirst(new MapPropertySource(name, Map.of(name, value)));
  }

  @ParameterizedTest
  @CsvSource({
    "outbox4j.network-timeout, 15, outbox4j.network-timeout=15",
    "outbox4j.depth-metrics.interval, 015, outbox4j.depth-metrics.interval=015",
    "outbox4j.subscriber.handlerTimeout, 5, outbox4j.subscriber.handler-timeout=5",
    "outbox4j.subscriber.graceful-timeout, -1, outbox4j.subscriber.graceful-timeout=-1",
    "outbox4j.subscriber.retry.initial, 1000, outbox4j.subscriber.retry.initial=1000",
    "outbox4j.queues.mail.lease, 60, outbox4j.queues[mail].lease=60",
    "outbox4j.queues[a.b].retry.max, 60, outbox4j.queues[a.b].retry.max=60"
  })
  void refusesANumberWithoutAUnit(String name, String value, String told) {
    set(name, value);
    assertThatThrownBy(() -> require("mail", "a.b"))
        .isInstanceOf(OutboxException.class)
        .hasMessage(told + " has no unit; give it one, such as 30s, or 500ms for milliseconds");
  }

  @Test
  void looksAtTheValueThatCountsWhereverItComesFrom() {
    environment
        .getPropertySources()
        .addFirst(
            new SystemEnvironmentPropertySource(
                StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME,
                Map.of("OUTBOX4J_SUBSCRIBER_HANDLERTIMEOUT", "30")));
    assertThatThrownBy(this::require).hasMessageContaining("handler-timeout=30");
    set("time", "40");
    set("outbox4j.subscriber.handler-timeout", "${time}");
    assertThatThrownBy(this::require).hasMessageContaining("handler-timeout=40");
    set("outbox4j.subscriber.handler-timeout", "30s");
    assertThatCode(this::require).doesNotThrowAnyException();
  }

  @Test
  void takesWhatHasAUnitOrNeedsNone() {
    set("outbox4j.subscriber.handler-timeout", "PT30S");
    set("outbox4j.subscriber.lease", "30s");
    set("outbox4j.subscriber.poll-min", Duration.ofMillis(20));
    set("outbox4j.subscriber.graceful-timeout", "0");
    set("outbox4j.subscriber.workers", "8");
    set("outbox4j.subscriber.retry.attempts", "3");
    set("outbox4j.queues.mail.max-deliveries", "40");
    assertThatCode(() -> require("mail")).doesNotThrowAnyException();
  }
}
