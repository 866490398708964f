package dev.outbox4j.test.spring;

import org.springframework.test.context.TestContext;
import org.springframework.test.context.TestContextAnnotationUtils;
import org.springframework.test.context.support.AbstractTestExecutionListener;

/** Empties the outbox before each test; tests without the annotations are left alone. */
final class OutboxTestExecutionListener extends AbstractTestExecutionListener {
  private static final int BEFORE_TRANSACTIONS = 3_900; // TransactionalTestExecutionListener: 4000

  /** Is made by Spring. */
  OutboxTestExecutionListener() {}

  @Override
  public int getOrder() {
    return BEFORE_TRANSACTIONS;
  }

  @Override
  public void beforeTestMethod(TestContext test) {
    if (TestContextAnnotationUtils.hasAnnotation(
        test.getTestClass(), AutoConfigureOutboxTest.class)) {
      TestTables.of(test.getApplicationContext()).empty();
    }
  }
}
