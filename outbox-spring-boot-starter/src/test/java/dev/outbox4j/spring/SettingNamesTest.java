package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.OutboxException;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.support.DefaultListableBeanFactory;
import org.springframework.beans.factory.support.RootBeanDefinition;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.env.SystemEnvironmentPropertySource;

class SettingNamesTest {
  private final DefaultListableBeanFactory beans = new DefaultListableBeanFactory();
  private final StandardEnvironment environment = new StandardEnvironment();

  private void require() {
    ConfigurationPropertySources.attach(environment);
    SettingNames.requireKnown(environment, beans);
  }

  private void set(String name) {
    environment.getPropertySources().addFirst(new MapPropertySource(name, Map.of(name, "1")));
  }

  @ParameterizedTest
  @CsvSource({
    "outbox4j.tabel, outbox4j.table",
    "outbox4j.migrat, outbox4j.migrate",
    "outbox4j.listener.url, outbox4j.listen.url",
    "outbox4j.workers, outbox4j.subscriber.workers",
    "outbox4j.retry.attempts, outbox4j.subscriber.retry.attempts",
    "outbox4j.subscriber.handler-timout, outbox4j.subscriber.handler-timeout",
    "outbox4j.subscriber.retry.attempt, outbox4j.subscriber.retry.attempts",
    "outbox4j.queues.mail.handler-timout, outbox4j.queues.mail.handler-timeout",
    "outbox4j.queues[a.b].retry.attempt, outbox4j.queues[a.b].retry.attempts",
    "outbox4j.depth-metrics.intervall, outbox4j.depth-metrics.interval"
  })
  void refusesANameThatNobodyReadsAndNamesOneThatIsNear(String written, String near) {
    set(written);
    assertThatThrownBy(this::require)
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("There is no setting " + written + " (" + near + " is near);");
  }

  @Test
  void namesNoOtherWhereNoneIsNear() {
    set("outbox4j.colour");
    assertThatThrownBy(this::require)
        .hasMessage("There is no setting outbox4j.colour; correct the name, or drop it");
  }

  @Test
  void namesAllThatNobodyReadsWhateverTheirSpelling() {
    set("outbox4j.subscriber.handlerTimout");
    set("outbox4j.subscriber.batch_sice");
    assertThatThrownBy(this::require)
        .hasMessageContaining("(outbox4j.subscriber.handler-timeout is near)")
        .hasMessageContaining("(outbox4j.subscriber.batch-size is near)");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "outbox4j",
        "outbox4j.autoStart",
        "outbox4j.allow-unhandled-queues",
        "outbox4j.dead_letter_table",
        "outbox4j.listen",
        "outbox4j.listen.url",
        "outbox4j.depthMetrics.tableTag",
        "outbox4j.subscriber",
        "outbox4j.subscriber.handlerTimeout",
        "outbox4j.subscriber.retry.maxTotalTime",
        "outbox4j.queues",
        "outbox4j.queues.mail",
        "outbox4j.queues.mail.poll_max",
        "outbox4j.queues[a.b].retry.attempts",
        "outbox4j-extras.size",
        "management.endpoint.outbox.access"
      })
  void takesEachNameThatSomebodyReads(String name) {
    set(name);
    assertThatCode(this::require).doesNotThrowAnyException();
  }

  /** Such as those of Kubernetes, which names them after its services. */
  @Test
  void passesByVariablesOfTheEnvironment() {
    environment
        .getPropertySources()
        .addFirst(
            new SystemEnvironmentPropertySource(
                StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME,
                Map.of(
                    "OUTBOX4J_SERVICE_HOST", "10.0.0.1",
                    "OUTBOX4J_SUBSCRIBER_HANDLERTIMEOUT", "1m",
                    "OUTBOX4J_DEADLETTERTABLE", "failed")));
    assertThatCode(this::require).doesNotThrowAnyException();
  }

  @ConfigurationProperties("outbox4j.extras")
  static class Extras {}

  @Test
  void leavesTheSettingsOfOthersBelowThisNameToThem() {
    beans.registerBeanDefinition("extras", new RootBeanDefinition(Extras.class));
    set("outbox4j.extras.size");
    assertThatCode(this::require).doesNotThrowAnyException();
    set("outbox4j.extra");
    assertThatThrownBy(this::require)
        .satisfies(
            refusal ->
                assertThat(refusal.getMessage())
                    .contains("outbox4j.extra;")
                    .doesNotContain("extras"));
  }
}
