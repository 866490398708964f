package dev.outbox4j.test.spring;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.test.context.SpringBootTestContextBootstrapper;
import org.springframework.test.context.TestContextAnnotationUtils;

/** Boots as {@code @SpringBootTest} does, with the properties of {@link OutboxTest}. */
final class OutboxTestContextBootstrapper extends SpringBootTestContextBootstrapper {

  @Override
  protected String @Nullable [] getProperties(Class<?> testClass) {
    OutboxTest test = TestContextAnnotationUtils.findMergedAnnotation(testClass, OutboxTest.class);
    return test == null ? null : test.properties();
  }
}
