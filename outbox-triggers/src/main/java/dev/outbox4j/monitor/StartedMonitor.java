package dev.outbox4j.monitor;

/**
 * What became of a start.
 *
 * @param answer {@link MonitorAnswer#DONE}, or {@link MonitorAnswer#ALIVE} if an instance of this
 *     id has not ended, and then nothing has changed
 * @param id the instance's id
 * @param execution the execution that was started, or the one that is alive
 */
public record StartedMonitor(MonitorAnswer answer, String id, long execution) {

  /** {@return whether it was started} */
  public boolean started() {
    return answer == MonitorAnswer.DONE;
  }
}
