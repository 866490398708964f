package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import dev.outbox4j.migrations.DeadLetterMigrations;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.SchemaValidator;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.PayloadCodec;
import java.time.Duration;
import java.util.Objects;
import javax.sql.DataSource;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.sql.init.dependency.DependsOnDatabaseInitialization;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.env.Environment;
import org.springframework.util.function.SingletonSupplier;

/**
 * The outbox of a Spring Boot service: what publishes, what subscribes, and the tables. Each bean
 * of a public type but {@link ContextSubscribers} gives way to one of the service's own; what
 * migrates, starts and stops does not.
 */
@AutoConfiguration(
    afterName = {
      // Spring Boot 4
      "org.springframework.boot.flyway.autoconfigure.FlywayAutoConfiguration",
      "org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration",
      "org.springframework.boot.jackson2.autoconfigure.Jackson2AutoConfiguration",
      "org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration",
      "org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration",
      // Spring Boot 3
      "org.springframework.boot.autoconfigure.flyway.FlywayAutoConfiguration",
      "org.springframework.boot.autoconfigure.jackson.JacksonAutoConfiguration",
      "org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration",
      "org.springframework.boot.actuate.autoconfigure.metrics.CompositeMeterRegistryAutoConfiguration"
    })
@ConditionalOnProperty(prefix = "outbox4j", name = "enabled", matchIfMissing = true)
@EnableConfigurationProperties(OutboxProperties.class)
@Import({
  OutboxOptionalBeans.Jackson3.class,
  OutboxOptionalBeans.Jackson2.class,
  OutboxOptionalBeans.Metrics.class,
  OutboxOptionalBeans.Depths.class
})
public final class OutboxAutoConfiguration {

  /** Is made by Spring. */
  OutboxAutoConfiguration() {}

  @Bean
  @ConditionalOnMissingBean
  PostgresStore outboxStore(
      OutboxProperties properties,
      @OutboxDataSource ObjectProvider<DataSource> marked,
      ObjectProvider<DataSource> any) {
    PostgresOutbox outbox = PostgresOutbox.on(dataSource(marked, any), Tables.outbox(properties));
    Duration timeout = properties.networkTimeout();
    return timeout == null
        ? outbox.store()
        : Setting.of("outbox4j.network-timeout", () -> outbox.store(timeout));
  }

  private static DataSource dataSource(
      ObjectProvider<DataSource> marked, ObjectProvider<DataSource> any) {
    DataSource own = marked.getIfAvailable();
    DataSource found = own != null ? own : any.getIfUnique();
    if (found == null) {
      throw new OutboxException(
          "The outbox needs a DataSource bean, and there is "
              + (any.stream().findAny().isEmpty()
                  ? "none; set spring.datasource.url, or outbox4j.enabled=false"
                  : "more than one; mark one with @Primary, or with @OutboxDataSource"));
    }
    return found;
  }

  @Bean
  @ConditionalOnMissingBean
  PostgresOutbox postgresOutbox(PostgresStore store) {
    return PostgresOutbox.on(store.dataSource(), store.table());
  }

  @Bean
  @ConditionalOnMissingBean
  SchemaValidator outboxSchemaValidator(OutboxProperties properties, PostgresOutbox outbox) {
    SchemaValidator validator = outbox.validator();
    if (!properties.orderedQueues().isEmpty()) {
      String[] queues = properties.orderedQueues().toArray(String[]::new);
      validator = validator.orderedQueues(queues[0], queues);
    }
    if (properties.pausable()) {
      validator = validator.pauses();
    }
    if (properties.dedupKeys()) {
      validator = validator.dedup();
    }
    if (properties.limitsConcurrency()) {
      validator = validator.slots();
    }
    if (properties.deleteTerminalFailures()) {
      return validator;
    }
    DeadLetterMigrations deadLetters = Tables.migrations(properties).deadLetters();
    return validator.deadLetters(deadLetters.schema(), deadLetters.table());
  }

  @Bean
  @DependsOnDatabaseInitialization
  OutboxSchemaInitializer outboxSchemaInitializer(
      OutboxProperties properties,
      PostgresStore store,
      SchemaValidator validator,
      ConfigurableListableBeanFactory beans,
      Environment environment) {
    SettingNames.requireKnown(environment, beans); // before a slip has tables made
    DurationUnits.require(environment, properties.queues().keySet());
    Contradictions.refuse(properties);
    Tables.requireSame(properties, store.table());
    return new OutboxSchemaInitializer(
        properties,
        SingletonSupplier.of(() -> FlywayOwner.of(beans, store.dataSource())),
        validator);
  }

  @Bean
  @ConditionalOnMissingBean
  OutboxPublisher outboxPublisher(
      OutboxProperties properties, PostgresStore store, ObjectProvider<PayloadCodec> codec) {
    PostgresOutbox.PublisherBuilder builder =
        PostgresOutbox.publisher(store.table()).notify(properties.notifyMode());
    codec.ifAvailable(builder::codec);
    return builder.build();
  }

  @Bean
  @ConditionalOnMissingBean
  OutboxTemplate outboxTemplate(
      OutboxPublisher publisher, PostgresStore store, OutboxSchemaInitializer tablesFirst) {
    Objects.requireNonNull(tablesFirst);
    return new OutboxTemplate(publisher, store.dataSource());
  }

  @Bean
  static TransactionObserver outboxTransactionObserver(ConfigurableListableBeanFactory beans) {
    return new TransactionObserver(beans);
  }

  @Bean
  @Lazy // a service that only publishes need not say where to listen
  @ConditionalOnMissingBean
  @ConditionalOnProperty(prefix = "outbox4j.listen", name = "enabled", matchIfMissing = true)
  NotificationSource outboxNotificationSource(OutboxProperties properties, PostgresStore store) {
    return ListenSource.of(properties.listen(), store.dataSource());
  }

  @Bean
  OutboxLifecycle outboxLifecycle(
      OutboxProperties properties,
      PostgresStore store,
      OutboxSchemaInitializer schema,
      ConfigurableListableBeanFactory beans,
      ApplicationContext context) {
    boolean virtualThreads =
        context.getEnvironment().getProperty("spring.threads.virtual.enabled", Boolean.class, false)
            && Runtime.version().feature() >= 21;
    return new OutboxLifecycle(
        new SubscriberFactory(beans, properties, store, virtualThreads),
        schema,
        context,
        properties.autoStart());
  }

  @Bean
  ContextSubscribers outboxContextSubscribers(OutboxLifecycle lifecycle) {
    return new ContextSubscribers(lifecycle.factory());
  }

  @Bean
  @ConditionalOnMissingBean
  OutboxStatusCheck outboxStatusCheck(
      OutboxProperties properties, OutboxLifecycle lifecycle, SchemaValidator validator) {
    return new OutboxStatusCheck(lifecycle, properties.validate() ? validator : null);
  }
}
