package dev.outbox4j.spring;

import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.context.annotation.Bean;

/**
 * Shows the outbox's health under {@code outbox}, with Spring Boot 4. It is no part of the liveness
 * and readiness groups: a database that is away is not mended by a restart.
 */
@AutoConfiguration(after = OutboxAutoConfiguration.class)
@ConditionalOnClass({HealthIndicator.class, ConditionalOnEnabledHealthIndicator.class})
@ConditionalOnBean(OutboxStatusCheck.class)
@ConditionalOnEnabledHealthIndicator("outbox")
public final class OutboxHealthAutoConfiguration {

  /** Is made by Spring. */
  OutboxHealthAutoConfiguration() {}

  @Bean
  @ConditionalOnMissingBean(name = {"outboxHealthIndicator", "outboxHealthContributor"})
  HealthIndicator outboxHealthIndicator(OutboxStatusCheck check) {
    return () -> {
      OutboxStatus status = check.check();
      return (status.up() ? Health.up() : Health.down()).withDetails(status.details()).build();
    };
  }
}
