package dev.outbox4j.internal.state;

/** Is told how far rows have come. Called on whatever thread takes the step; must not block. */
public interface RowFollower {
  /** It is known what is to be written of a row. */
  void decided(HeldRow row);

  /** A row's time in the engine has ended; once only. */
  void settled(HeldRow row);
}
