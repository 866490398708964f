package dev.outbox4j.internal.state;

/** Is told how far rows have come. Called on whatever thread takes the step; must not block. */
public interface RowFollower {
  /**
   * What is to be written of a row is known, and is on its way: what others decide from now on is
   * written after it, or together with it.
   */
  void decided(HeldRow row);

  /** What was decided of a row, or of one before it of its key, cannot be written for now. */
  void unwritten(HeldRow row);

  /** A row's time in the engine has ended; once only. */
  void settled(HeldRow row);
}
