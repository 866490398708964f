package dev.outbox4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import org.junit.jupiter.api.Test;

class FailureReasonTest {
  @Test
  void keepsItsPublicCodes() {
    assertThat(Arrays.stream(FailureReason.values()).map(FailureReason::code))
        .containsExactlyInAnyOrder(
            "max_deliveries", "retry_terminal", "rejected", "undecodable", "expired");
  }

  @Test
  void isFoundByItsCode() {
    for (FailureReason reason : FailureReason.values()) {
      assertThat(FailureReason.ofCode(reason.code())).isEqualTo(reason);
    }
    assertThatThrownBy(() -> FailureReason.ofCode("REJECTED"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("'REJECTED'");
  }
}
