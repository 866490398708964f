package dev.outbox4j.monitor;

/**
 * Looks whether it is so. Called by several threads at once, for different instances. No
 * transaction and no connection is held while it runs.
 *
 * @param <I> the input of an instance
 */
@FunctionalInterface
public interface MonitorCheck<I> {
  /**
   * Looks once. It is called again for the same iteration if it throws, and if its process or the
   * database fails before its result is committed: so looking twice should do no harm. What its
   * result says happens once.
   *
   * @param call the instance, and what is known of it
   * @return what becomes of the instance
   * @throws Exception if it could not look; it is tried again as the type's {@linkplain
   *     MonitorType#retry retries} say, and then the instance has failed
   */
  MonitorResult check(MonitorCall<I> call) throws Exception;
}
