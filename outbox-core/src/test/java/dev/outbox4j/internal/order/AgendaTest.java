package dev.outbox4j.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class AgendaTest {
  private final Agenda agenda = new Agenda();

  @Test
  void givesWhatIsDueTheEarliestFirstAndNoMoreThanAsked() {
    agenda.add(1, 30);
    agenda.add(2, 10);
    agenda.add(3, 20);
    assertThat(agenda.untilDue(4)).isEqualTo(6);
    assertThat(agenda.takeDue(9, 5)).isEmpty();
    assertThat(agenda.takeDue(30, 2)).containsExactly(2L, 3L);
    assertThat(agenda.takeDue(30, 2)).containsExactly(1L);
    assertThat(agenda.untilDue(30)).isEqualTo(Long.MAX_VALUE);
  }

  @Test
  void ofOneRowTheEarliestCountsAndOnlyOnce() {
    agenda.add(1, 30);
    agenda.add(1, 10);
    agenda.add(1, 20);
    assertThat(agenda.takeDue(10, 5)).containsExactly(1L);
    assertThat(agenda.takeDue(100, 5)).isEmpty();
    agenda.add(1, 50);
    assertThat(agenda.takeDue(50, 5)).containsExactly(1L);
  }

  @Test
  void whatWasLookedAtBeforeItsTimeIsForgotten() {
    for (int i = 0; i < 10_000; i++) {
      agenda.add(1, 1_000_000 + i);
      agenda.add(1, i);
      assertThat(agenda.takeDue(i, 5)).containsExactly(1L);
      assertThat(agenda.entries()).isLessThan(1_010);
    }
  }
}
