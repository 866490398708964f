package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.HeldBack;
import dev.outbox4j.poller.Position;
import java.time.Duration;
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
   * @param seenAt by when everything is handled that was committed, once all that can be seen is,
   *     and of a cursor that ascends all below the greatest; null if that is not known
   * @param held whether rows may wait for transactions
   * @param heldBack for which
   * @param moreSoon how many milliseconds later rows that can be seen are complete, if nothing else
   *     holds them back; 0 if none wait for that
   */
  record Found(
      @Nullable Bound bound,
      @Nullable String greatest,
      Instant at,
      @Nullable Instant seenAt,
      boolean held,
      Optional<HeldBack> heldBack,
      long moreSoon) {

    /** The same, if what is open holds nothing back that can be seen. */
    Found free() {
      return new Found(bound, greatest, at, seenAt, false, Optional.empty(), 0);
    }

    /** The same, of rows that wait no longer than since a time. */
    Found waitingSince(Instant since) {
      return new Found(
          bound,
          greatest,
          at,
          seenAt,
          held,
          heldBack.map(by -> by.since().isBefore(since) ? later(by, since) : by),
          moreSoon);
    }

    private HeldBack later(HeldBack by, Instant since) {
      return new HeldBack(
          since,
          Duration.between(since, at.isBefore(since) ? since : at),
          by.process(),
          by.transaction(),
          by.application(),
          by.began(),
          by.transactions());
    }
  }

  /**
   * Looks.
   *
   * @param position where the poller is
   * @return what was found
   * @throws SourceException if it could not be found out, and then nothing may be handled
   */
  Found look(Position position);

  /**
   * By when everything is handled that was committed, once all before a cursor is; null if that is
   * not known.
   */
  @Nullable Instant completeAt(String cursor);
}
