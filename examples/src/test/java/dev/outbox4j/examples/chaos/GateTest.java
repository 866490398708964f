package dev.outbox4j.examples.chaos;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.entry;

import dev.outbox4j.examples.chaos.Gate.Verdict;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What the gate keeps of a run. */
class GateTest {
  private static final Verdict FAILED =
      new Verdict(1, List.of("lost is 3", "overtaken is 2", "stuck_rows is 1"), Map.of());

  @Test
  void aBreachIsKeptOfEachRunAlsoWhereSeveralAreAskedFor() {
    assertThat(Gate.result("one", FAILED, List.of("overtaken")))
        .containsExactly(
            entry("name", "one"), entry("verdict", "FAILED"), entry("breach", "overtaken is 2"));
    assertThat(Gate.result("two", FAILED, List.of("stuck_rows", "lost")))
        .containsExactly(
            entry("name", "two"),
            entry("verdict", "FAILED"),
            entry("breach", "stuck_rows is 1"),
            entry("breaches", List.of("stuck_rows is 1", "lost is 3")));
  }

  @Test
  void whatWasNotNamedIsNotKept() {
    assertThat(Gate.result("two", FAILED, List.of("deaf", "lost")))
        .containsEntry("breach", "lost is 3")
        .containsEntry("breaches", List.of("lost is 3"));
    assertThat(Gate.result("one", FAILED, List.of("deaf"))).containsEntry("breach", "");
    assertThat(Gate.result("sound", new Verdict(0, List.of(), Map.of()), List.of()))
        .containsEntry("verdict", "PASSED")
        .containsEntry("breach", "");
  }
}
