package dev.outbox4j.internal.claim;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class TurnsTest {
  private static final List<String> ABC = List.of("a", "b", "c");

  private static String rounds(Turns turns, List<String> queues, int count) {
    return IntStream.range(0, count)
        .mapToObj(i -> queues.get(turns.first(queues)))
        .collect(Collectors.joining());
  }

  @Test
  void withoutWeightsEachGoesFirstInTurn() {
    assertThat(rounds(new Turns(Map.of()), ABC, 9)).isEqualTo("abcabcabc");
  }

  @Test
  void eachGoesFirstAsOftenAsItsWeightSaysEvenlySpread() {
    Turns turns = new Turns(Map.of("a", 5, "b", 2));
    assertThat(rounds(turns, ABC, 16)).isEqualTo("abaacabaabaacaba".substring(0, 16));
  }

  @Test
  void queuesMayComeAndGo() {
    Turns turns = new Turns(Map.of("a", 3));
    rounds(turns, ABC, 7);
    assertThat(rounds(turns, List.of("b", "c"), 100).chars().filter(c -> c == 'b').count())
        .isBetween(45L, 55L);
    assertThat(rounds(turns, ABC, 100).chars().filter(c -> c == 'a').count()).isBetween(55L, 65L);
  }
}
