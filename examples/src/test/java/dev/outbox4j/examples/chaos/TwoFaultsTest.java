package dev.outbox4j.examples.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class TwoFaultsTest {
  @Test
  void knowsWhichPairsWereNotDone() throws Exception {
    List<Fault> done = Collections.synchronizedList(new ArrayList<>());
    TwoFaults two =
        new TwoFaults(
            fault -> {
              done.add(fault);
              return new Episode(new Recovery(0, 0), new Evidence().sign("done", 1));
            },
            new Random(1));
    List<String> all = two.left();
    assertThat(all).hasSize(7).doesNotHaveDuplicates();

    two.run();

    assertThat(done).containsExactlyElementsOf(two.last());
    assertThat(all)
        .contains(two.last().get(0).label() + " and " + two.last().get(1).label())
        .containsAll(two.left());
    assertThat(two.left()).hasSize(6);
  }
}
