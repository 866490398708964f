package dev.outbox4j.spring.boot3;

import dev.outbox4j.spring.OutboxAutoConfiguration;
import dev.outbox4j.spring.OutboxStatus;
import dev.outbox4j.spring.OutboxStatusCheck;
import org.springframework.boot.actuate.autoconfigure.health.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.actuate.health.Health;
import org.springframework.boot.actuate.health.HealthIndicator;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

/** Shows the outbox's health under {@code outbox}, with Spring Boot 3.5. */
@AutoConfiguration(after = OutboxAutoConfiguration.class)
@ConditionalOnClass({HealthIndicator.class, ConditionalOnEnabledHealthIndicator.class})
@ConditionalOnBean(OutboxStatusCheck.class)
@ConditionalOnEnabledHealthIndicator("outbox")
public final class OutboxBoot3HealthAutoConfiguration {

  /** Is made by Spring. */
  OutboxBoot3HealthAutoConfiguration() {}

  @Bean
  @ConditionalOnMissingBean(name = {"outboxHealthIndicator", "outboxHealthContributor"})
  HealthIndicator outboxHealthIndicator(OutboxStatusCheck check) {
    return () -> {
      OutboxStatus status = check.check();
      return (status.up() ? Health.up() : Health.down()).withDetails(status.details()).build();
    };
  }
}
