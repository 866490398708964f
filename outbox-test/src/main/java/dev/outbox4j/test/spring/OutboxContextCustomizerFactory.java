package dev.outbox4j.test.spring;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.test.context.ContextConfigurationAttributes;
import org.springframework.test.context.ContextCustomizer;
import org.springframework.test.context.ContextCustomizerFactory;
import org.springframework.test.context.TestContextAnnotationUtils;

/** Is asked for every Spring test; those without the annotations are left alone. */
final class OutboxContextCustomizerFactory implements ContextCustomizerFactory {

  /** Is made by Spring. */
  OutboxContextCustomizerFactory() {}

  @Override
  public @Nullable ContextCustomizer createContextCustomizer(
      Class<?> testClass, List<ContextConfigurationAttributes> configurations) {
    AutoConfigureOutboxTest test =
        TestContextAnnotationUtils.findMergedAnnotation(testClass, AutoConfigureOutboxTest.class);
    if (test == null) {
      return null;
    }
    OutboxTest slice = TestContextAnnotationUtils.findMergedAnnotation(testClass, OutboxTest.class);
    return new OutboxContextCustomizer(
        test.autoStart(), test.database(), slice == null ? null : Slice.of(slice));
  }
}
