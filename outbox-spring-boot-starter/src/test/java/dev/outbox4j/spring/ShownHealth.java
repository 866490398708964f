package dev.outbox4j.spring;

import java.util.Map;
import java.util.Objects;
import org.springframework.context.ApplicationContext;
import org.springframework.test.util.ReflectionTestUtils;

/**
 * What the context's health indicator shows of the outbox. Asked by name, since the types of Spring
 * Boot 4 and of 3.5 are the same in other packages.
 *
 * @param status such as {@code UP}
 * @param details by name
 */
record ShownHealth(String status, Map<String, Object> details) {
  static final String INDICATOR = "outboxHealthIndicator";

  static ShownHealth of(ApplicationContext context) {
    Object health = ask(context.getBean(INDICATOR), "health");
    Object status = ask(health, "getStatus");
    Map<String, Object> details = ReflectionTestUtils.invokeMethod(health, "getDetails");
    return new ShownHealth(status.toString(), Objects.requireNonNull(details));
  }

  private static Object ask(Object of, String method) {
    Object answer = ReflectionTestUtils.invokeMethod(of, method);
    return Objects.requireNonNull(answer, method);
  }
}
