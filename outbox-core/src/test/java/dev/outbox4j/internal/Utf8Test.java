package dev.outbox4j.internal;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class Utf8Test {
  private static final String MARK = "…[truncated]";

  @Test
  void leavesWhatFitsAlone() {
    assertThat(Utf8.bounded("", 100)).isEmpty();
    assertThat(Utf8.bounded("ü漢💥\n\t", 100)).isEqualTo("ü漢💥\n\t");
    assertThat(Utf8.bounded("ü".repeat(50), 100)).isEqualTo("ü".repeat(50));
  }

  @Test
  void cutsBetweenCharactersAndMarksTheCut() {
    for (String character : new String[] {"a", "ü", "漢", "💥"}) {
      for (int bytes = 20; bytes < 40; bytes++) {
        String cut = Utf8.bounded(character.repeat(100), bytes);

        int width = character.getBytes(UTF_8).length;
        int kept = (bytes - MARK.getBytes(UTF_8).length) / width;
        assertThat(cut).isEqualTo(character.repeat(kept) + MARK);
        assertThat(cut.getBytes(UTF_8).length).isLessThanOrEqualTo(bytes);
      }
    }
  }

  @Test
  void cutsATextOfFewerCharactersThanBytes() {
    assertThat(Utf8.bounded("漢".repeat(33), 99)).isEqualTo("漢".repeat(33));
    assertThat(Utf8.bounded("漢".repeat(34), 99).getBytes(UTF_8)).hasSizeLessThanOrEqualTo(99);
  }

  @Test
  void cutsALongTextAsAShortOne() {
    for (int before = 70;
        before < 100;
        before++) { // a pair of surrogates on either side of the cut
      String text = "a".repeat(before) + "💥".repeat(100);

      String cut = Utf8.bounded(text, 100);

      int kept = Math.min(before, 100 - MARK.getBytes(UTF_8).length);
      int pairs = (100 - MARK.getBytes(UTF_8).length - kept) / 4;
      assertThat(cut).isEqualTo("a".repeat(kept) + "💥".repeat(pairs) + MARK);
    }
  }

  @Test
  void replacesWhatPostgresCannotStore() {
    assertThat(Utf8.bounded("a\u0000b", 100)).isEqualTo("a\uFFFDb");
    assertThat(Utf8.bounded("a\uD83Db", 100)).isEqualTo("a\uFFFDb");
    assertThat(Utf8.bounded("\uDCA5a\uD83D", 100)).isEqualTo("\uFFFDa\uFFFD");
  }
}
