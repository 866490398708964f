package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.HeldBack;
import dev.outbox4j.poller.Position;
import java.time.Instant;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Up to where rows may be handled, of one source. Confined to one thread. */
interface Horizon {
  /**
   * What was found.
   *
   * @param bound up to where rows may be handled; null if nothing is known to be complete yet
   * @param greatest the greatest cursor that can be seen; null if there is none
   * @param at the source's clock
   * @param held whether rows may wait for transactions
   * @param heldBack for which
   * @param moreSoon how many milliseconds later rows that can be seen are complete, if nothing else
   *     holds them back; 0 if none wait for that
   */
  record Found(
      @Nullable Bound bound,
      @Nullable String greatest,
      Instant at,
      boolean held,
      Optional<HeldBack> heldBack,
      long moreSoon) {}

  /**
   * Looks.
   *
   * @param position where the poller is
   * @return what was found
   * @throws SourceException if it could not be found out, and then nothing may be handled
   */
  Found look(Position position);
}
