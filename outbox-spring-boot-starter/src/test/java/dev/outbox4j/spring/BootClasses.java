package dev.outbox4j.spring;

import java.util.stream.Stream;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.util.ClassUtils;

/**
 * Auto-configurations under the names of Spring Boot 4 and of 3.5, so that the same tests run with
 * either; those of the other line are not on the class path.
 */
final class BootClasses {
  private static final String[] SERVICE = {
    "org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration",
    "org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration",
    "org.springframework.boot.transaction.autoconfigure.TransactionAutoConfiguration",
    "org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration",
    "org.springframework.boot.flyway.autoconfigure.FlywayAutoConfiguration",
    "dev.outbox4j.spring.OutboxHealthAutoConfiguration",
    "org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration",
    "org.springframework.boot.autoconfigure.jdbc.DataSourceTransactionManagerAutoConfiguration",
    "org.springframework.boot.autoconfigure.transaction.TransactionAutoConfiguration",
    "org.springframework.boot.autoconfigure.jackson.JacksonAutoConfiguration",
    "org.springframework.boot.autoconfigure.flyway.FlywayAutoConfiguration",
    "dev.outbox4j.spring.boot3.OutboxBoot3HealthAutoConfiguration"
  };

  private static final String[] METRICS = {
    "org.springframework.boot.micrometer.metrics.autoconfigure.MetricsAutoConfiguration",
    "org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration",
    "org.springframework.boot.micrometer.metrics.autoconfigure.export.simple.SimpleMetricsExportAutoConfiguration",
    "org.springframework.boot.actuate.autoconfigure.metrics.MetricsAutoConfiguration",
    "org.springframework.boot.actuate.autoconfigure.metrics.CompositeMeterRegistryAutoConfiguration",
    "org.springframework.boot.actuate.autoconfigure.metrics.export.simple.SimpleMetricsExportAutoConfiguration"
  };

  private BootClasses() {}

  /** A service with a database, transactions, a JSON mapper, Flyway and the outbox's health. */
  static AutoConfigurations service() {
    return present(SERVICE);
  }

  /** What the actuator makes of meter registries. */
  static AutoConfigurations metrics() {
    return present(METRICS);
  }

  private static AutoConfigurations present(String... names) {
    return AutoConfigurations.of(
        Stream.of(names)
            .filter(BootClasses::canBeUsed)
            .map(name -> ClassUtils.resolveClassName(name, null))
            .toArray(Class<?>[]::new));
  }

  /** A class that is there may have methods that name absent ones. */
  private static boolean canBeUsed(String name) {
    try {
      return ClassUtils.resolveClassName(name, null).getDeclaredMethods() != null;
    } catch (IllegalArgumentException | LinkageError absent) {
      return false;
    }
  }
}
