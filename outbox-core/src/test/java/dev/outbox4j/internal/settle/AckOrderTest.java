package dev.outbox4j.internal.settle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.Payload;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.state.ClaimedBatch;
import dev.outbox4j.internal.state.EngineHealth.Operation;
import dev.outbox4j.internal.state.EngineParts;
import dev.outbox4j.internal.state.Events;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.spi.BucketLease;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.History;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.StoredMessage;
import dev.outbox4j.spi.Written;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Acks of an ordered queue while some are refused, locked or not answered, as chance has it. */
class AckOrderTest {
  private static final Duration LEASE = Duration.ofMinutes(1);
  private static final int ROWS = 120;
  private static final Duration LONGER_THAN_A_SEARCH = Duration.ofMillis(60);
  private static final int MOST_FLUSHES = 5_000;
  private static final int FLUSHES_WITH_TROUBLE = 60;

  private final EngineThreads threads =
      new EngineThreads("orders", AckOrderTest.class.getClassLoader());
  private final Shared shared =
      EngineParts.shared(threads, new Events("orders", threads, List.of()), LEASE);
  private final Set<Long> refused = new HashSet<>();
  private final Set<Long> locked = new HashSet<>();
  private final Set<Long> timingOut = new HashSet<>();
  private final Set<Long> written = new HashSet<>();
  private final List<String> early = new ArrayList<>(); // the writer would keep what is thrown
  private List<HeldRow> rows = List.of();
  private int flushes;
  private boolean outage;
  private boolean slow;
  private int statements;
  private int statementsInTheOutage;

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})
  void noAckIsWrittenBeforeAnEarlierOneOfItsKey(int seed) {
    Random random = new Random(seed);
    rows = rows(random, 1 + seed % 12);
    GroupWriter writer = new GroupWriter(new Acks(random), "orders", shared, 30);
    int added = 0;
    while (written.size() < ROWS && early.isEmpty() && flushes++ < MOST_FLUSHES) {
      for (int more = random.nextInt(8); more > 0 && added < ROWS; more--) {
        writer.add(rows.get(added++));
      }
      if (flushes < FLUSHES_WITH_TROUBLE) {
        turn(random, refused, added);
        turn(random, locked, added);
        if (seed % 2 == 0) {
          turn(random, timingOut, added);
        }
      } else {
        refused.clear();
        locked.clear();
        timingOut.clear();
      }
      long wait = writer.flush(false);
      LockSupport.parkNanos(Math.min(wait, TimeUnit.MILLISECONDS.toNanos(5)));
    }
    assertThat(early).as("with seed %d", seed).isEmpty();
    assertThat(written).as("with seed %d, after %d flushes", seed, flushes).hasSize(ROWS);
  }

  @Test
  void whatFollowsALockedAckInASearchStaysBehindIt() {
    rows = rowsOf("k", "k", "other", "k");
    locked.add(rows.get(0).id());
    refused.add(rows.get(2).id());
    flushes = FLUSHES_WITH_TROUBLE;
    GroupWriter writer = new GroupWriter(new Acks(new Random(1)), "orders", shared, 30);
    rows.forEach(writer::add);
    await().until(() -> flushed(writer).waiting() == 4);

    locked.clear();
    refused.add(rows.get(1).id());
    await().until(() -> flushed(writer).waiting() == 3);
    assertThat(written).containsExactly(rows.get(0).id());
    refused.clear();
    await().until(() -> flushed(writer).idle(false));
    assertThat(written).hasSize(4);
    assertThat(early).isEmpty();
  }

  @Test
  void whatFollowsALockedAckStaysBehindItThroughAnOutage() {
    rows = rowsOf("k", "k");
    locked.add(rows.get(0).id());
    flushes = FLUSHES_WITH_TROUBLE;
    GroupWriter writer = new GroupWriter(new Acks(new Random(1)), "orders", shared, 30);
    rows.forEach(writer::add);
    await().until(() -> flushed(writer).waiting() == 2);
    outage = true;
    await().until(() -> flushed(writer).troubled() && statementsInTheOutage > 2);
    outage = false;
    int before = statements;
    await().until(() -> flushed(writer).waiting() == 2 && statements > before + 4);
    assertThat(written).isEmpty();

    locked.clear();
    await().until(() -> flushed(writer).idle(false));
    assertThat(written).hasSize(2);
    assertThat(early).isEmpty();
  }

  @Test
  void anAckThatTimesOutSlowlyKeepsNoOtherFromBeingTried() {
    rows = rowsOf("a", "b", "slow", "c");
    timingOut.add(rows.get(2).id());
    slow = true;
    flushes = FLUSHES_WITH_TROUBLE;
    GroupWriter writer = new GroupWriter(new Acks(new Random(1)), "orders", shared, 30);
    rows.forEach(writer::add);
    await().until(() -> flushed(writer).waiting() == 1 && written.size() == 3);
    assertThat(written).doesNotContain(rows.get(2).id());
  }

  private static GroupWriter flushed(GroupWriter writer) {
    writer.flush(false);
    return writer;
  }

  private void turn(Random random, Set<Long> some, int added) {
    if (random.nextInt(3) == 0 && added > 0) {
      some.add(rows.get(random.nextInt(added)).id());
    }
    if (random.nextInt(4) == 0) {
      some.removeIf(id -> random.nextBoolean());
    }
  }

  /** In the order in which they are handled, which is not always that of their ids. */
  private List<HeldRow> rows(Random random, int keys) {
    List<Long> ids = new ArrayList<>(LongStream.range(0, ROWS).boxed().toList());
    for (int i = 0; i < ROWS / 4; i++) {
      Collections.swap(ids, random.nextInt(ROWS), random.nextInt(ROWS));
    }
    List<String> keysOfRows = new ArrayList<>();
    for (int i = 0; i < ROWS; i++) {
      int key = random.nextInt(keys + 1);
      keysOfRows.add(key == 0 ? null : "k" + key);
    }
    return rows(ids, keysOfRows);
  }

  private List<HeldRow> rowsOf(String... keys) {
    return rows(LongStream.range(0, keys.length).boxed().toList(), List.of(keys));
  }

  private List<HeldRow> rows(List<Long> ids, List<String> keys) {
    List<ClaimedRow> claimed = new ArrayList<>();
    for (int i = 0; i < ids.size(); i++) {
      long id = ids.get(i);
      claimed.add(
          new ClaimedRow(
              new LeaseRef("orders", id, 0, new BucketLease(1, 1, false)),
              new StoredMessage(
                  "t",
                  keys.get(i),
                  null,
                  Payload.of(new byte[1]),
                  Map.of(),
                  Instant.EPOCH,
                  Instant.EPOCH,
                  null),
              new History(1, 0, Duration.ZERO, Duration.ZERO)));
    }
    ClaimedBatch batch = new ClaimedBatch("orders", claimed, System.nanoTime(), LEASE.toNanos());
    shared.registry().add(batch);
    List<HeldRow> all = new ArrayList<>();
    for (int i = 0; i < ids.size(); i++) {
      HeldRow row = batch.at(i);
      row.take();
      row.decide(Settlement.Ack.INSTANCE);
      all.add(row);
    }
    return all;
  }

  /** A server that deletes rows, all of a statement or none, but for those that are locked. */
  private final class Acks implements GroupWriter.Kind {
    private final Random random;

    Acks(Random random) {
      this.random = random;
    }

    @Override
    public Operation operation() {
      return Operation.ACK;
    }

    @Override
    public Phase phase() {
      return Phase.ACK;
    }

    @Override
    public int maxGroup() {
      return 10;
    }

    @Override
    public Written write(List<HeldRow> group) {
      statements++;
      if (outage) {
        statementsInTheOutage++;
        throw new OutboxStoreException("of a test", Fault.CONNECTION, false, null);
      }
      if (flushes < FLUSHES_WITH_TROUBLE && random.nextInt(15) == 0) {
        Fault fault = random.nextBoolean() ? Fault.CONNECTION : Fault.TIMEOUT;
        throw new OutboxStoreException("of a test", fault, random.nextBoolean(), null);
      }
      if (group.stream().anyMatch(row -> timingOut.contains(row.id()))) {
        long until = System.nanoTime() + (slow ? LONGER_THAN_A_SEARCH.toNanos() : 0);
        while (System.nanoTime() < until) {
          Thread.onSpinWait();
        }
        throw new OutboxStoreException("slow", Fault.TIMEOUT, true, null);
      }
      if (group.stream().anyMatch(row -> refused.contains(row.id()))) {
        Fault fault = random.nextInt(4) == 0 ? Fault.SETUP : Fault.ROW;
        throw new OutboxStoreException("refused", fault, false, null);
      }
      Set<String> lockedKeys = new HashSet<>();
      for (HeldRow row : group) {
        String key = row.message().orderingKey();
        if (locked.contains(row.id()) && key != null) {
          lockedKeys.add(key);
        }
      }
      Set<Long> busy = new HashSet<>();
      Set<Long> done = new HashSet<>();
      for (HeldRow row : group) {
        String key = row.message().orderingKey();
        boolean isBusy = locked.contains(row.id()) || (key != null && lockedKeys.contains(key));
        (isBusy ? busy : done).add(row.id());
      }
      written.addAll(done);
      group.stream().filter(row -> done.contains(row.id())).forEach(this::followsAllOfItsKey);
      return new Written(done, busy);
    }

    private void followsAllOfItsKey(HeldRow written) {
      String key = written.message().orderingKey();
      if (key != null) {
        rows.subList(0, rows.indexOf(written)).stream()
            .filter(row -> key.equals(row.message().orderingKey()))
            .filter(row -> !AckOrderTest.this.written.contains(row.id()))
            .forEach(row -> early.add(written.id() + " before " + row.id()));
      }
    }

    @Override
    public void written(List<HeldRow> rows) {}

    @Override
    public void replaced(List<HeldRow> rows) {
      throw new AssertionError(rows);
    }

    @Override
    public void tooMany(RowQueue from) {
      HeldRow row = from.removeFirst(); // left out, and so as good as written
      if (row.message().orderingKey() != null) {
        early.add(row.id() + " was left out");
      }
      written.add(row.id());
    }
  }
}
