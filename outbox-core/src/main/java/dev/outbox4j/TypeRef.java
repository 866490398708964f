package dev.outbox4j;

import java.lang.reflect.GenericArrayType;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.lang.reflect.TypeVariable;
import java.lang.reflect.WildcardType;
import java.util.Objects;
import java.util.stream.Stream;

/**
 * A type with its type arguments, which a class literal cannot name: {@code new
 * TypeRef<List<Item>>() {}}, with braces. Immutable.
 *
 * @param <T> the type
 */
public abstract class TypeRef<T> {
  private final Type type;

  /**
   * Takes the type that the subclass names.
   *
   * @throws IllegalArgumentException if it names none, or one with a type variable, whose value is
   *     not known when the program runs
   */
  protected TypeRef() {
    if (!(getClass().getGenericSuperclass() instanceof ParameterizedType named)
        || named.getRawType() != TypeRef.class) {
      throw new IllegalArgumentException(
          getClass().getName()
              + " names no type; write new TypeRef<List<Item>>() {}, with the type and the braces");
    }
    this.type = requireKnown(named.getActualTypeArguments()[0]);
  }

  private TypeRef(Type type) {
    this.type = requireKnown(type);
  }

  /**
   * Names a type that is known only when the program runs, such as that of a method's parameter.
   *
   * @param type a class, or a class with type arguments
   * @return the same, whose body the compiler knows nothing of
   * @throws IllegalArgumentException if it has a type variable
   */
  public static TypeRef<?> of(Type type) {
    return new TypeRef<Object>(Objects.requireNonNull(type, "type")) {};
  }

  private static Type requireKnown(Type type) {
    if (hasVariable(type)) {
      throw new IllegalArgumentException(
          "TypeRef<"
              + type.getTypeName()
              + "> has a type variable, whose value is not known when the program runs;"
              + " name the type itself");
    }
    return type;
  }

  private static boolean hasVariable(Type type) {
    if (type instanceof ParameterizedType generic) {
      return Stream.of(generic.getActualTypeArguments()).anyMatch(TypeRef::hasVariable);
    }
    if (type instanceof GenericArrayType array) {
      return hasVariable(array.getGenericComponentType());
    }
    if (type instanceof WildcardType wildcard) {
      return Stream.of(wildcard.getUpperBounds()).anyMatch(TypeRef::hasVariable)
          || Stream.of(wildcard.getLowerBounds()).anyMatch(TypeRef::hasVariable);
    }
    return type instanceof TypeVariable<?>;
  }

  /** {@return the type} */
  public final Type type() {
    return type;
  }

  @Override
  public final boolean equals(Object other) {
    return other instanceof TypeRef<?> ref && type.equals(ref.type);
  }

  @Override
  public final int hashCode() {
    return type.hashCode();
  }

  @Override
  public final String toString() {
    return type.getTypeName();
  }
}
