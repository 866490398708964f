package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ReadOnlyBufferException;
import java.nio.charset.CharacterCodingException;
import org.junit.jupiter.api.Test;

class PayloadTest {
  @Test
  void keepsItsBytesWhateverTheCallerDoesWithHis() {
    byte[] given = {1, 2};
    Payload payload = Payload.of(given);
    given[0] = 9;
    payload.bytes()[1] = 9;
    assertThat(payload.bytes()).containsExactly(1, 2);
    assertThatThrownBy(() -> payload.buffer().put(0, (byte) 9))
        .isInstanceOf(ReadOnlyBufferException.class);
  }

  @Test
  void readsTextAsUtf8() throws Exception {
    assertThat(Payload.ofText("Zoë 🐘").text()).isEqualTo("Zoë 🐘");
    assertThat(Payload.ofText("ë").size()).isEqualTo(2);
  }

  @Test
  void refusesToReadWhatIsNotUtf8() {
    assertThatThrownBy(() -> Payload.of(new byte[] {(byte) 0xff}).text())
        .isInstanceOf(CharacterCodingException.class);
  }

  @Test
  void isEqualByContent() {
    assertThat(Payload.ofText("a"))
        .isEqualTo(Payload.of(new byte[] {'a'}))
        .hasSameHashCodeAs(Payload.ofText("a"));
    assertThat(Payload.ofText("a")).isNotEqualTo(Payload.ofText("b"));
    assertThat(Payload.empty()).isEqualTo(Payload.of(new byte[0]));
  }

  @Test
  void showsItsSizeOnly() {
    assertThat(Payload.ofText("secret")).hasToString("Payload[6 bytes]");
  }
}
