package dev.outbox4j.job;

/** How far a job has come. */
public enum JobState {
  /** It waits: for a worker, for its time, or for the next attempt. */
  QUEUED,
  /** A process has it: its handler runs, or is about to. */
  IN_FLIGHT,
  /** Its handler has ended well. */
  COMPLETED,
  /**
   * Its handler has rejected it. It is in the dead letters and does not come again, unless somebody
   * replays it.
   */
  FAILED,
  /**
   * Its budget is spent, or no handler could be called with it. It is in the dead letters and does
   * not come again, unless somebody replays it.
   */
  DEAD_LETTERED,
  /**
   * Its message is not in the outbox, and how it ended is not known here: somebody has deleted it,
   * or moved it to the dead letters by hand, or a newer version has written an end that this one
   * does not know.
   */
  GONE;

  /** {@return whether nothing happens to it any more by itself} */
  public boolean isFinal() {
    return this != QUEUED && this != IN_FLIGHT;
  }
}
