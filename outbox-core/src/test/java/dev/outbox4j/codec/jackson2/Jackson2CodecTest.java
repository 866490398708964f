package dev.outbox4j.codec.jackson2;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import dev.outbox4j.Payload;
import dev.outbox4j.codec.JsonCodecContract;
import dev.outbox4j.spi.PayloadCodec;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class Jackson2CodecTest extends JsonCodecContract {
  record Item(String name, int count) {}

  record Circle(List<Object> self) {}

  @Override
  protected PayloadCodec standard() {
    return Jackson2Codec.standard();
  }

  @Override
  protected PayloadCodec strict() {
    return Jackson2Codec.of(new ObjectMapper());
  }

  @Test
  void takesTheMappersSettingsAsTheyAreWhenItIsMade() throws Exception {
    ObjectMapper mapper =
        new ObjectMapper()
            .setPropertyNamingStrategy(PropertyNamingStrategies.UPPER_CAMEL_CASE)
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);
    Jackson2Codec own = Jackson2Codec.of(mapper);
    mapper.enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);
    assertThat(own.encode(new Item("tea", 1)).text()).isEqualTo("{\"Name\":\"tea\",\"Count\":1}");
    assertThat(own.decode(Payload.ofText("{\"Name\":\"tea\",\"Other\":1}"), Map.of(), Item.class))
        .isEqualTo(new Item("tea", 0));
  }

  @Test
  void throwsWhatJacksonThrowsIfABodyCannotBeEncoded() {
    assertThatThrownBy(() -> standard().encode(new Circle(List.of(new Object()))))
        .isInstanceOf(JsonProcessingException.class);
  }
}
