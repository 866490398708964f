package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class TypeRefTest {
  @Test
  void keepsTheTypeWithItsArguments() {
    TypeRef<Map<String, List<Integer>>> ref = new TypeRef<>() {};
    assertThat(ref.type()).isInstanceOf(ParameterizedType.class);
    assertThat(ref)
        .hasToString("java.util.Map<java.lang.String, java.util.List<java.lang.Integer>>")
        .isEqualTo(new TypeRef<Map<String, List<Integer>>>() {})
        .hasSameHashCodeAs(new TypeRef<Map<String, List<Integer>>>() {})
        .isNotEqualTo(new TypeRef<Map<String, List<Long>>>() {});
    assertThat(new TypeRef<List<String>[]>() {}).hasToString("java.util.List<java.lang.String>[]");
    assertThat(new TypeRef<List<? extends Number>>() {})
        .hasToString("java.util.List<? extends java.lang.Number>");
    assertThat(new TypeRef<String>() {}.type()).isEqualTo(String.class);
  }

  @Test
  @SuppressWarnings("rawtypes")
  void aTypeThatIsNotNamedIsRefused() {
    assertThatThrownBy(() -> new TypeRef() {})
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("new TypeRef<List<Item>>() {}");
    class Items extends TypeRef<List<String>> {}
    class Further extends Items {}
    assertThat(new Items()).hasToString("java.util.List<java.lang.String>");
    assertThatThrownBy(Further::new).hasMessageContaining("names no type");
  }

  @Test
  void namesATypeThatIsKnownWhenTheProgramRuns() throws ReflectiveOperationException {
    class Handler {
      @SuppressWarnings("unused") // found by its name
      void handle(List<String> body) {}

      @SuppressWarnings("unused") // found by its name
      <E> void handleAny(List<E> body) {}
    }
    Type body = Handler.class.getDeclaredMethod("handle", List.class).getGenericParameterTypes()[0];
    Type any =
        Handler.class.getDeclaredMethod("handleAny", List.class).getGenericParameterTypes()[0];
    assertThat(TypeRef.of(body)).isEqualTo(new TypeRef<List<String>>() {});
    assertThat(TypeRef.of(String.class).type()).isEqualTo(String.class);
    assertThatThrownBy(() -> TypeRef.of(any)).hasMessageContaining("type variable");
  }

  @Test
  void aTypeVariableIsRefused() {
    assertThatThrownBy(TypeRefTest::<Integer>listOf)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("java.util.List<E>")
        .hasMessageContaining("name the type itself");
    assertThatThrownBy(TypeRefTest::<Integer>arrayOf).hasMessageContaining("type variable");
    assertThatThrownBy(TypeRefTest::<Integer>wildcardOf).hasMessageContaining("type variable");
  }

  private static <E> TypeRef<List<E>> listOf() {
    return new TypeRef<>() {};
  }

  private static <E> TypeRef<E[]> arrayOf() {
    return new TypeRef<>() {};
  }

  private static <E> TypeRef<List<? super E>> wildcardOf() {
    return new TypeRef<>() {};
  }
}
