package dev.outbox4j.poller;

/** What people do to a poller. */
public enum PollerVerb {
  /** It was put on record. */
  CREATE,
  /** {@link PollerControl#pause}. */
  PAUSE,
  /** {@link PollerControl#resume}. */
  RESUME,
  /** {@link PollerControl#set}. */
  SET,
  /** {@link PollerControl#reset}. */
  RESET,
  /** {@link PollerControl#adopt}. */
  ADOPT,
  /** {@link PollerControl#skip}. */
  SKIP,
  /** {@link PollerControl#retry}. */
  RETRY,
  /** {@link PollerControl#redrive}. */
  REDRIVE,
  /** {@link PollerControl#discard}. */
  DISCARD,
  /** It has come to its end. */
  FINISH
}
