package dev.outbox4j.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.FailureReason;
import dev.outbox4j.Payload;
import dev.outbox4j.internal.state.ClaimedBatch;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.HeldRows;
import dev.outbox4j.internal.state.Lease;
import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.spi.BucketLease;
import dev.outbox4j.spi.BucketStore;
import dev.outbox4j.spi.BucketStore.KeyRange;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.History;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.StoredMessage;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * A table with the rows of one key, who reads it as a lane does, and handlers that end as chance
 * has it; a seed says how.
 */
final class OneKey implements KeyChains.Out {
  private static final String KEY = "k";
  private static final long ROWS = 40;
  private static final int KEY_LIMIT = 4;

  private final int seed;
  private final Random random;
  private final HeldRows registry = new HeldRows();
  private final KeyChains chains =
      new KeyChains(
          new KeyChains.Limits(KEY_LIMIT, 6, 10), false, OneKey::isTransactional, this, () -> 0);

  /** For each row that is left whether it is due. */
  private final NavigableMap<Long, Boolean> due = new TreeMap<>();

  /** Rows that were published with a delay: until they have failed nobody waits for them. */
  private final Set<Long> delayed = new HashSet<>();

  private final Set<Long> handled = new HashSet<>();

  /** Rows that became dead letters. */
  private final Set<Long> dead = new TreeSet<>();

  /** Dead letters that were put back, and that nobody has come across yet. */
  private final Set<Long> putBack = new HashSet<>();

  /** When what was put back was found last, and when rows became ready. */
  private final Map<Long, Integer> foundAt = new HashMap<>();

  private final Map<HeldRow, Integer> readyAt = new HashMap<>();
  private int time;

  private final Map<Long, Integer> begun = new HashMap<>();
  private final Deque<HeldRow> ready = new ArrayDeque<>();
  private final List<HeldRow> running = new ArrayList<>();

  /** Acks that are not written yet. */
  private final Deque<HeldRow> acks = new ArrayDeque<>();

  /** What is decided of these changes nothing. */
  private final Set<HeldRow> heldWhenLost = new HashSet<>();

  private final Set<Long> agenda = new HashSet<>();

  /** Rows that the read which goes on has met. */
  private final Set<Long> read = new HashSet<>();

  private long place;
  private boolean ending;

  OneKey(int seed) {
    this.seed = seed;
    this.random = new Random(seed);
    for (long id = 1; id <= ROWS; id++) {
      due.put(id, true);
      if (random.nextInt(20) == 0) {
        due.put(id, false);
        delayed.add(id);
      }
    }
  }

  void run() {
    for (int i = 0; i < 600; i++) {
      step();
      if (random.nextInt(20) == 0) {
        theFirstThatIsDueBegins();
      }
    }
    ending = true;
    place = 0; // so that all that was put back is found
    for (int i = 0; i < 2_000 && !(due.isEmpty() && agenda.isEmpty()); i++) {
      step();
    }
    assertThat(due).as("rows left, with seed %d", seed).isEmpty();
    assertThat(chains.blocked()).isZero();
    assertThat(registry.rows()).isZero();
  }

  private void step() {
    switch (random.nextInt(8)) {
      case 0, 1, 2 -> read();
      case 3, 4, 5 -> handle();
      case 6 -> fallDue();
      default -> disturb();
    }
  }

  /** Whatever waits for its time. */
  private void theFirstThatIsDueBegins() {
    Long first = first();
    if (first == null || Boolean.FALSE.equals(due.get(first)) || !running.isEmpty()) {
      return;
    }
    int before = begun.getOrDefault(first, 0);
    for (int i = 0; i < 100 && isNext(first, before); i++) {
      read();
      handle();
    }
    assertThat(isNext(first, before)).as("%d does not begin, with seed %d", first, seed).isFalse();
  }

  /** Returns the first row that is known, but for those whose delay nobody waits for. */
  private @Nullable Long first() {
    return due.keySet().stream()
        .filter(id -> !putBack.contains(id) && (due.get(id) || !isDelayed(id)))
        .findFirst()
        .orElse(null);
  }

  private boolean isNext(Long row, int timesBegun) {
    return row.equals(first()) && begun.getOrDefault(row, 0) == timesBegun;
  }

  private boolean isDelayed(long id) {
    return delayed.contains(id) && !handled.contains(id);
  }

  private void fallDue() {
    due.replaceAll((id, before) -> before || ending || random.nextInt(3) == 0);
  }

  private void disturb() {
    if (ending) {
      return;
    }
    switch (random.nextInt(5)) {
      case 0 -> loseAndRegain(true);
      case 1 -> loseAndRegain(false); // the lease was over for a while
      case 2 -> withdrawWaiting();
      case 3 -> putBack();
      default -> { // a walk finds a row that nobody holds
        List<Long> left = due.keySet().stream().filter(id -> id <= place && !isHeld(id)).toList();
        if (!left.isEmpty()) {
          long id = left.get(random.nextInt(left.size()));
          found(id);
        }
      }
    }
  }

  private void loseAndRegain(boolean isOfAnother) {
    chains.drop(Set.of(1));
    withdrawWaiting();
    place = 0;
    List<HeldRow> before = new ArrayList<>(held());
    Collections.shuffle(before, random);
    if (isOfAnother) {
      heldWhenLost.addAll(before);
      before.stream().filter(row -> random.nextBoolean()).forEach(HeldRow::lose);
    }
    chains.await(before);
  }

  private void putBack() {
    dead.forEach(id -> due.put(id, true));
    putBack.addAll(dead);
    dead.clear();
  }

  private void known(long id) {
    if (putBack.remove(id)) {
      foundAt.put(id, ++time);
    }
  }

  private void found(long id) {
    known(id);
    if (Boolean.FALSE.equals(due.get(id))) {
      notDue(id);
    } else if (chains.more(KEY, 1, id)) {
      agenda.add(id);
    }
  }

  private void withdrawWaiting() {
    List<HeldRow> waiting = new ArrayList<>();
    for (ClaimedBatch batch : registry.batches()) {
      HeldRow row = batch.at(0);
      if (row != null && row.state() == HeldRow.State.WAITING) {
        waiting.add(row);
      }
    }
    withdrawn(waiting);
  }

  private boolean isHeld(long id) {
    return heldIds().contains(id);
  }

  private Set<Long> heldIds() {
    return held().stream().map(HeldRow::id).collect(Collectors.toSet());
  }

  private List<HeldRow> held() {
    List<HeldRow> held = new ArrayList<>();
    for (ClaimedBatch batch : registry.batches()) {
      HeldRow row = batch.at(0);
      if (row != null) {
        held.add(row);
      }
    }
    return held;
  }

  /** Reads as a lane does: keys, then single rows, then onward. */
  private void read() {
    List<KeyRange> keys = chains.hungry(1, bucket -> place);
    List<Long> ids = List.copyOf(agenda);
    Set<Long> held = heldIds();
    NavigableMap<Long, Boolean> snapshot = new TreeMap<>(due);
    agenda.clear();
    between();
    Deque<BucketStore.Row> expected = new ArrayDeque<>();
    for (KeyRange range : keys) {
      if (chains.beginKey(range)) {
        List<Long> page = page(snapshot, range.above(), range.upTo());
        page.forEach(id -> take(id, snapshot, held, expected));
        chains.endKey(KEY, page.size() < KEY_LIMIT ? null : page.get(KEY_LIMIT - 1) + 1);
      }
    }
    for (long id : ids) {
      if (snapshot.containsKey(id) && id <= place) { // else it is read in its turn
        take(id, snapshot, held, expected);
      }
    }
    for (long id : page(snapshot, place, ROWS)) {
      take(id, snapshot, held, expected);
      place = id;
    }
    for (long id : ids) {
      if (!snapshot.containsKey(id)) {
        chains.gone(id);
      }
    }
    List<HeldRow> taken = expected.stream().map(this::hold).toList();
    long failed = Long.MAX_VALUE;
    for (HeldRow row : taken) {
      between();
      if (!ending && random.nextInt(30) == 0) { // it was not counted
        failed = Math.min(failed, row.id());
        chains.unexpected(row);
        if (row.withdraw()) {
          registry.settle(row);
        }
      } else {
        chains.admit(List.of(row));
      }
    }
    if (failed < Long.MAX_VALUE) {
      chains.waits(KEY, 1, failed);
      agenda.add(failed);
    }
    read.forEach(this::known); // not before they are held: what was ready until then begins
    read.clear();
  }

  private List<Long> page(NavigableMap<Long, Boolean> snapshot, long above, long upTo) {
    return snapshot.tailMap(above, false).keySet().stream()
        .filter(id -> id <= upTo)
        .limit(KEY_LIMIT)
        .toList();
  }

  private void take(
      long id, Map<Long, Boolean> snapshot, Set<Long> held, Deque<BucketStore.Row> expected) {
    read.add(id);
    if (Boolean.FALSE.equals(snapshot.get(id))) {
      notDue(id);
    } else if (held.contains(id)) {
      if (chains.isHeld(KEY, 1, id)) {
        agenda.add(id);
      }
    } else if (chains.expect(row(id))) {
      held.add(id);
      expected.add(row(id));
    }
  }

  private void notDue(long id) {
    if (handled.contains(id)) {
      chains.waits(KEY, 1, id);
    }
    agenda.add(id);
  }

  /** What other threads do meanwhile. */
  private void between() {
    for (int i = random.nextInt(3); i > 0; i--) {
      handle();
    }
  }

  private void handle() {
    HeldRow next = ready.poll();
    if (next != null && next.take()) {
      long id = next.id();
      Set<Long> before = new HashSet<>(due.headMap(id).keySet());
      before.removeIf(this::isDelayed);
      int since = readyAt.get(next);
      before.removeIf(each -> putBack.contains(each) || foundAt.getOrDefault(each, 0) > since);
      acks.stream()
          .filter(ack -> !heldWhenLost.contains(ack))
          .forEach(ack -> before.remove(ack.id()));
      assertThat(before).as("what precedes %d, with seed %d", id, seed).isEmpty();
      assertThat(running).as("beside %d, with seed %d", id, seed).isEmpty();
      if (isTransactional(next)) {
        assertThat(acks).as("not written before %d, with seed %d", id, seed).isEmpty();
      }
      running.add(next);
      begun.merge(id, 1, Integer::sum);
      return;
    }
    if (running.isEmpty() || random.nextInt(4) == 0) {
      writeAck();
      return;
    }
    end(running.remove(0));
  }

  private void end(HeldRow row) {
    long id = row.id();
    handled.add(id);
    boolean counts = !heldWhenLost.contains(row);
    row.missing = !counts;
    switch (ending ? 0 : random.nextInt(5)) {
      case 0, 1 -> {
        row.decide(Settlement.Ack.INSTANCE);
        row.tellDecided();
        acks.add(row);
        return; // it is written later
      }
      case 2 -> {
        if (counts) {
          due.remove(id);
          dead.add(id);
        }
        row.decide(new Settlement.DeadLetter(FailureReason.REJECTED, 1, null, "failed"));
        row.tellDecided();
      }
      case 3 -> {
        if (counts) {
          due.replace(id, false);
        }
        row.decide(new Settlement.Retry(Duration.ofNanos(1), "failed"));
        row.tellDecided();
      }
      default -> row.lose();
    }
    registry.settle(row);
  }

  /** Writes the ack that was decided first, or cannot for now. */
  private void writeAck() {
    HeldRow row = acks.peek();
    if (row == null) {
      return;
    }
    if (!ending && random.nextInt(3) == 0) {
      row.tellUnwritten();
      return;
    }
    acks.remove();
    row.missing = heldWhenLost.contains(row);
    if (!row.missing) {
      due.remove(row.id());
    }
    registry.settle(row);
  }

  private static boolean isTransactional(HeldRow row) {
    return row.id() % 3 == 0;
  }

  private static BucketStore.Row row(long id) {
    ClaimedRow row =
        new ClaimedRow(
            new LeaseRef("orders", id, 0, new BucketLease(1, 1, false)),
            new StoredMessage(
                "t",
                KEY,
                null,
                Payload.of(new byte[(int) (id % 5)]),
                Map.of(),
                Instant.EPOCH,
                Instant.EPOCH,
                null),
            new History(1, 0, Duration.ZERO, Duration.ZERO));
    return new BucketStore.Row(BucketStore.Part.RANGE, 1, row, true, Duration.ZERO, false);
  }

  private HeldRow hold(BucketStore.Row read) {
    ClaimedBatch batch =
        new ClaimedBatch("orders", List.of(read.row()), 0, new Lease(0, ROWS), chains);
    registry.add(batch);
    return Objects.requireNonNull(batch.at(0));
  }

  @Override
  public void ready(List<HeldRow> rows) {
    rows.forEach(row -> readyAt.put(row, ++time));
    ready.addAll(rows);
  }

  @Override
  public void withdrawn(List<HeldRow> rows) {
    for (HeldRow row : rows) {
      if (row.withdraw()) {
        registry.settle(row);
      }
    }
  }

  @Override
  public void again(HeldRow row, long at) {
    agenda.add(row.id());
  }

  @Override
  public void onHold(HeldRow row) {
    throw new AssertionError(row);
  }

  @Override
  public void hungry() {}

  @Override
  public void broken(Throwable failure) {
    throw new AssertionError(failure);
  }
}
