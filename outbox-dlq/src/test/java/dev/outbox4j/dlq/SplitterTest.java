package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.dlq.JdbcWorklist.Candidate;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SplitterTest {
  private final List<Long> done = new ArrayList<>();
  private final List<Long> failed = new ArrayList<>();

  private static List<Candidate> letters(int count) {
    return LongStream.rangeClosed(1, count)
        .mapToObj(id -> new Candidate(id, id, "orders", null, null, Instant.EPOCH, 0, true))
        .toList();
  }

  private static OutboxStoreException failure(Fault fault, String state, boolean unknown) {
    return new OutboxStoreException("no", fault, unknown, state, null);
  }

  private void run(Splitter splitter, int count, Consumer<List<Candidate>> step) {
    splitter.run(
        letters(count),
        part -> {
          step.accept(part);
          part.forEach(letter -> done.add(letter.id()));
        },
        (letter, failure) -> failed.add(letter.id()));
  }

  @Test
  void batchesAreSmallerOnceOneTookTooLongAndGrowAgainOnceManyDidNot() {
    Splitter splitter = new Splitter(8);
    AtomicBoolean slow = new AtomicBoolean(true);
    Consumer<List<Candidate>> step =
        part -> {
          if (slow.get() && part.size() > 2) {
            throw failure(Fault.TIMEOUT, "57014", false);
          }
        };

    run(splitter, 8, step);

    assertThat(done).containsExactly(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L);
    assertThat(splitter.largest()).isEqualTo(2);
    slow.set(false);
    for (int i = 0; i < 40; i++) {
      run(splitter, splitter.largest(), step);
    }
    assertThat(splitter.largest()).isEqualTo(8);
    run(splitter, 8, step);
    assertThat(splitter.largest()).isEqualTo(8);
    assertThat(failed).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({
    "ROW,23514",
    "TIMEOUT,55P03",
    "TRANSIENT,40001",
    "TRANSIENT,OR001",
    "TRANSIENT,P0002",
    "TRANSIENT,XX001"
  })
  void whatIsOfALetterStopsNoOther(Fault fault, String state) {
    run(
        new Splitter(100),
        5,
        part -> {
          if (part.stream().anyMatch(letter -> letter.id() == 3)) {
            throw failure(fault, state, false);
          }
        });

    assertThat(done).containsExactly(1L, 2L, 4L, 5L);
    assertThat(failed).containsExactly(3L);
  }

  @ParameterizedTest
  @CsvSource({
    "TRANSIENT,53100,false",
    "TRANSIENT,57P01,false",
    "TRANSIENT,26000,false",
    "TRANSIENT,XX000,false",
    "TRANSIENT,XX001,true",
    "TRANSIENT,XX002,false",
    "SETUP,42P01,false",
    "CONNECTION,08006,false",
    "ROW,23514,true",
    "TRANSIENT,40001,true"
  })
  void whatIsOfTheServerOrOfUnknownOutcomeIsThrown(Fault fault, String state, boolean unknown) {
    assertThatThrownBy(
            () ->
                run(
                    new Splitter(100),
                    5,
                    part -> {
                      throw failure(fault, state, unknown);
                    }))
        .isInstanceOf(OutboxStoreException.class);

    assertThat(done).isEmpty();
    assertThat(failed).isEmpty();
  }
}
