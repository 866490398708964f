package dev.outbox4j.internal.schema;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Instant;
import java.time.LocalDate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PeriodTest {

  @ParameterizedTest
  @CsvSource({
    "MONTH, 2026-11-30T23:59:59.999999Z, 2026-11-01, 2026-12-01",
    "MONTH, 2026-12-01T00:00:00Z, 2026-12-01, 2027-01-01",
    "MONTH, 2028-02-29T12:00:00Z, 2028-02-01, 2028-03-01",
    "WEEK, 2026-11-29T23:59:59Z, 2026-11-23, 2026-11-30",
    "WEEK, 2027-01-01T00:00:00Z, 2026-12-28, 2027-01-04",
    "DAY, 2026-12-31T23:59:59Z, 2026-12-31, 2027-01-01"
  })
  void beginsAtMidnightInUtc(Period period, Instant instant, LocalDate first, LocalDate next) {
    assertThat(period.firstDay(instant)).isEqualTo(first);
    assertThat(period.after(first, 1)).isEqualTo(next);
  }

  @Test
  void isInTheCommentOnATable() {
    for (Period period : Period.values()) {
      assertThat(Period.in("ours, outbox4j schema 1, " + period.phrase())).contains(period);
    }
    assertThat(Period.in("outbox4j schema 1")).isEmpty();
    assertThat(Period.in(null)).isEmpty();
  }

  @Test
  void isAConstantWhateverTheTimeZone() {
    assertThat(Period.literal(Period.midnight(LocalDate.of(2026, 12, 1))))
        .isEqualTo("timestamptz '2026-12-01 00:00:00.000000+00:00'");
  }
}
