package dev.outbox4j.spi;

import java.util.Set;

/**
 * What a write on leased rows did. A row that is in no set belongs to another owner, or is gone.
 *
 * @param done the ids that were changed
 * @param busy the ids that are still held under the lease that was named, but locked by another
 *     session: nothing was changed, and a later write may succeed
 * @param replaced the ids whose rows another message has taken, see {@link
 *     dev.outbox4j.IfLive#REPLACE}: instead of what was to be written, its lease was ended
 */
public record Written(Set<Long> done, Set<Long> busy, Set<Long> replaced) {

  /** Copies the sets. */
  public Written {
    done = Set.copyOf(done);
    busy = Set.copyOf(busy);
    replaced = Set.copyOf(replaced);
  }

  /**
   * The answer of a write that met no row which another message has taken.
   *
   * @param done the ids that were changed
   * @param busy the ids that are locked by another session
   */
  public Written(Set<Long> done, Set<Long> busy) {
    this(done, busy, Set.of());
  }

  /**
   * Returns the answer of a write that met no locked row.
   *
   * @param ids the ids that were changed
   * @return the answer
   */
  public static Written done(Set<Long> ids) {
    return new Written(ids, Set.of(), Set.of());
  }
}
