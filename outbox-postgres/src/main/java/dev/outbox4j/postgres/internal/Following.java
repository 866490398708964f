package dev.outbox4j.postgres.internal;

/**
 * What is written in the statement that settles messages, so that neither is there without the
 * other. Immutable.
 *
 * @param tables common tables that follow {@code done}, which has the ids of the messages; each
 *     with a comma before it
 * @param conditions what must hold, too, each with {@code and} before it
 * @param returning what {@code done} has beside the ids, of a row {@code o}, with a comma before
 *     it; {@code {deliveries}} stands for its deliveries, this one included
 */
public record Following(String tables, String conditions, String returning) {
  /** Nothing. */
  public static final Following NOTHING = new Following("", "");

  /**
   * Needs nothing but the ids.
   *
   * @param tables common tables that follow {@code done}
   * @param conditions what must hold, too
   */
  public Following(String tables, String conditions) {
    this(tables, conditions, "");
  }

  /**
   * Of acks, and of moves to the dead letters.
   *
   * @param ack what follows an ack
   * @param deadLetter what follows a move
   */
  public record Ends(Following ack, Following deadLetter) {
    /** Nothing follows. */
    public static final Ends NOTHING = new Ends(Following.NOTHING, Following.NOTHING);
  }
}
