package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The rate by a clock of its own: the machine that runs the test has no say in it. */
class PaceTest {
  private static final int RATE = 1_000;
  private static final int BATCH = 100;
  private static final int LETTERS = 100_000;
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
  private static final long MILLI = TimeUnit.MILLISECONDS.toNanos(1);

  private long now = 12 * SECOND;

  private Pace pace(int perSecond) {
    return new Pace(perSecond, () -> now, nanos -> now += nanos);
  }

  /** When each batch had gone, as a run of so many has it whose statements take some time. */
  private List<Long> batches(LongSupplier cost) {
    Pace pace = pace(RATE);
    List<Long> gone = new ArrayList<>();
    for (int letters = 0; letters < LETTERS; letters += BATCH) {
      assertThat(pace.await()).isTrue();
      now += cost.getAsLong();
      gone.add(now);
      pace.charge(BATCH);
    }
    return gone;
  }

  private static double perSecond(List<Long> gone) {
    long took = gone.get(gone.size() - 1) - gone.get(0);
    return (gone.size() - 1) * (double) BATCH * SECOND / took;
  }

  private static int mostInTenSeconds(List<Long> gone) {
    int most = 0;
    int from = 0;
    for (int to = 0; to < gone.size(); to++) {
      while (gone.get(to) - gone.get(from) >= 10 * SECOND) {
        from++;
      }
      most = Math.max(most, to - from + 1);
    }
    return most * BATCH;
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 10, 50, 90, 99})
  void aHundredThousandGoAtTheRateHoweverLongStatementsTakeThatFitInIt(int millis) {
    List<Long> gone = batches(() -> millis * MILLI);

    assertThat(perSecond(gone)).isBetween(0.99 * RATE, 1.01 * RATE);
    assertThat(mostInTenSeconds(gone)).isLessThanOrEqualTo(10_500);
  }

  /** Such as a checkpoint, or a pause of the process, of up to 0.35 s every few seconds. */
  @Test
  void theRateHoldsWithinFivePercentThoughSomeStatementsAreLate() {
    Random random = new Random(17);

    List<Long> gone =
        batches(
            () ->
                MILLI * (random.nextInt(40) == 0 ? 100 + random.nextInt(250) : random.nextInt(60)));

    assertThat(perSecond(gone)).isBetween(0.95 * RATE, 1.01 * RATE);
    assertThat(mostInTenSeconds(gone)).isLessThanOrEqualTo(10_500);
  }

  /** A server that stood still for a minute is not overrun afterwards. */
  @Test
  void whatWasLateForLongIsGivenUp() {
    Pace pace = pace(RATE);
    assertThat(pace.await()).isTrue();
    pace.charge(BATCH);
    now += 60 * SECOND;

    long begun = now;
    for (int letters = 0; letters < RATE; letters += BATCH) {
      assertThat(pace.await()).isTrue();
      pace.charge(BATCH);
    }
    assertThat(pace.await()).isTrue();

    assertThat(now - begun).isEqualTo(SECOND - 300 * MILLI);
  }

  @Test
  void aSleepThatEndsEarlyIsGoneOnWith() {
    Pace pace = new Pace(RATE, () -> now, nanos -> now += Math.min(nanos, MILLI));
    assertThat(pace.await()).isTrue();
    pace.charge(BATCH);
    long begun = now;

    assertThat(pace.await()).isTrue();

    assertThat(now - begun).isEqualTo(100 * MILLI);
  }

  @Test
  void anInterruptEndsTheWait() {
    Pace pace = new Pace(RATE, () -> now, nanos -> Thread.currentThread().interrupt());
    assertThat(pace.await()).isTrue();
    pace.charge(BATCH);

    assertThat(pace.await()).isFalse();
    assertThat(Thread.interrupted()).isTrue();
  }
}
