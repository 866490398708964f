package dev.outbox4j.spring;

import dev.outbox4j.BatchMessage;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.core.GenericTypeResolver;

/** The parameter of a method that takes several messages at once. */
final class BatchParameter {
  private BatchParameter() {}

  /** Returns the T of a method's {@code List<BatchMessage<T>>}, its only parameter, or null. */
  static @Nullable Type elementOf(Method method, Class<?> beanClass) {
    Type[] parameters = method.getGenericParameterTypes();
    return parameters.length == 1
        ? elementOf(GenericTypeResolver.resolveType(parameters[0], beanClass))
        : null;
  }

  /** Returns the T of {@code List<BatchMessage<T>>}, or null if it is another type. */
  static @Nullable Type elementOf(Type type) {
    Type message = argumentOf(type, List.class);
    return message == null ? null : argumentOf(message, BatchMessage.class);
  }

  private static @Nullable Type argumentOf(Type type, Class<?> raw) {
    return type instanceof ParameterizedType generic && generic.getRawType() == raw
        ? generic.getActualTypeArguments()[0]
        : null;
  }

  /** Tells whether a type names batch messages in any way: no body is one. */
  static boolean isMeant(Type type) {
    return type.getTypeName().contains(BatchMessage.class.getName());
  }
}
