package dev.outbox4j.benchmarks.spi;

/** A contestant that puts dead letters back at a rate. */
public interface Redriving extends Contestant {

  /**
   * Makes dead letters, as fast as it likes; not measured.
   *
   * @param bench the run
   * @param letters how many
   * @param bytes the size of each payload
   * @throws Exception if that fails
   */
  void loadDead(Bench bench, long letters, int bytes) throws Exception;

  /**
   * Puts all dead letters back.
   *
   * @param bench the run
   * @param perSecond the rate that is asked for
   * @return how many it says that it has put back
   * @throws Exception if that fails
   */
  long redrive(Bench bench, int perSecond) throws Exception;

  /** {@return the query of when each message came back, in seconds, the first one first} */
  String arrivals();
}
