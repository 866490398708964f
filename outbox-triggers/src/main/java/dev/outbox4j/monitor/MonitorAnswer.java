package dev.outbox4j.monitor;

/** What became of something that was asked for. */
public enum MonitorAnswer {
  /** It is done. */
  DONE,
  /** Nothing has changed, since it was so already, or the instance is suspended. */
  UNCHANGED,
  /** There is no such instance. */
  UNKNOWN,
  /** Refused: the instance has ended. */
  FINISHED,
  /** Refused: the instance has not ended. */
  ALIVE,
  /** Refused: as many events wait to be seen as may wait. */
  FULL
}
