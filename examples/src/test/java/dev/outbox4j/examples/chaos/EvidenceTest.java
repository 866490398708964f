package dev.outbox4j.examples.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** When a fault counts as one that happened. */
class EvidenceTest {
  private final Evidence evidence = new Evidence();

  @Test
  void eachSignMustBeThere() {
    evidence.sign("rows_held", 3).sign("rows_taken_by_others", 0);

    assertThat(evidence.gaps()).containsExactly("rows_taken_by_others is 0");
  }

  @Test
  void noCountersignMayBeThere() {
    evidence.sign("bytes_held", 10).countersign("deletions_meanwhile", 2);

    assertThat(evidence.gaps()).containsExactly("deletions_meanwhile is 2");
  }

  @Test
  void theGapsOfOneOfTwoFaultsAreNamed() {
    evidence
        .add("cut: ", new Evidence().sign("links", 1).countersign("left", 1))
        .add("crash: ", new Evidence().sign("servers", 0));

    assertThat(evidence.gaps()).containsExactly("crash: servers is 0", "cut: left is 1");
  }

  @Test
  void nothingToLookForIsNoEvidence() {
    assertThat(evidence.gaps()).isNotEmpty();
  }

  @Test
  void aSignThatCameInPartsIsTheirSum() {
    evidence.sign("links_cut", 0).sign("links_cut", 2).countersign("deletions_meanwhile", 0);

    assertThat(evidence.gaps()).isEmpty();
    assertThat(evidence.counts())
        .containsEntry("links_cut", 2L)
        .containsEntry("deletions_meanwhile", 0L);
  }
}
