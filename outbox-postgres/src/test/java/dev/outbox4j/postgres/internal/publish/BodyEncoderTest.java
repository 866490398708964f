package dev.outbox4j.postgres.internal.publish;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import dev.outbox4j.postgres.CountCodec;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.spi.PayloadCodec;
import java.lang.reflect.Type;
import java.util.Map;
import org.junit.jupiter.api.Test;

class BodyEncoderTest {
  private final BodyEncoder encoder = new BodyEncoder(new CountCodec("application/count"));

  private static OutboxMessage.Builder message() {
    return OutboxMessage.to("orders").type("order.placed");
  }

  @Test
  void addsNothingToBytes() {
    for (Object body : new Object[] {new byte[] {1, 0}, Payload.of(new byte[] {1, 0})}) {
      BodyEncoder.Encoded encoded = encoder.encode(message().body(body).build());
      assertThat(encoded.payload()).isEqualTo(Payload.of(new byte[] {1, 0}));
      assertThat(encoded.headers()).isEqualTo("{}");
    }
  }

  @Test
  void namesTheContentTypeOfText() {
    BodyEncoder.Encoded encoded = encoder.encode(message().body("Zoë 🐘\0").build());
    assertThat(encoded.payload()).isEqualTo(Payload.ofText("Zoë 🐘\0"));
    assertThat(encoded.headers()).isEqualTo("{\"content-type\",\"text/plain; charset=utf-8\"}");
  }

  @Test
  void namesTheContentTypeOfTheCodec() {
    BodyEncoder.Encoded encoded = encoder.encode(message().body(42).build());
    assertThat(encoded.payload()).isEqualTo(Payload.ofText("42"));
    assertThat(encoded.headers()).isEqualTo("{\"content-type\",\"application/count\"}");
  }

  @Test
  void leavesTheCallersContentTypeAlone() {
    for (Object body : new Object[] {"text", 42, new byte[0]}) {
      assertThat(encoder.encode(message().contentType("own").body(body).build()).headers())
          .isEqualTo("{\"content-type\",\"own\"}");
    }
  }

  @Test
  void writesHeadersAsAnArrayOfTheServers() {
    assertThat(
            encoder
                .encode(
                    message().header("a \"b\"", "c:\\d, {e}").header("NULL", "").body("").build())
                .headers())
        .contains("\"a \\\"b\\\"\",\"c:\\\\d, {e}\"")
        .contains("\"NULL\",\"\"");
  }

  @Test
  void refusesABodyThatNeedsACodecWhereThereIsNone() {
    assertThatThrownBy(
            () -> new BodyEncoder(null).encode(message().body(Map.of("a", "secret")).build()))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("needs a codec and the publisher has none; set one with codec(...)")
        .hasMessageContaining("OutboxMessage[queue=orders, type=order.placed]")
        .hasMessageNotContaining("secret");
  }

  @Test
  void saysWhichCodecFailedOnWhatWithoutTheContent() {
    Object unknown =
        new Object() {
          @Override
          public String toString() {
            return "secret";
          }
        };
    assertThatThrownBy(() -> encoder.encode(message().body(unknown).build()))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("BodyEncoderTest$")
        .hasMessageContaining("was not encoded by dev.outbox4j.postgres.CountCodec")
        .hasMessageNotContaining("secret")
        .hasCauseInstanceOf(ClassCastException.class);
  }

  @Test
  void refusesACodecThatReturnsNull() {
    assertThatThrownBy(() -> new BodyEncoder(new NullCodec()).encode(message().body(1).build()))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("it returned null; it must return a payload or throw");
  }

  @Test
  void refusesTextThatUtf8CannotExpress() {
    assertThatThrownBy(() -> encoder.encode(message().body("secret\ud83d").build()))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("has half of a surrogate pair, which UTF-8 cannot express")
        .hasMessageNotContaining("secret");
  }

  @Test
  void refusesACodecWhoseContentTypeCannotBeStored() {
    assertThatIllegalArgumentException()
        .isThrownBy(
            () ->
                PostgresOutbox.publisher(OutboxTable.named("outbox")).codec(new CountCodec("a\0b")))
        .withMessageContaining("header 'content-type' has a NUL character");
  }

  private static final class NullCodec implements PayloadCodec {
    @Override
    public String contentType() {
      return "x/y";
    }

    @Override
    public Payload encode(Object body) {
      return null;
    }

    @Override
    public Object decode(Payload payload, Map<String, String> headers, Type type) {
      throw new AssertionError("not called");
    }
  }
}
