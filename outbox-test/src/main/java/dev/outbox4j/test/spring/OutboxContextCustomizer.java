package dev.outbox4j.test.spring;

import dev.outbox4j.test.internal.kit.TestDatabase;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.support.BeanDefinitionBuilder;
import org.springframework.beans.factory.support.DefaultListableBeanFactory;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.MapPropertySource;
import org.springframework.test.context.ContextCustomizer;
import org.springframework.test.context.MergedContextConfiguration;

/** Gives a context its database and its {@link TestOutbox}. Part of the key of cached contexts. */
record OutboxContextCustomizer(
    boolean autoStart, AutoConfigureOutboxTest.Database database, @Nullable Slice slice)
    implements ContextCustomizer {
  private static final String USER = "postgres";
  private static final String DRIVER = "org.postgresql.Driver";
  private static final String HIKARI = "spring.datasource.hikari.";

  @Override
  public void customizeContext(
      ConfigurableApplicationContext context, MergedContextConfiguration configuration) {
    DefaultListableBeanFactory beans = (DefaultListableBeanFactory) context.getBeanFactory();
    Map<String, Object> properties = new HashMap<>();
    properties.put("outbox4j.auto-start", autoStart);
    if (database == AutoConfigureOutboxTest.Database.EMBEDDED) {
      TestDatabase own = TestDatabase.embedded();
      // the first to be registered is the last to be destroyed, after the pool
      beans.registerDisposableBean("outboxTestDatabase", own::close);
      connect(own.url(), context.getEnvironment(), properties);
      ContextDatabase made = new ContextDatabase(own.name());
      beans.registerSingleton("outboxTestContextDatabase", made);
      beans.addBeanPostProcessor(made.check());
    }
    if (slice != null) {
      properties.put("spring.boot.enableautoconfiguration", false); // but those that are imported
      properties.put("outbox4j.allow-unhandled-queues", true);
      beans.registerSingleton("outboxTestSlice", slice.filter(context));
    }
    context
        .getEnvironment()
        .getPropertySources()
        .addFirst(new MapPropertySource("outboxTest", properties));
    beans.registerBeanDefinition(
        "testOutbox",
        BeanDefinitionBuilder.genericBeanDefinition(TestOutbox.class, () -> new TestOutbox(beans))
            .setLazyInit(true)
            .getBeanDefinition());
  }

  /** Others that the service has told where to connect have to follow. */
  private static void connect(
      String url, ConfigurableEnvironment environment, Map<String, Object> properties) {
    properties.put("spring.datasource.url", url);
    properties.put("spring.datasource.username", USER);
    properties.put("spring.datasource.password", USER);
    properties.put("spring.datasource.driver-class-name", DRIVER);
    // what a pool is told itself wins over the rest of spring.datasource
    follow("spring.datasource.jdbc-url", url, environment, properties);
    follow(HIKARI + "jdbc-url", url, environment, properties);
    follow(HIKARI + "username", USER, environment, properties);
    follow(HIKARI + "password", USER, environment, properties);
    follow(HIKARI + "driver-class-name", DRIVER, environment, properties);
    if (!environment.containsProperty(HIKARI + "minimum-idle")) {
      properties.put(HIKARI + "minimum-idle", 1); // contexts are cached, and share one server
    }
    for (String prefix : new String[] {"spring.flyway.", "spring.liquibase.", "outbox4j.listen."}) {
      follow(prefix + "url", url, environment, properties);
      follow(prefix + "user", USER, environment, properties);
      follow(prefix + "username", USER, environment, properties);
      follow(prefix + "password", USER, environment, properties);
    }
  }

  private static void follow(
      String name, String value, ConfigurableEnvironment environment, Map<String, Object> into) {
    if (environment.containsProperty(name)) {
      into.put(name, value);
    }
  }
}
