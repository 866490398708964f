package dev.outbox4j.spi;

import dev.outbox4j.OutboxStoreException;
import java.util.List;
import java.util.Set;

/**
 * Which ordering keys of an outbox have dead letters that nobody has resolved yet. Thread-safe.
 * Both methods throw {@link OutboxStoreException} if it cannot be told.
 */
public interface OpenDeadLetters {

  /**
   * A key that has such.
   *
   * @param key the ordering key
   * @param bucket the bucket that its messages belong to
   * @param firstId the least id that one of these dead letters had as a message
   */
  record OpenKey(String key, int bucket, long firstId) {}

  /**
   * Finds the keys of some buckets.
   *
   * @param queue an ordered queue
   * @param buckets the buckets
   * @param most how many keys to return at most
   * @return the keys
   */
  List<OpenKey> ofBuckets(String queue, Set<Integer> buckets, int most);

  /**
   * Finds those among some keys.
   *
   * @param queue an ordered queue
   * @param keys the keys
   * @return those that have open dead letters still
   */
  Set<String> among(String queue, Set<String> keys);
}
