package dev.outbox4j.postgres.internal;

import java.util.Map;

/** The dedup keys that were published, beside publishing. */
public final class DedupKeys {
  private static final int MOST_PURGED = 100_000;

  /** Never waits for a row: who publishes a key anew may hold it. */
  private static final String PURGE =
      """
      with over as materialized (
        select k.ctid, k.queue, k.dedup_key from {dedup} k
        where k.kept_until <= now() order by k.kept_until limit :limit
        for update skip locked)
      delete from {dedup} d
      using over
      where d.ctid = over.ctid and d.queue = over.queue and d.dedup_key = over.dedup_key
      """;

  private DedupKeys() {}

  /** Deletes keys whose windows are over; returns how many. */
  public static int purge(Jdbc jdbc, int limit) {
    if (limit < 1 || limit > MOST_PURGED) {
      throw new IllegalArgumentException("limit is " + limit + "; it must be 1 to " + MOST_PURGED);
    }
    Sql sql = Preamble.before(PURGE, jdbc.table());
    return jdbc.run(
        "purge dedup keys",
        connection ->
            jdbc.preamble()
                .run(
                    connection,
                    sql,
                    Map.of("limit", (long) limit),
                    null,
                    (start, results) -> results.next().updated()));
  }
}
