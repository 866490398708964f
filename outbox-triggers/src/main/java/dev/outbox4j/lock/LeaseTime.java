package dev.outbox4j.lock;

/** The clock of leases, and the threads on which what they need is done. Thread-safe. */
interface LeaseTime {

  /** {@return a clock that only goes forward, as {@link System#nanoTime()}} */
  long nanos();

  /**
   * Does something later, which must not take long: all leases share the thread.
   *
   * @param nanos when, by the clock; at once if that is over
   * @param task what
   * @return what takes it back
   */
  Alarm at(long nanos, Runnable task);

  /** Does something that may take long, on a thread of its own. */
  void run(Runnable task);

  /** Something that is to be done later. */
  interface Alarm {
    /** Takes it back, if it has not begun. */
    void cancel();
  }
}
