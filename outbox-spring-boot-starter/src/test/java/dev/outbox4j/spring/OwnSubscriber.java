package dev.outbox4j.spring;

import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.postgres.PostgresStore;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** A subscriber that a service declares itself, named {@code own}. */
@Configuration(proxyBeanMethods = false)
class OwnSubscriber {
  @Bean(destroyMethod = "")
  OutboxSubscriber own(PostgresStore store) {
    return OutboxSubscriber.builder("own")
        .store(store)
        .deleteTerminalFailures()
        .on("sent", String.class, (body, delivery) -> {})
        .build();
  }
}
