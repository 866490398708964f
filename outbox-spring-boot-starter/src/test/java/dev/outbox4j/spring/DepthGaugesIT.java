package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.metrics.OutboxDepthMetrics;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import io.micrometer.core.instrument.Clock;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.composite.CompositeMeterRegistry;
import io.micrometer.core.instrument.logging.LoggingMeterRegistry;
import io.micrometer.core.instrument.logging.LoggingRegistryConfig;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.LazyInitializationBeanFactoryPostProcessor;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Which process asks what the queues hold, and from when to when. */
@ExtendWith({PostgresExtension.class, OutputCaptureExtension.class})
@Tag("once")
class DepthGaugesIT extends StarterFixture {
  private static final String ASKING = "outbox.depth.asking";

  DepthGaugesIT(TestDatabase database) {
    super(database);
  }

  /** One that somebody reads, if only in the log. */
  private static LoggingMeterRegistry read() {
    LoggingRegistryConfig config =
        new LoggingRegistryConfig() {
          @Override
          public @Nullable String get(String key) {
            return null;
          }

          @Override
          public Duration step() {
            return Duration.ofHours(1);
          }
        };
    return new LoggingMeterRegistry(config, Clock.SYSTEM);
  }

  /** With the meter registries of a service with the actuator and no library of a registry. */
  private ApplicationContextRunner actuator() {
    return service()
        .withConfiguration(BootClasses.metrics())
        .withPropertyValues("outbox4j.depth-metrics.interval=1s");
  }

  private static boolean asks(ApplicationContext context) {
    return context.getBean(MeterRegistry.class).find(ASKING).meter() != null;
  }

  @Test
  void leavesTheCountToOthersIfNobodyReadsTheRegistry(CapturedOutput output) {
    actuator()
        .run(
            context -> {
              assertThat(context).hasSingleBean(SimpleMeterRegistry.class);
              assertThat(asks(context)).isFalse();
            });
    actuator()
        .withPropertyValues("management.simple.metrics.export.enabled=false")
        .run(
            context -> {
              assertThat(context.getBean(MeterRegistry.class))
                  .isInstanceOf(CompositeMeterRegistry.class);
              assertThat(asks(context)).isFalse();
            });
    actuator()
        .withBean("one", SimpleMeterRegistry.class)
        .withBean("other", SimpleMeterRegistry.class)
        .run(
            context -> {
              assertThat(context.getBean(MeterRegistry.class))
                  .isInstanceOf(CompositeMeterRegistry.class);
              assertThat(asks(context)).isFalse();
            });
    assertThat(output).contains("outbox4j.depth-metrics.enabled=true counts all the same");
  }

  @Test
  void asksIfAnyRegistryIsRead() {
    actuator()
        .withBean("read", LoggingMeterRegistry.class, DepthGaugesIT::read)
        .run(context -> assertThat(asks(context)).isTrue());
    actuator()
        .withBean("read", LoggingMeterRegistry.class, DepthGaugesIT::read)
        .withBean("simple", SimpleMeterRegistry.class)
        .run(
            context -> {
              assertThat(context.getBean(MeterRegistry.class))
                  .isInstanceOf(CompositeMeterRegistry.class);
              assertThat(asks(context)).isTrue();
            });
  }

  @Configuration(proxyBeanMethods = false)
  static class Adding {
    @Bean
    SmartInitializingSingleton adds(ObjectProvider<CompositeMeterRegistry> registry) {
      return () -> registry.getObject().add(read());
    }
  }

  @Test
  void asksIfARegistryIsAddedBeforeTheStart() {
    actuator()
        .withPropertyValues("management.simple.metrics.export.enabled=false")
        .withUserConfiguration(Adding.class)
        .run(context -> assertThat(asks(context)).isTrue());
  }

  @Test
  void aPropertyWinsOverTheLookAtTheRegistry() {
    actuator()
        .withPropertyValues("outbox4j.depth-metrics.enabled=true")
        .run(context -> assertThat(asks(context)).isTrue());
    actuator()
        .withBean("read", LoggingMeterRegistry.class, DepthGaugesIT::read)
        .withPropertyValues("outbox4j.depth-metrics.enabled=false")
        .run(
            context -> {
              assertThat(context).doesNotHaveBean(OutboxDepthMetrics.class);
              assertThat(asks(context)).isFalse();
            });
  }

  @Test
  void asksAlsoWhereBeansAreMadeWhenTheyAreNeeded() {
    actuator()
        .withBean("read", LoggingMeterRegistry.class, DepthGaugesIT::read)
        .withInitializer(
            context ->
                context.addBeanFactoryPostProcessor(
                    new LazyInitializationBeanFactoryPostProcessor()))
        .run(context -> assertThat(asks(context)).isTrue());
  }

  @Test
  void restsWhileTheContextDoesAndEndsWithIt() {
    LoggingMeterRegistry registry = read();
    actuator()
        .withBean("read", LoggingMeterRegistry.class, () -> registry)
        .run(
            running -> {
              ConfigurableApplicationContext context = running.getSourceApplicationContext();
              await().until(() -> registry.get(ASKING).gauge().value() == 1);
              context.stop();
              assertThat(asks(context)).isFalse();
              assertThat(leaseIsOver()).as("another process may count at once").isTrue();
              context.start();
              await().until(() -> registry.get(ASKING).gauge().value() == 1);
              context.close();
              assertThat(registry.find(ASKING).meter()).isNull();
              assertThat(leaseIsOver()).as("another process may count at once").isTrue();
            });
  }

  private boolean leaseIsOver() {
    return database.one(
        Boolean.class,
        "select until <= clock_timestamp() from " + schema + ".outbox_sleepers where queue = ''");
  }

  @Configuration(proxyBeanMethods = false)
  static class OwnGauges {
    @Bean
    OutboxDepthMetrics own(MeterRegistry registry, PostgresOutbox outbox) {
      return OutboxDepthMetrics.on(registry, outbox);
    }
  }

  @Test
  void aServiceThatDeclaresTheGaugesStartsThemItself() {
    actuator()
        .withBean("read", LoggingMeterRegistry.class, DepthGaugesIT::read)
        .withUserConfiguration(OwnGauges.class)
        .run(
            context -> {
              assertThat(context)
                  .hasSingleBean(OutboxDepthMetrics.class)
                  .doesNotHaveBean("outboxDepthMetricsLifecycle");
              assertThat(asks(context)).isFalse();
            });
  }
}
