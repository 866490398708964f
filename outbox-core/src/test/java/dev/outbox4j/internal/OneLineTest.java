package dev.outbox4j.internal;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class OneLineTest {
  @Test
  void whatHasNoControlCharacterIsTheSameText() {
    String text = "Ärger 漢 💥 ~ \u00a0";
    assertThat(OneLine.of(text)).isSameAs(text);
    assertThat(OneLine.of("")).isEmpty();
    assertThat(OneLine.of(null)).isEqualTo("null");
  }

  @Test
  void eachControlCharacterAndLineBreakBecomesAQuestionMark() {
    for (char c = 0; c < 0x100; c++) {
      boolean control = c < 0x20 || (c >= 0x7f && c < 0xa0);
      assertThat(OneLine.of("a" + c + "b")).isEqualTo("a" + (control ? '?' : c) + "b");
    }
    assertThat(OneLine.of("\r\n[INFO] forged\u2028\u2029")).isEqualTo("??[INFO] forged??");
  }
}
