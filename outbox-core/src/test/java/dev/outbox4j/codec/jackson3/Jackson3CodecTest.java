package dev.outbox4j.codec.jackson3;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.codec.JsonCodecContract;
import dev.outbox4j.spi.PayloadCodec;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.PropertyNamingStrategies;
import tools.jackson.databind.json.JsonMapper;

class Jackson3CodecTest extends JsonCodecContract {
  record Item(String name, int count) {}

  record Circle(List<Object> self) {}

  @Override
  protected PayloadCodec standard() {
    return Jackson3Codec.standard();
  }

  @Override
  protected PayloadCodec strict() {
    return Jackson3Codec.of(
        JsonMapper.builder().enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES).build());
  }

  @Test
  void takesTheMappersSettings() {
    Jackson3Codec own =
        Jackson3Codec.of(
            JsonMapper.builder()
                .propertyNamingStrategy(PropertyNamingStrategies.UPPER_CAMEL_CASE)
                .build());
    assertThat(
            new String(
                own.encode(new Item("tea", 1)).bytes(), java.nio.charset.StandardCharsets.UTF_8))
        .isEqualTo("{\"Name\":\"tea\",\"Count\":1}");
  }

  @Test
  void throwsWhatJacksonThrowsIfABodyCannotBeEncoded() {
    List<Object> endless = new ArrayList<>();
    endless.add(endless);
    assertThatThrownBy(() -> standard().encode(new Circle(endless)))
        .isInstanceOf(JacksonException.class);
  }
}
