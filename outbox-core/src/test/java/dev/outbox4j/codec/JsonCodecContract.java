package dev.outbox4j.codec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.annotation.JsonAnySetter;
import dev.outbox4j.OutboxException;
import dev.outbox4j.Payload;
import dev.outbox4j.TypeRef;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.spi.UndecodableException;
import java.lang.reflect.Type;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What both codecs of JSON do alike. */
public abstract class JsonCodecContract {
  private final PayloadCodec codec = standard();

  /** The codec with its own settings. */
  protected abstract PayloadCodec standard();

  /** One that refuses unknown properties. */
  protected abstract PayloadCodec strict();

  record Item(String name, int count) {}

  record Order(String customer, List<Item> items) {}

  record Circle(List<Object> self) {}

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
  void ignoresPropertiesItDoesNotKnow() throws Exception {
    assertThat(
            codec.decode(
                Payload.ofText("{\"name\":\"tea\",\"count\":1,\"new\":2}"), Map.of(), Item.class))
        .isEqualTo(new Item("tea", 1));
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
    assertThatThrownBy(
            () ->
                strict()
                    .decode(Payload.ofText("{\"name\":\"a\",\"secret\":1}"), Map.of(), Item.class))
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

  @Test
  void saysWhichConstructorRefusesAndWhatItThrowsButNotItsWords() {
    String json =
        "{\"customer\":\"a\",\"priced\":[{\"name\":\"tea\",\"price\":1},{\"name\":\"secret\",\"price\":-1}]}";
    assertThatThrownBy(() -> codec.decode(Payload.ofText(json), Map.of(), Basket.class))
        .isExactlyInstanceOf(OutboxException.class)
        .hasMessageContaining("ValueInstantiationException about " + Priced.class.getName())
        .hasMessageContaining("in [\"priced\"][1]")
        .hasMessageContaining(
            ": java.lang.IllegalArgumentException at " + Priced.class.getName() + ".<init>:")
        .hasMessageNotContaining("secret")
        .hasMessageNotContaining("-1")
        .hasNoCause();
    assertThatThrownBy(() -> codec.decode(Payload.ofText("{\"price\":1}"), Map.of(), Priced.class))
        .hasMessageContaining(
            ": java.lang.NullPointerException at " + Priced.class.getName() + ".<init>:");
  }

  @Test
  void saysWhatASetterThrows() {
    assertThatThrownBy(
            () -> codec.decode(Payload.ofText("{\"name\":\"secret\"}"), Map.of(), Named.class))
        .isExactlyInstanceOf(OutboxException.class)
        .hasMessageContaining(
            ": java.lang.IllegalArgumentException at " + Named.class.getName() + ".setName:")
        .hasMessageNotContaining("secret")
        .hasNoCause();
  }

  @Test
  void saysWhereItWasThrownOutsideTheInnardsOfTheJdk() {
    assertThatThrownBy(() -> codec.decode(Payload.ofText("{\"at\":7}"), Map.of(), Indexed.class))
        .isExactlyInstanceOf(OutboxException.class)
        .hasMessageContaining(
            ": java.lang.IndexOutOfBoundsException at " + Indexed.class.getName() + ".<init>:")
        .hasNoCause();
  }

  @Test
  void namesTheClassOfWhatHasNoStackTrace() {
    assertThatThrownBy(() -> codec.decode(Payload.ofText("{\"at\":7}"), Map.of(), Bare.class))
        .isExactlyInstanceOf(OutboxException.class)
        .hasMessageEndingWith(": " + Traceless.class.getName())
        .hasNoCause();
  }

  record Indexed(int at) {
    Indexed {
      Objects.checkIndex(at, 1);
    }
  }

  record Bare(int at) {
    Bare {
      throw new Traceless();
    }
  }

  @SuppressWarnings({"serial", "NullAway"})
  static final class Traceless extends RuntimeException {
    @Override
    public StackTraceElement[] getStackTrace() {
      return null;
    }
  }

  record Basket(String customer, List<Priced> priced) {}

  record Priced(String name, int price) {
    Priced {
      Objects.requireNonNull(name, "name");
      if (price < 0) {
        throw new IllegalArgumentException(name + " has the price " + price);
      }
    }
  }

  static final class Named {
    void setName(String name) {
      if (!name.isEmpty()) {
        throw new IllegalArgumentException(name);
      }
    }
  }

  private interface Abstract {}

  record Broken(String name) {
    Broken {
      throw new IllegalStateException(name);
    }
  }

  private record Stock(Map<String, Item> byName) {}

  @Test
  void namesNoKeyOfAMapOrAnEntryOrABagOfProperties() {
    String key = "alice@example.org";
    String json = "{\"" + key + "\": \"x\"}";
    for (Type type :
        List.of(
            new TypeRef<Map<String, Integer>>() {}.type(),
            new TypeRef<Map.Entry<String, Integer>>() {}.type(),
            Bag.class)) {
      assertThatThrownBy(() -> codec.decode(Payload.ofText(json), Map.of(), type))
          .as(type.getTypeName())
          .isInstanceOf(UndecodableException.class)
          .hasMessageContaining("[…]")
          .hasMessageNotContaining("alice");
    }
  }

  /** Takes whatever properties there are; both Jacksons know the annotation. */
  static final class Bag {
    final Map<String, Integer> numbers = new HashMap<>();

    @JsonAnySetter
    void put(String name, int number) {
      numbers.put(name, number);
    }
  }

  @Test
  void decodesTypesWithTypeArguments() throws Exception {
    assertThat(
            codec.decode(
                Payload.ofText("[{\"name\":\"tea\",\"count\":1}]"),
                Map.of(),
                new TypeRef<List<Item>>() {}.type()))
        .isEqualTo(List.of(new Item("tea", 1)));
  }

  @Test
  void writesInstantsAndDurationsAsText() throws Exception {
    Stamped stamped = new Stamped(Instant.EPOCH, Duration.ofSeconds(90));
    Payload json = codec.encode(stamped);
    assertThat(json.text()).isEqualTo("{\"at\":\"1970-01-01T00:00:00Z\",\"took\":\"PT1M30S\"}");
    assertThat(codec.decode(json, Map.of(), Stamped.class)).isEqualTo(stamped);
  }

  record Stamped(Instant at, Duration took) {}
}
