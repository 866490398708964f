package dev.outbox4j.timer.internal;

import dev.outbox4j.postgres.internal.Following;

/**
 * Ends the run of a message in the statement that ends the message: neither is there without the
 * other, and the fence of the one is that of the other.
 */
final class RunEnds {
  /** A dead letter that was put back may end its run once more. */
  private static final String ENDED =
      """
      ,
      ended as (
        update {timer_runs} r
        set status = '{status}', ended_at = clock_timestamp(){error}
        from done
        where r.message_id = done.id and r.ended_at is null
        returning r.application, r.awaited_by)\
      """;

  /** Others wait for it: a tick begins the next one. Who waits has noted that before. */
  private static final String TOLD =
      """
        and (
          select count(pg_notify({timers_channel}, e.application))
          from ended e
          where e.awaited_by is not null) >= 0
      """;

  private static final String ERROR =
      ",\n          last_error = left(coalesce(done.exception, done.reason), 2000)";

  static final Following.Ends OF_MESSAGES =
      new Following.Ends(ended("succeeded", ""), ended("failed", ERROR));

  private RunEnds() {}

  private static Following ended(String status, String error) {
    return new Following(ENDED.replace("{status}", status).replace("{error}", error), TOLD);
  }
}
