package dev.outbox4j.postgres.testing;

import java.util.Locale;
import java.util.UUID;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives a test class a {@link TestDatabase} as a parameter of its constructor, methods or lifecycle
 * methods: one per class, made at its first use.
 */
public final class PostgresExtension implements ParameterResolver {
  private static final ExtensionContext.Namespace NAMESPACE =
      ExtensionContext.Namespace.create(PostgresExtension.class);

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return parameter.getParameter().getType() == TestDatabase.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    ExtensionContext ofClass = context;
    while (ofClass.getTestMethod().isPresent()) {
      ofClass = ofClass.getParent().orElseThrow();
    }
    return ofClass
        .getStore(NAMESPACE)
        .computeIfAbsent(
            TestDatabase.class,
            key ->
                new TestDatabase(
                    PostgresServer.shared(),
                    "test_"
                        + UUID.randomUUID().toString().replace("-", "").toLowerCase(Locale.ROOT)),
            TestDatabase.class);
  }
}
