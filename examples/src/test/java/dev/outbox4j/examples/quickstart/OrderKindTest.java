package dev.outbox4j.examples.quickstart;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.EnumMap;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class OrderKindTest {

  @Test
  void eachHundredOrdersHaveAllKinds() {
    for (int from = 0; from < 1_000; from += 100) {
      Map<OrderKind, Integer> counts = new EnumMap<>(OrderKind.class);
      IntStream.range(from, from + 100)
          .forEach(number -> counts.merge(OrderKind.ofNumber(number), 1, Integer::sum));

      assertThat(counts)
          .containsEntry(OrderKind.ROLLED_BACK, 5)
          .containsEntry(OrderKind.REJECTED, 1)
          .containsEntry(OrderKind.ALWAYS_FAILING, 1)
          .containsEntry(OrderKind.FAILS_TWICE, 3)
          .containsEntry(OrderKind.DELAYED, 3)
          .containsEntry(OrderKind.PLAIN, 87);
    }
  }
}
