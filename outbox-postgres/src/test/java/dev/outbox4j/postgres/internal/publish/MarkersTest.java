package dev.outbox4j.postgres.internal.publish;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MarkersTest {
  @Test
  void becomeQuestionMarks() {
    assertThat(
            Markers.forJdbc(
                "values ($1, $2::text, $3, $4, $5, $6, $7, $8, $9, $10::int[], 'x', $11)"))
        .isEqualTo("values (?, ?::text, ?, ?, ?, ?, ?, ?, ?, ?::int[], 'x', ?)");
  }

  @ParameterizedTest
  @ValueSource(strings = {"select $1, $1", "select $2, $1", "select $2", "select $1 ? 'a'"})
  void areRefusedIfJdbcWouldBindOtherValues(String sql) {
    assertThatIllegalArgumentException().isThrownBy(() -> Markers.forJdbc(sql));
  }
}
