package dev.outbox4j.spi;

import java.util.Set;

/**
 * What a write on leased rows did. A row that is in neither set belongs to another owner, or is
 * gone.
 *
 * @param done the ids that were changed
 * @param busy the ids that are still held under the lease that was named, but locked by another
 *     session: nothing was changed, and a later write may succeed
 */
public record Written(Set<Long> done, Set<Long> busy) {

  /** Copies the sets. */
  public Written {
    done = Set.copyOf(done);
    busy = Set.copyOf(busy);
  }

  /**
   * Returns the answer of a write that met no locked row.
   *
   * @param ids the ids that were changed
   * @return the answer
   */
  public static Written done(Set<Long> ids) {
    return new Written(ids, Set.of());
  }
}
