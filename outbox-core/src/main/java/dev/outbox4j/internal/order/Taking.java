package dev.outbox4j.internal.order;

import dev.outbox4j.internal.Durations;
import dev.outbox4j.internal.state.ClaimedBatch;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.HeldRows;
import dev.outbox4j.spi.BucketLease;
import dev.outbox4j.spi.BucketStore;
import dev.outbox4j.spi.BucketStore.DueRange;
import dev.outbox4j.spi.BucketStore.KeyRange;
import dev.outbox4j.spi.BucketStore.Owned;
import dev.outbox4j.spi.BucketStore.Portion;
import dev.outbox4j.spi.BucketStore.Range;
import dev.outbox4j.spi.BucketStore.Read;
import dev.outbox4j.spi.BucketStore.ReadRequest;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.History;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.ScanBound;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Takes what one read of a queue brought. Confined to the fetcher. */
final class Taking {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

  /** Little more is looked for while so many keys and rows are known that are to be read. */
  static final int MOST_FOUND = 10_000;

  /** Between looks at a row that a key waits for, of which more is published, or is there. */
  private static final long LOOK_EVERY = SECOND;

  private static final long LOOK_EVERY_IF_NOTHING_IS_NEW = 30 * SECOND;

  private final Known known;
  private final BucketScans scans;
  private final KeyChains chains;
  private final Agenda agenda;
  private final LateRows late;
  private final ReadRequest request;
  private final Answer answer;
  private final Map<Long, Long> held;
  private final long sentAt;
  private final long now;
  private final List<ClaimedRow> accepted = new ArrayList<>();
  private final Map<Integer, OfBucket> buckets = new HashMap<>();
  private final Set<Long> missing = new HashSet<>();
  private int inRanges;
  private int dueInRanges;
  private long largestInRanges;

  /** What is known of the queue before. */
  record Known(
      String queue,
      BucketScans scans,
      BucketLeases leases,
      KeyChains chains,
      Agenda agenda,
      LateRows late,
      DueLook dueLook,
      RangePlan plan,
      HeldRows registry) {}

  /** What the answer has of one bucket. */
  private static final class OfBucket {
    private final @Nullable BucketScan scan;
    private final boolean mine;

    /** Up to which id it had been read before. */
    private final long above;

    private int inRange;
    private long firstInRange;
    private long lastInRange;
    private int swept;
    private int due;
    private boolean ended;

    OfBucket(@Nullable BucketScan scan, boolean mine) {
      this.scan = scan;
      this.mine = mine;
      this.above = scan == null ? 0 : scan.place();
    }

    /** Of what may go before rows of this bucket. */
    Answer.Before before(long upTo) {
      return new Answer.Before(above, upTo);
    }

    /** Of a bucket that is read. */
    BucketScan scan() {
      return Objects.requireNonNull(scan);
    }
  }

  /**
   * Creates it.
   *
   * @param held the rows that are held and may be in the answer, each with its epoch
   * @param sentAt when the read was sent: whatever is leased, is from then on
   */
  Taking(Known known, ReadRequest request, Read read, Map<Long, Long> held, long sentAt, long now) {
    this.known = known;
    this.scans = known.scans();
    this.chains = known.chains();
    this.agenda = known.agenda();
    this.late = known.late();
    this.request = request;
    this.answer = new Answer(read);
    this.held = held;
    this.sentAt = sentAt;
    this.now = now;
    missing.addAll(request.ids());
  }

  Answer take() {
    known.plan().answered(request);
    answer.rows = known.leases().undisturbed(this::takeReadable);
    return answer;
  }

  /** While no bucket can come or go. */
  private List<HeldRow> takeReadable(Map<Integer, Owned> readable) {
    takeKeys(readable); // first: what ranges give of these keys comes after it
    for (BucketStore.Row row : answer.read.rows()) {
      OfBucket bucket = of(row.bucket(), readable);
      switch (row.part()) {
        case KEY -> {
          // taken
        }
        case ID -> {
          missing.remove(id(row));
          if (bucket.mine) {
            single(bucket, row);
          } else if (bucket.scan != null) {
            agenda.add(id(row), now + SECOND); // the lease is over, and may be renewed
          }
        }
        case RANGE -> {
          inRanges++;
          if (bucket.mine) {
            range(bucket, row);
          }
        }
        case SWEEP -> {
          bucket.swept++;
          if (bucket.swept >= request.findLimit()) {
            answer.sweptTo = Math.min(answer.sweptTo, id(row));
          }
          if (bucket.mine) {
            found(row);
          }
        }
        case DUE -> {
          bucket.due++;
          if (bucket.mine) {
            found(row);
            due(bucket.scan(), row);
          }
        }
        default -> throw new AssertionError(row.part());
      }
    }
    endParts(readable);
    missing.forEach(chains::gone);
    answer.more |= !missing.isEmpty(); // keys that waited for them go on
    return hold();
  }

  private OfBucket of(int bucket, Map<Integer, Owned> readable) {
    return buckets.computeIfAbsent(
        bucket, each -> new OfBucket(scans.get(each), scans.isRead(each, readable.get(each))));
  }

  /** Takes the rows of each key that was asked for; of some nothing may be left. */
  private void takeKeys(Map<Integer, Owned> readable) {
    Map<String, List<BucketStore.Row>> found = new HashMap<>();
    for (BucketStore.Row row : answer.read.rows()) {
      String key = row.row().message().orderingKey();
      if (row.part() == BucketStore.Part.KEY && key != null) {
        found.computeIfAbsent(key, each -> new ArrayList<>()).add(row);
      }
    }
    for (KeyRange range : request.keys()) {
      List<BucketStore.Row> ofKey = found.getOrDefault(range.key(), List.of());
      boolean mine = ofKey.stream().allMatch(row -> of(row.bucket(), readable).mine);
      if (mine && chains.beginKey(range)) {
        ofKey.forEach(row -> ofKey(of(row.bucket(), readable), row, range));
        boolean full = ofKey.size() >= request.keyLimit();
        chains.endKey(range.key(), full ? Long.valueOf(id(ofKey.get(ofKey.size() - 1)) + 1) : null);
      }
    }
  }

  private long id(BucketStore.Row row) {
    return row.row().lease().id();
  }

  private void endParts(Map<Integer, Owned> readable) {
    if (!request.portions().isEmpty()) {
      known.plan().learn(inRanges, dueInRanges, largestInRanges);
    }
    for (Portion portion : request.portions()) {
      Range range = portion.range();
      OfBucket bucket = of(range.bucket(), readable);
      if (!bucket.mine) {
        answer.more = true; // it is read anew, or is another's
        continue;
      }
      BucketScan scan = bucket.scan();
      scan.met(bucket.inRange, bucket.firstInRange, bucket.lastInRange);
      scan.full(bucket.inRange >= portion.limit() || bucket.ended);
      if (scan.isFull()) {
        answer.more = true;
        known.plan().backlogged(range.bucket());
      } else if (range.upTo() == Long.MAX_VALUE) {
        scan.caughtUp();
      } else {
        scan.read(range.upTo());
        answer.more = true;
      }
    }
    for (DueRange range : request.due()) {
      OfBucket bucket = of(range.bucket(), readable);
      boolean all = bucket.due < request.findLimit();
      if (bucket.mine && all) {
        bucket.scan().dueSeen(DueLook.after(answer.read.at()));
      }
      if (all || !bucket.mine) { // what is another's now is looked at when it comes back
        answer.exhausted.add(range.bucket());
      }
    }
    answer.more |= known.dueLook().hasMore(now) || answer.found > 0;
  }

  private void range(OfBucket bucket, BucketStore.Row row) {
    bucket.inRange++;
    bucket.firstInRange = bucket.inRange == 1 ? id(row) : bucket.firstInRange;
    bucket.lastInRange = id(row);
    if (bucket.ended) {
      return;
    }
    dueInRanges += row.due().isZero() ? 1 : 0;
    String key = row.row().message().orderingKey();
    if (!row.loaded()
        && row.due().isZero()
        && !(key != null && request.skippedKeys().contains(key))) {
      bucket.ended = true; // it did not fit: read on from here
      largestInRanges = Long.MAX_VALUE;
      return;
    }
    long id = id(row);
    bucket.scan().read(id);
    late.seen(id);
    boolean accepted = false;
    if (row.loaded()) {
      largestInRanges = Math.max(largestInRanges, row.row().message().payload().size());
      accepted = accept(bucket.scan(), row);
    } else if (row.due().isZero()) {
      more(row);
    } else {
      later(row);
    }
    if (key != null && row.due().isZero() && bucket.above > late.settled()) {
      long again = accepted ? Long.MAX_VALUE : chains.moreFrom(key);
      answer.mayFollow(row.bucket(), bucket.before(Math.min(bucket.above, again - 1)));
    }
  }

  private void ofKey(OfBucket bucket, BucketStore.Row row, KeyRange range) {
    if (row.loaded()) {
      if (accept(bucket.scan(), row)) {
        answer.mayFollow(row.bucket(), bucket.before(range.above()));
      }
    } else if (row.due().isZero()) {
      more(row);
    } else {
      later(row);
    }
  }

  private void single(OfBucket bucket, BucketStore.Row row) {
    boolean hasKey = row.row().message().orderingKey() != null;
    if (hasKey && id(row) > bucket.scan().place()) {
      return; // its bucket came back meanwhile: it is read in its turn
    }
    if (row.loaded()) {
      if (accept(bucket.scan(), row) && hasKey) {
        answer.mayFollow(row.bucket(), bucket.before(bucket.above));
      }
    } else if (row.due().isZero()) {
      agenda.add(id(row), now); // it did not fit
    } else {
      later(row);
    }
  }

  private void due(BucketScan scan, BucketStore.Row row) {
    ScanBound place = new ScanBound(row.row().message().availableAt(), id(row));
    ScanBound before = scan.duePlace();
    if (before == null || before.compareTo(place) < 0) {
      scan.dueSeen(place);
    }
  }

  /** It is not due. */
  private void later(BucketStore.Row row) {
    String key = row.row().message().orderingKey();
    boolean blocks = false;
    if (key != null && row.moved()) {
      blocks = true;
      chains.waits(key, row.bucket(), id(row));
    }
    if (blocks
        || isLeased(row)
        || (row.due().compareTo(ChainOut.SOON) <= 0 && !isFoundAnyway(row))) {
      agenda.add(id(row), now + Durations.saturatedNanos(row.due()));
    }
  }

  /** By somebody who claims row by row: no look at what falls due finds it. */
  private boolean isLeased(BucketStore.Row row) {
    return !row.row().message().availableAt().isAfter(answer.read.at());
  }

  /** Tells whether to let a look find it when it is due, as so many rows are remembered. */
  private boolean isFoundAnyway(BucketStore.Row row) {
    Instant later = row.row().message().createdAt().plusSeconds(1);
    return agenda.size() >= MOST_FOUND && row.row().message().availableAt().isAfter(later);
  }

  private void found(BucketStore.Row row) {
    if (held.containsKey(id(row)) || id(row) > scans.readUpTo(row.bucket())) {
      return; // or it is found in its turn
    }
    if (!row.due().isZero()) {
      later(row);
      return;
    }
    String key = row.row().message().orderingKey();
    if (agenda.has(id(row))) {
      return; // it waits for its time
    }
    if (key != null && chains.isKnown(key, id(row))) { // it waits for its turn
      look(key, LOOK_EVERY_IF_NOTHING_IS_NEW);
      return;
    }
    if (key == null || chains.more(key, row.bucket(), id(row))) {
      agenda.addFound(id(row), now);
    }
    answer.found++;
  }

  private void more(BucketStore.Row row) {
    String key = Objects.requireNonNull(row.row().message().orderingKey());
    if (chains.more(key, row.bucket(), id(row))) {
      agenda.add(id(row), now);
    } else {
      look(key, LOOK_EVERY);
    }
  }

  /** What the key waits for, if anything, may be gone. */
  private void look(String key, long pause) {
    KeyChains.Look look = chains.look(key, now, pause);
    if (look != null) {
      agenda.add(look.id(), look.at());
    }
  }

  /** Tells whether the row is to be held. */
  private boolean accept(BucketScan scan, BucketStore.Row row) {
    String key = row.row().message().orderingKey();
    Long epoch = held.isEmpty() ? null : held.get(id(row));
    if (epoch != null) {
      boolean again =
          key == null ? epoch != scan.owned().epoch() : chains.isHeld(key, row.bucket(), id(row));
      if (again) {
        agenda.add(id(row), now + SECOND);
      }
      return false;
    }
    if (!chains.expect(row)) {
      look(Objects.requireNonNull(key), LOOK_EVERY);
      return false;
    }
    ClaimedRow read = row.row();
    boolean counted = scan.mayHaveBegun(id(row));
    LeaseRef lease =
        new LeaseRef(
            known.queue(),
            id(row),
            read.lease().token(),
            new BucketLease(row.bucket(), scan.owned().epoch(), counted));
    History before = read.history();
    History history =
        new History(
            before.deliveries() + 1, before.attempts(), before.sinceFirstAttempt(), before.age());
    accepted.add(new ClaimedRow(lease, read.message(), history));
    if (!request.isOfPortionsAlone()) {
      held.put(id(row), scan.owned().epoch()); // it may come twice, by its id and with its bucket
    }
    return true;
  }

  private List<HeldRow> hold() {
    if (accepted.isEmpty()) {
      return List.of();
    }
    List<HeldRow> taken = new ArrayList<>(accepted.size());
    ClaimedBatch batch =
        new ClaimedBatch(known.queue(), accepted, sentAt, known.leases().lease(), chains);
    for (int i = 0; i < batch.size(); i++) {
      HeldRow row = Objects.requireNonNull(batch.at(i));
      taken.add(row);
      if (!request.isOfPortionsAlone()) {
        Objects.requireNonNull(buckets.get(HeldOfQueue.bucketOf(row).bucket())).scan().took(row);
      }
    }
    known.registry().add(batch);
    return taken;
  }
}
