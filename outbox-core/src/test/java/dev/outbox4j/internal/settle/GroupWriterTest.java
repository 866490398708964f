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
import java.util.HashSet;
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
  void rowsThatAreLockedNewlyPutOffNoneWhoseLockIsGone() {
    shared.registry().settle(waiting);
    shared.registry().settle(other);
    List<HeldRow> many =
        EngineParts.claim(
            new InMemoryStore(Clock.systemUTC()), shared.registry(), 60, LEASE, System.nanoTime());
    Set<Long> tried = new HashSet<>();
    answer = // each is locked at its first try
        group -> {
          Set<Long> busy = new HashSet<>();
          Set<Long> done = new HashSet<>();
          group.forEach(row -> (tried.add(row.id()) ? busy : done).add(row.id()));
          return new Written(done, busy);
        };
    GroupWriter roomy = new GroupWriter(new DeadLetters(), "orders", shared, 1 << 20);
    for (HeldRow row : many) {
      roomy.add(row);
      long addedAt = System.nanoTime();
      roomy.flush(false);
      // more often than a locked row is tried again
      await()
          .pollInterval(Duration.ofMillis(5))
          .until(() -> System.nanoTime() - addedAt > Duration.ofMillis(30).toNanos());
    }
    assertThat(many).filteredOn(row -> row.state() == HeldRow.State.SETTLED).hasSizeGreaterThan(30);
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

  @Test
  void aRowWhoseLockIsGoneIsWrittenThoughAnotherIsRefusedSlowlyEachTime() {
    GroupWriter roomy = new GroupWriter(new DeadLetters(), "orders", shared, 100);
    HeldRow refused = waiting;
    HeldRow locked = other;
    answer = group -> failed(Fault.ROW);
    roomy.add(refused);
    roomy.flush(false);
    answer =
        group -> group.contains(refused) ? slowly() : new Written(Set.of(), Set.of(locked.id()));
    roomy.add(locked);
    roomy.flush(false);
    assertThat(roomy.waiting()).isEqualTo(2);
    answer = group -> group.contains(refused) ? slowly() : Written.done(Set.of(locked.id()));
    await()
        .until(
            () -> {
              roomy.flush(false);
              return roomy.waiting() == 1;
            });
    assertThat(locked.state()).isEqualTo(HeldRow.State.SETTLED);
    assertThat(refused.state()).isNotEqualTo(HeldRow.State.SETTLED);
  }

  @Test
  void oneOfTheRefusedRowsIsWrittenOnceItMayBeThoughAnotherIsRefusedSlowlyEachTime() {
    GroupWriter roomy = new GroupWriter(new DeadLetters(), "orders", shared, 100);
    answer = group -> failed(Fault.ROW);
    roomy.add(waiting);
    roomy.add(other);
    await()
        .until(
            () -> {
              roomy.flush(false);
              return roomy.waiting() == 2;
            });
    answer = group -> group.contains(waiting) ? slowly() : Written.done(Set.of(other.id()));
    await()
        .until(
            () -> {
              roomy.flush(false);
              return other.state() == HeldRow.State.SETTLED;
            });
    assertThat(waiting.state()).isNotEqualTo(HeldRow.State.SETTLED);
  }

  /** A server that takes longer to refuse than a search may last. */
  private static Written slowly() {
    long until = System.nanoTime() + Duration.ofMillis(60).toNanos();
    while (System.nanoTime() < until) {
      Thread.onSpinWait();
    }
    return failed(Fault.ROW);
  }

  @Test
  void aStopTriesARowAgainThatIsLockedForAMomentAndNotOneThatHasBeenForLong() {
    GroupWriter roomy = new GroupWriter(new DeadLetters(), "orders", shared, 100);
    answer = group -> new Written(Set.of(), Set.of(other.id()));
    roomy.add(other);
    roomy.flush(true);
    assertThat(roomy.idle(true)).isFalse();
    other.busySince -= LONG.toNanos();
    assertThat(roomy.idle(true)).isTrue();
    other.busySince += LONG.toNanos();
    answer = group -> Written.done(Set.of(other.id()));
    await()
        .until(
            () -> {
              roomy.flush(true);
              return roomy.idle(true);
            });
    assertThat(other.state()).isEqualTo(HeldRow.State.SETTLED);
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
    public void replaced(List<HeldRow> rows) {
      throw new AssertionError(rows);
    }

    @Override
    public void written(List<HeldRow> written) {}

    @Override
    public void tooMany(RowQueue from) {
      putOff.add(from.removeFirst());
    }
  }
}
