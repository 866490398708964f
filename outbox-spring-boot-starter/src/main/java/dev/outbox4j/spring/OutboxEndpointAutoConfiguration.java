package dev.outbox4j.spring;

import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import org.springframework.boot.actuate.autoconfigure.endpoint.condition.ConditionalOnAvailableEndpoint;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

/** Shows subscribers, queues and dead letters at the actuator endpoint {@code outbox}. */
@AutoConfiguration(after = OutboxAutoConfiguration.class)
@ConditionalOnClass({Endpoint.class, ConditionalOnAvailableEndpoint.class})
@ConditionalOnBean(OutboxLifecycle.class)
public final class OutboxEndpointAutoConfiguration {

  /** Is made by Spring. */
  OutboxEndpointAutoConfiguration() {}

  @Bean
  @ConditionalOnMissingBean
  @ConditionalOnAvailableEndpoint(endpoint = OutboxEndpoint.class)
  OutboxEndpoint outboxEndpoint(
      OutboxProperties properties,
      PostgresOutbox outbox,
      PostgresStore store,
      OutboxLifecycle lifecycle) {
    return new OutboxEndpoint(properties, outbox, store, lifecycle);
  }
}
