package dev.outbox4j.internal.settle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.state.EngineHealth;
import dev.outbox4j.internal.state.EngineHealth.Operation;
import dev.outbox4j.internal.state.EngineParts;
import dev.outbox4j.internal.state.Events;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.Written;
import dev.outbox4j.testing.CapturedLogs;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What is said of an outcome that cannot be written and for which there is no room to wait. */
class GroupWriterTest {
  private static final Duration LEASE = Duration.ofMinutes(1);
  private static final Duration LONG = Duration.ofSeconds(3);
  private static final int ROOM_FOR_ONE = 1;

  private final EngineThreads threads =
      new EngineThreads("orders", GroupWriterTest.class.getClassLoader());
  private final Shared shared =
      EngineParts.shared(threads, new Events("orders", threads, List.of()), LEASE);
  private final List<HeldRow> putOff = new ArrayList<>();
  private final List<HeldRow> rows =
      EngineParts.claim(
          new InMemoryStore(Clock.systemUTC()), shared.registry(), 2, LEASE, System.nanoTime());
  private final HeldRow waiting = rows.get(0);
  private final HeldRow other = rows.get(1);
  private final GroupWriter writer =
      new GroupWriter(new DeadLetters(), "orders", shared, ROOM_FOR_ONE);
  private Function<List<HeldRow>, Written> answer = group -> failed(Fault.SETUP);

  @BeforeEach
  void oneWaitsAndTakesTheRoom() {
    writer.add(waiting);
    long wait = writer.flush(false);
    long flushedAt = System.nanoTime();
    assertThat(writer.waiting()).isEqualTo(1);
    await().until(() -> System.nanoTime() - flushedAt > wait);
    writer.add(other);
  }

  @Test
  void aRefusedRowThatIsPutOffIsNotSaidToBeKept() {
    answer = group -> failed(Fault.ROW);
    try (CapturedLogs logs = new CapturedLogs()) {
      writer.flush(false);
      assertThat(putOff).contains(other);
      assertThat(logs.lines())
          .filteredOn(line -> line.contains("the dead_letter of " + other))
          .singleElement()
          .asString()
          .endsWith("cannot be written: refused");
    }
  }

  @Test
  void aRefusedRowForWhichThereIsRoomIsSaidToBeKept() {
    answer = group -> failed(Fault.ROW);
    GroupWriter roomy = new GroupWriter(new DeadLetters(), "orders", shared, 2 * ROOM_FOR_ONE);
    shared.registry().settle(waiting);
    roomy.add(other);
    try (CapturedLogs logs = new CapturedLogs()) {
      roomy.flush(false);
      assertThat(putOff).isEmpty();
      assertThat(logs.lines())
          .anyMatch(
              line ->
                  line.contains("the dead_letter of " + other)
                      && line.contains("cannot be written; it is kept and tried again: refused"));
    }
  }

  @Test
  void aLockedRowThatIsPutOffIsNotSaidToBeWrittenLater() {
    answer =
        group ->
            group.contains(other)
                ? new Written(Set.of(), Set.of(other.id()))
                : Written.done(Set.of(waiting.id()));
    other.busySince = System.nanoTime() - LONG.toNanos();
    writer.flush(false);
    assertThat(putOff).contains(other);
    EngineHealth.Failure failure = shared.health().lastFailure();
    assertThat(failure == null ? "" : failure.text())
        .doesNotContain("row " + other.id() + " of queue 'orders' has been locked");
  }

  @Test
  void aRowThatHasBeenLockedForAMomentIsKeptWithoutRoomAndNothingIsSaid() {
    answer = group -> new Written(Set.of(), Set.of(waiting.id(), other.id()));
    int before = shared.registry().rows();
    writer.flush(false);
    assertThat(putOff).isEmpty();
    assertThat(writer.waiting()).isEqualTo(2);
    assertThat(shared.registry().rows()).as("it counts against the room").isEqualTo(before);
    assertThat(shared.health().lastFailure())
        .satisfies(f -> assertThat(f == null || !f.text().contains("locked")).isTrue());

    answer = group -> Written.done(Set.of(waiting.id(), other.id()));
    await().until(() -> writer.flush(false) == GroupWriter.NOTHING);
    assertThat(writer.waiting()).isZero();
    assertThat(shared.registry().rows()).isZero();
  }

  @Test
  void aRowThatWasLockedForAMomentAndStaysLockedGivesWay() {
    answer = group -> new Written(Set.of(), Set.of(waiting.id(), other.id()));
    writer.flush(false);
    waiting.busySince -= LONG.toNanos();
    other.busySince -= LONG.toNanos();
    await().until(() -> writer.flush(false) >= 0 && !putOff.isEmpty());
    assertThat(putOff).hasSize(1);
    assertThat(writer.waiting()).isEqualTo(1);
    EngineHealth.Failure failure = shared.health().lastFailure();
    assertThat(failure == null ? "" : failure.text()).contains("has been locked by another");
  }

  private static Written failed(Fault fault) {
    throw new OutboxStoreException("refused", fault, false, null);
  }

  /** Dead letters that do what the test says. */
  private final class DeadLetters implements GroupWriter.Kind {
    @Override
    public Operation operation() {
      return Operation.DEAD_LETTER;
    }

    @Override
    public Phase phase() {
      return Phase.DEAD_LETTER;
    }

    @Override
    public int maxGroup() {
      return 100;
    }

    @Override
    public Written write(List<HeldRow> group) {
      return answer.apply(group);
    }

    @Override
    public void written(List<HeldRow> written) {}

    @Override
    public void tooMany(RowQueue from) {
      putOff.add(from.removeFirst());
    }
  }
}
