package dev.outbox4j.postgres.internal.publish;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class PublishTimesTest {
  private static OutboxMessage in(Duration delay) {
    return OutboxMessage.to("q").deliverIn(delay).build();
  }

  private static OutboxMessage at(Instant instant) {
    return OutboxMessage.to("q").deliverAt(instant).build();
  }

  @Test
  void roundsDelaysUpToMicroseconds() {
    assertThat(PublishTimes.delayMicros(OutboxMessage.to("q").build())).isNull();
    assertThat(PublishTimes.delayMicros(in(Duration.ZERO))).isZero();
    assertThat(PublishTimes.delayMicros(in(Duration.ofNanos(1)))).isEqualTo(1);
    assertThat(PublishTimes.delayMicros(in(Duration.ofNanos(1_000)))).isEqualTo(1);
    assertThat(PublishTimes.delayMicros(in(Duration.ofSeconds(2, 999_999_999))))
        .isEqualTo(3_000_000);
    assertThat(PublishTimes.delayMicros(in(Duration.ofDays(100_000_000))))
        .isEqualTo(8_640_000_000_000_000_000L);
  }

  @Test
  void refusesDelaysThatEndAfterWhatPostgresStores() {
    for (Duration delay :
        new Duration[] {
          PublishTimes.MAX_DELAY.plusNanos(1), Duration.ofSeconds(Long.MAX_VALUE, 999_999_999)
        }) {
      assertThatThrownBy(() -> PublishTimes.delayMicros(in(delay)))
          .isInstanceOf(OutboxException.class)
          .hasMessageContaining("deliverIn of OutboxMessage[queue=q, type=null] is " + delay)
          .hasMessageContaining("at most PT2400000000H is allowed");
    }
  }

  @ParameterizedTest
  @CsvSource({
    "2026-11-20T10:15:30Z,2026-11-20 10:15:30.000000+00",
    "2026-11-20T10:15:30.000000001Z,2026-11-20 10:15:30.000001+00",
    "2026-12-31T23:59:59.999999999Z,2027-01-01 00:00:00.000000+00",
    "1969-12-31T23:59:59.999999999Z,1970-01-01 00:00:00.000000+00",
    "0001-01-01T00:00:00Z,0001-01-01 00:00:00.000000+00",
    "0000-12-31T23:59:59Z,0001-12-31 23:59:59.000000+00 BC",
    "-4713-11-24T00:00:00Z,4714-11-24 00:00:00.000000+00 BC",
    "+294276-12-31T23:59:59.999999Z,294276-12-31 23:59:59.999999+00"
  })
  void writesInstantsAsPostgresReadsThem(Instant instant, String text) {
    assertThat(PublishTimes.deliverAt(at(instant))).isEqualTo(text);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "-4713-11-23T23:59:59.999999999Z",
        "+294276-12-31T23:59:59.999999001Z",
        "-1000000000-01-01T00:00:00Z",
        "+1000000000-12-31T23:59:59.999999999Z"
      })
  void refusesInstantsThatPostgresCannotStore(Instant instant) {
    assertThatThrownBy(() -> PublishTimes.deliverAt(at(instant)))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("is " + instant + "; PostgreSQL stores instants from -4713-11-24")
        .hasMessageContaining("to +294276-12-31T23:59:59.999999Z");
  }

  @Test
  void hasNoInstantByDefault() {
    assertThat(PublishTimes.deliverAt(OutboxMessage.to("q").build())).isNull();
  }
}
