package dev.outbox4j.spi;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.spi.ClaimRequest.Idle;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The ordered queues of one outbox table. Every row of such a queue belongs to a <em>bucket</em>:
 * by its ordering key, or by its id if it has none. A bucket has one owner at a time, which reads
 * its rows without writing to them and settles them under the bucket's lease. Thread-safe; as for
 * {@link OutboxStore}, each operation is one atomic execution in a transaction of its own.
 *
 * <p>All operations throw {@link OutboxStoreException} if they failed.
 */
public interface BucketStore {

  /**
   * Keeps an owner alive, gives up what it names, and takes what nobody has, up to its fair share.
   * A bucket that another session has locked is not given up; the answer has it still, with its
   * epoch.
   *
   * @param request who joins
   * @return what the owner has now
   */
  Ownership join(Join request);

  /**
   * Gives up all buckets of an owner that goes away, but for those of which it still has rows: they
   * are free when its lease ends.
   *
   * @param queue the queue
   * @param owner as in {@link Join}
   * @param kept the buckets to keep
   * @param seenUpTo the greatest id that it has read
   */
  void leave(String queue, String owner, Set<Integer> kept, long seenUpTo);

  /**
   * Notes that the owner is about to handle rows up to an id. Whoever takes a bucket from an owner
   * that died counts the deliveries of rows up to there.
   *
   * @param queue the queue
   * @param owner as in {@link Join}
   * @param upTo the greatest id
   * @return false if the owner is not known any more: it must join first
   */
  boolean reserve(String queue, String owner, long upTo);

  /**
   * Reads rows; changes none.
   *
   * @param request what to read
   * @return the rows
   */
  Read read(ReadRequest request);

  /**
   * Returns the greatest id there is, of any queue.
   *
   * @return the id; 0 if the table is empty
   */
  long greatestId();

  /**
   * Adds one to the deliveries of rows.
   *
   * @param leases the rows, at least one, all of one queue
   * @return which rows were counted
   */
  Written count(List<LeaseRef> leases);

  /**
   * One turn of an owner.
   *
   * @param queue the queue
   * @param owner who; the same name as in claims
   * @param lease how long the owner's buckets are promised to it, by the server's clock
   * @param given buckets that it gives up; one that it has with another epoch by then it keeps
   * @param seenUpTo the greatest id that it has read
   */
  record Join(String queue, String owner, Duration lease, List<Owned> given, long seenUpTo) {
    /** Copies the list. */
    public Join {
      given = List.copyOf(given);
    }
  }

  /**
   * A bucket and its owner's epoch.
   *
   * @param bucket the bucket
   * @param epoch the epoch
   * @param countedUpTo rows up to this id may have been handled by an owner that died: each of
   *     their deliveries is to be counted before it begins
   * @param seenUpTo up to this id rows were read before: it exists, and much below it may be dead
   */
  record Owned(int bucket, long epoch, long countedUpTo, long seenUpTo) {
    /** {@return whether it is the same time as an owner, of the same bucket} */
    public boolean isSameAs(@Nullable Owned other) {
      return other != null && other.bucket == bucket && other.epoch == epoch;
    }
  }

  /**
   * What a turn has told.
   *
   * @param owned the owner's buckets
   * @param owners how many owners are alive
   * @param buckets how many buckets the queue has; 0 if it was not set up
   * @param rowByRow a subscriber that claims this queue row by row, so that no bucket was taken; or
   *     null
   */
  record Ownership(List<Owned> owned, int owners, int buckets, @Nullable String rowByRow) {
    /** Copies the list. */
    public Ownership {
      owned = List.copyOf(owned);
    }
  }

  /**
   * A part of a bucket, in the order of ids.
   *
   * @param bucket the bucket
   * @param above above this id
   * @param upTo up to this id, it included
   */
  record Range(int bucket, long above, long upTo) {}

  /**
   * The first rows of a part of a bucket.
   *
   * @param range the part
   * @param limit the most rows of it
   */
  record Portion(Range range, int limit) {}

  /**
   * The rows of a key.
   *
   * @param key the ordering key
   * @param above above this id
   * @param upTo up to this id, it included
   */
  record KeyRange(String key, long above, long upTo) {}

  /**
   * Where to look for rows of a bucket that fall due, in the order of their due instants.
   *
   * @param bucket the bucket
   * @param above above this place; null is from the first
   * @param upToId only ids up to this one
   */
  record DueRange(int bucket, @Nullable ScanBound above, long upToId) {}

  /**
   * What to read. Portions, keys and ids give rows with their payloads, as far as these fit. Sweep
   * and due give rows without, to find out which there are; a request that has one of them has
   * nothing else.
   *
   * @param queue the queue
   * @param owner who reads
   * @param portions of parts of buckets
   * @param limit the most rows of portions that have payloads
   * @param skippedKeys keys of which portions give no payloads
   * @param keys rows of keys
   * @param keyLimit the most rows of one key
   * @param ids single rows, in whatever bucket
   * @param sweep parts of buckets to look through
   * @param due where to look for what falls due
   * @param findLimit the most rows of each part of these two
   * @param maxBytes the most payload bytes; one row is read whatever its size
   * @param rowBytes of portions alone, and if all may have payloads: each row up to so many bytes
   *     has its payload and a larger one has none, so that nothing needs to be added up; else 0
   * @param idle what to say to publishers, and what to learn
   * @param mark whether to give a mark
   * @param newestOf with the mark, the newest id of this bucket is wanted; null for none
   * @param timeLimit after which time the server is to end it; null is the store's own limit
   */
  record ReadRequest(
      String queue,
      String owner,
      List<Portion> portions,
      int limit,
      Set<String> skippedKeys,
      List<KeyRange> keys,
      int keyLimit,
      List<Long> ids,
      List<Range> sweep,
      List<DueRange> due,
      int findLimit,
      long maxBytes,
      long rowBytes,
      Idle idle,
      boolean mark,
      @Nullable Integer newestOf,
      @Nullable Duration timeLimit) {
    /**
     * Asks which rows there are, in parts of buckets or among what is due.
     *
     * @param queue the queue
     * @param owner who reads
     * @param sweep parts of buckets to look through
     * @param due where to look for what has fallen due
     * @param limit the most rows of each part
     * @param timeLimit after which time the server is to end it; null is the store's own limit
     * @return the request
     */
    public static ReadRequest finding(
        String queue,
        String owner,
        List<Range> sweep,
        List<DueRange> due,
        int limit,
        @Nullable Duration timeLimit) {
      return new ReadRequest(
          queue,
          owner,
          List.of(),
          1,
          Set.of(),
          List.of(),
          1,
          List.of(),
          sweep,
          due,
          limit,
          1,
          0,
          Idle.UNCHANGED,
          false,
          null,
          timeLimit);
    }

    /** {@return whether nothing but portions is asked for, so that no row can come twice} */
    public boolean isOfPortionsAlone() {
      return keys.isEmpty() && ids.isEmpty() && sweep.isEmpty() && due.isEmpty();
    }

    /** Copies the collections. */
    public ReadRequest {
      portions = List.copyOf(portions);
      skippedKeys = Set.copyOf(skippedKeys);
      keys = List.copyOf(keys);
      ids = List.copyOf(ids);
      sweep = List.copyOf(sweep);
      due = List.copyOf(due);
    }
  }

  /** By which part of a request a row was found. */
  enum Part {
    /** A portion. */
    RANGE,
    /** A key. */
    KEY,
    /** Its id. */
    ID,
    /** A sweep. */
    SWEEP,
    /** It falls due. */
    DUE
  }

  /**
   * A row.
   *
   * @param part what found it
   * @param bucket its bucket
   * @param row the row; deliveries are those before this one; payload and headers are empty unless
   *     it is loaded
   * @param loaded true if the row is complete: it is due, its key is not skipped, and it fits
   * @param due in how long it can be handled; zero if it can be now
   * @param moved true if it was handled before, or claimed: while it is not due, its key waits for
   *     it
   */
  record Row(Part part, int bucket, ClaimedRow row, boolean loaded, Duration due, boolean moved) {}

  /**
   * What was read.
   *
   * @param rows by part, each in its order
   * @param lookAhead what comes next; null unless the request asked for it. The claimer is always
   *     on watch
   * @param at the server's time
   * @param oldest stands for the oldest transaction that was open when it was read: what those
   *     before it wrote has been seen
   * @param mark stands for the newest transaction there was, if it was asked for, else 0: a read
   *     whose oldest is greater has seen what all of those wrote
   * @param newest the greatest id there is in the bucket that was asked for, else 0
   */
  record Read(
      List<Row> rows,
      @Nullable LookAhead lookAhead,
      Instant at,
      long oldest,
      long mark,
      long newest) {
    /** Copies the list. */
    public Read {
      rows = List.copyOf(rows);
    }
  }
}
