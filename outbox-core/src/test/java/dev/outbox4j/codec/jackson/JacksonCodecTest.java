package dev.outbox4j.codec.jackson;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import dev.outbox4j.OutboxException;
import dev.outbox4j.Payload;
import dev.outbox4j.spi.UndecodableException;
import java.lang.reflect.Type;
import java.util.Date;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JacksonCodecTest {
  record Item(String name, int count) {}

  record Order(String customer, List<Item> items) {}

  record Stamped(Date at) {}

  record Circle(List<Object> self) {}

  private final JacksonCodec codec = JacksonCodec.standard();

  @Test
  void readsWhatItWrote() throws Exception {
    Order order = new Order("Zoë \"quoted\" \\ 🐘", List.of(new Item("tea", 3)));
    assertThat(codec.decode(codec.encode(order), Map.of(), Order.class)).isEqualTo(order);
    assertThat(codec.contentType()).isEqualTo("application/json");
  }

  @Test
  void writesUtf8() throws Exception {
    assertThat(codec.encode(new Item("ß", 1)).text()).isEqualTo("{\"name\":\"ß\",\"count\":1}");
  }

  @Test
  @SuppressWarnings("JavaUtilDate") // users have such fields
  void writesDatesAsText() throws Exception {
    assertThat(codec.encode(new Stamped(new Date(0))).text())
        .isEqualTo("{\"at\":\"1970-01-01T00:00:00.000+00:00\"}");
  }

  @Test
  void ignoresPropertiesItDoesNotKnow() {
    assertThat(
            codec.decode(
                Payload.ofText("{\"name\":\"tea\",\"count\":1,\"new\":2}"), Map.of(), Item.class))
        .isEqualTo(new Item("tea", 1));
  }

  @Test
  void takesTheMappersSettingsAsTheyAreWhenItIsMade() throws Exception {
    ObjectMapper mapper =
        new ObjectMapper()
            .setPropertyNamingStrategy(PropertyNamingStrategies.UPPER_CAMEL_CASE)
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);
    JacksonCodec own = JacksonCodec.of(mapper);
    mapper.enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);
    assertThat(own.encode(new Item("tea", 1)).text()).isEqualTo("{\"Name\":\"tea\",\"Count\":1}");
    assertThat(own.decode(Payload.ofText("{\"Name\":\"tea\",\"Other\":1}"), Map.of(), Item.class))
        .isEqualTo(new Item("tea", 0));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "null",
        "secret",
        "{\"name\":\"secret\"",
        "{\"name\":\"secret\",\"count\":1}{}",
        "{\"name\":\"secret\",\"count\":\"secret\"}",
        "{\"name\":\"secret\",\"count\":null}",
        "[\"secret\"]"
      })
  void refusesWhatIsNotThatTypeWithoutQuotingIt(String json) {
    assertThatThrownBy(() -> codec.decode(Payload.ofText(json), Map.of(), Item.class))
        .isInstanceOf(UndecodableException.class)
        .hasMessageContaining("Item")
        .hasMessageContaining("payload of " + json.length() + " bytes")
        .hasMessageNotContaining("secret")
        .hasNoCause();
  }

  @Test
  void saysWhereThePayloadIsWrong() {
    Payload payload =
        Payload.ofText("{\"customer\":\"a\",\"items\":[{\"name\":\"b\",\"count\":\"c\"}]}");
    assertThatThrownBy(() -> codec.decode(payload, Map.of(), Order.class))
        .hasMessageContaining("InvalidFormatException at line 1, column")
        .hasMessageContaining("[\"items\"]")
        .hasMessageContaining("[\"count\"]");
  }

  @Test
  void namesNoPropertyThatThePayloadChose() {
    JacksonCodec strict = JacksonCodec.of(new ObjectMapper());
    assertThatThrownBy(
            () ->
                strict.decode(
                    Payload.ofText("{\"name\":\"a\",\"secret\":1}"), Map.of(), Item.class))
        .hasMessageContaining("UnrecognizedPropertyException")
        .hasMessageEndingWith(", in […]")
        .hasNoCause();
    assertThatThrownBy(
            () ->
                codec.decode(
                    Payload.ofText("{\"byName\":{\"secret\":{\"count\":\"x\"}}}"),
                    Map.of(),
                    Stock.class))
        .hasMessageEndingWith(", in [\"byName\"][…][\"count\"]")
        .hasNoCause();
  }

  @Test
  void decodesGenericTypes() throws Exception {
    Type items = new TypeReference<List<Item>>() {}.getType();
    assertThat(codec.decode(Payload.ofText("[{\"name\":\"tea\",\"count\":1}]"), Map.of(), items))
        .isEqualTo(List.of(new Item("tea", 1)));
  }

  @Test
  void takesTooDeepJsonForAFaultOfTheBytes() {
    String deep = "{\"items\":" + "[".repeat(2000) + "]".repeat(2000) + "}";
    assertThatThrownBy(() -> codec.decode(Payload.ofText(deep), Map.of(), Circle.class))
        .isInstanceOf(UndecodableException.class);
  }

  @Test
  void doesNotBlameTheBytesForAClassThatJacksonCannotMake() {
    assertThatThrownBy(() -> codec.decode(Payload.ofText("{\"at\":1}"), Map.of(), Abstract.class))
        .isExactlyInstanceOf(OutboxException.class)
        .hasMessageContaining("could not be decoded to")
        .hasMessageContaining("InvalidDefinitionException about ")
        .hasMessageContaining("Abstract")
        .hasNoCause();
  }

  @Test
  void doesNotBlameTheBytesForAConstructorThatThrows() {
    assertThatThrownBy(
            () -> codec.decode(Payload.ofText("{\"name\":\"secret\"}"), Map.of(), Broken.class))
        .isExactlyInstanceOf(OutboxException.class)
        .hasMessageContaining("ValueInstantiationException")
        .hasMessageNotContaining("secret")
        .hasNoCause();
  }

  private interface Abstract {}

  record Broken(String name) {
    Broken {
      throw new IllegalStateException(name);
    }
  }

  private record Stock(Map<String, Item> byName) {}

  @Test
  void throwsWhatJacksonThrowsIfABodyCannotBeEncoded() {
    assertThatThrownBy(() -> codec.encode(new Circle(List.of(new Object()))))
        .isInstanceOf(JsonProcessingException.class);
  }
}
