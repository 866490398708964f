package dev.outbox4j.spring;

import dev.outbox4j.Delivery;
import dev.outbox4j.Payload;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Method;
import java.lang.reflect.Type;
import org.springframework.aot.hint.BindingReflectionHintsRegistrar;
import org.springframework.aot.hint.ExecutableMode;
import org.springframework.aot.hint.ReflectionHints;
import org.springframework.aot.hint.annotation.ReflectiveProcessor;

/** Tells Spring's AOT of handler methods, which are called by reflection, and of their bodies. */
final class HandlerHints implements ReflectiveProcessor {
  HandlerHints() {}

  @Override
  public void registerReflectionHints(ReflectionHints hints, AnnotatedElement element) {
    if (element instanceof Method method) {
      hints.registerMethod(method, ExecutableMode.INVOKE);
      for (Type parameter : method.getGenericParameterTypes()) {
        Type ofBatch = BatchParameter.elementOf(parameter);
        Type body = ofBatch == null ? parameter : ofBatch;
        if (body != Delivery.class && body != Payload.class) {
          new BindingReflectionHintsRegistrar().registerReflectionHints(hints, body);
        }
      }
    }
  }
}
