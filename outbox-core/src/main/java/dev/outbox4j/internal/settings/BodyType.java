package dev.outbox4j.internal.settings;

import dev.outbox4j.Payload;
import dev.outbox4j.TypeRef;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.GenericArrayType;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.util.Objects;

/**
 * What a handler takes. Immutable.
 *
 * @param type as the codec is told it
 * @param raw without type arguments, and boxed
 */
record BodyType(Type type, Class<?> raw) {
  static BodyType of(Class<?> type) {
    Objects.requireNonNull(type, "bodyType");
    return new BodyType(type, MethodType.methodType(type).wrap().returnType());
  }

  static BodyType of(TypeRef<?> type) {
    Objects.requireNonNull(type, "bodyType");
    return new BodyType(type.type(), raw(type.type()));
  }

  private static Class<?> raw(Type type) {
    if (type instanceof Class<?> plain) {
      return plain;
    }
    if (type instanceof ParameterizedType generic) {
      return raw(generic.getRawType());
    }
    if (type instanceof GenericArrayType array) {
      return Array.newInstance(raw(array.getGenericComponentType()), 0).getClass();
    }
    throw new IllegalArgumentException("'" + type.getTypeName() + "' is no type of a body");
  }

  /** Bytes and text are what they are. */
  boolean needsCodec() {
    return raw != Payload.class && raw != byte[].class && raw != String.class;
  }

  String name() {
    return type.getTypeName();
  }
}
