package dev.outbox4j.spring;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.codec.jackson3.Jackson3Codec;
import dev.outbox4j.metrics.MicrometerMetrics;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.metrics.OutboxDepthMetrics;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.spring.OutboxProperties.DepthMetrics;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Duration;
import java.util.Objects;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnSingleCandidate;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import tools.jackson.databind.json.JsonMapper;

/** The beans that stand on libraries which a service need not have. */
final class OutboxOptionalBeans {
  private OutboxOptionalBeans() {}

  /** Before Jackson 2, so a service that has both uses this one. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(JsonMapper.class)
  static class Jackson3 {
    @Bean
    @ConditionalOnMissingBean(PayloadCodec.class)
    @ConditionalOnSingleCandidate(JsonMapper.class)
    Jackson3Codec outboxCodec(JsonMapper mapper) {
      return Jackson3Codec.of(mapper);
    }
  }

  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(ObjectMapper.class)
  static class Jackson2 {
    @Bean
    @ConditionalOnMissingBean(PayloadCodec.class)
    @ConditionalOnSingleCandidate(ObjectMapper.class)
    Jackson2Codec outboxJackson2Codec(ObjectMapper mapper) {
      return Jackson2Codec.of(mapper);
    }
  }

  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(MeterRegistry.class)
  static class Metrics {
    @Bean
    @ConditionalOnMissingBean
    @ConditionalOnSingleCandidate(MeterRegistry.class)
    MicrometerMetrics outboxMetrics(MeterRegistry registry) {
      return MicrometerMetrics.on(registry);
    }
  }

  /** Gives way as a whole: who declares the gauges starts them, too. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(MeterRegistry.class)
  @ConditionalOnMissingBean(OutboxDepthMetrics.class)
  @ConditionalOnSingleCandidate(MeterRegistry.class)
  @ConditionalOnProperty(prefix = "outbox4j.depth-metrics", name = "enabled", matchIfMissing = true)
  static class Depths {
    @Bean
    OutboxDepthMetrics outboxDepthMetrics(
        OutboxProperties properties,
        MeterRegistry registry,
        PostgresOutbox outbox,
        OutboxSchemaInitializer tablesFirst) {
      Objects.requireNonNull(tablesFirst);
      DepthMetrics settings = properties.depthMetrics();
      OutboxDepthMetrics.Builder builder = OutboxDepthMetrics.builder(registry, outbox);
      Duration interval = settings.interval();
      if (interval != null) {
        Setting.of("outbox4j.depth-metrics.interval", () -> builder.interval(interval));
      }
      String tableTag = settings.tableTag();
      if (tableTag != null) {
        Setting.of("outbox4j.depth-metrics.table-tag", () -> builder.tableTag(tableTag));
      }
      return builder.build();
    }

    @Bean
    DepthMetricsLifecycle outboxDepthMetricsLifecycle(
        OutboxProperties properties, MeterRegistry registry, OutboxDepthMetrics metrics) {
      return new DepthMetricsLifecycle(
          metrics, registry, Boolean.TRUE.equals(properties.depthMetrics().enabled()));
    }
  }
}
