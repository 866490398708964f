package dev.outbox4j.test.spring;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.context.annotation.ComponentScan;
import org.springframework.core.annotation.AliasFor;
import org.springframework.test.context.BootstrapWith;
import org.springframework.test.context.junit.jupiter.SpringExtension;

/**
 * Tests publishing and handling of a Spring Boot service, without the rest of it: the data source,
 * JDBC, JPA, jOOQ, Flyway or Liquibase, transactions, Jackson and the outbox are configured, as far
 * as they are on the class path. There is no web server.
 *
 * <p>Of the components that the {@code @SpringBootApplication} scans, those with {@link
 * dev.outbox4j.spring.OutboxHandler} methods are included, also inherited ones. Bring others by
 * {@code @Import} or {@link #includeFilters}. Settings of queues whose handlers are left out are
 * ignored.
 *
 * <p>The database, and what is emptied before each test: {@link AutoConfigureOutboxTest}. The test
 * is not transactional, since subscribers see only what is committed.
 */
@Documented
@Inherited
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@BootstrapWith(OutboxTestContextBootstrapper.class)
@ExtendWith(SpringExtension.class)
@AutoConfigureOutboxTest
@ImportAutoConfiguration
public @interface OutboxTest {

  /** {@return properties of the context, as {@code key=value}} */
  String[] properties() default {};

  /** {@return whether subscribers start with the context} */
  @AliasFor(annotation = AutoConfigureOutboxTest.class)
  boolean autoStart() default false;

  /** {@return which database the context connects to} */
  @AliasFor(annotation = AutoConfigureOutboxTest.class)
  AutoConfigureOutboxTest.Database database() default AutoConfigureOutboxTest.Database.EMBEDDED;

  /** {@return scanned components to include as well} */
  ComponentScan.Filter[] includeFilters() default {};

  /** {@return scanned components to leave out, also if they have handlers} */
  ComponentScan.Filter[] excludeFilters() default {};

  /** {@return auto-configurations to leave out} */
  @AliasFor(annotation = ImportAutoConfiguration.class, attribute = "exclude")
  Class<?>[] excludeAutoConfiguration() default {};
}
