package dev.outbox4j.internal.schema;

/** How rows of ordered queues are divided; the same in statements and in indexes. */
public final class Buckets {
  /** How many buckets a queue has; a power of two, fixed with its index. */
  public static final int COUNT = 64;

  private Buckets() {}

  /**
   * Returns the bucket of a row, as SQL: by its key, or by its id if it has none.
   *
   * @param prefix what stands before a column, such as {@code o.}
   */
  public static String of(String prefix) {
    return "(case when %1$sordering_key is null then %1$sid else hashtextextended(%1$sordering_key, 0) end & %2$d)"
        .formatted(prefix, COUNT - 1);
  }

  /**
   * Returns what is true of every row, as SQL, and is said by those statements alone that read by
   * buckets: an index with this predicate serves no other one, whatever the planner believes.
   *
   * @param prefix what stands before a column
   */
  public static String ofAny(String prefix) {
    return of(prefix) + " is not null";
  }

  /**
   * Returns the bucket of a key, as SQL; the same as that of its rows.
   *
   * @param key the key, as an expression that is not null
   */
  public static String ofKey(String key) {
    return "(hashtextextended(%s, 0) & %d)".formatted(key, COUNT - 1);
  }

  /**
   * Returns what is true of every row that falls due long after it was published, as SQL: nothing
   * that a claim writes.
   *
   * @param prefix what stands before a column
   */
  public static String dueLater(String prefix) {
    return "%1$savailable_at - %1$screated_at > interval '1 second'".formatted(prefix);
  }
}
