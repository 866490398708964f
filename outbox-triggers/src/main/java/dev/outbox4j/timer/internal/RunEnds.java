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
        returning r.application, r.name)\
      """;

  /** A run that waits for this one is begun by a tick, which is told by this. */
  private static final String TOLD =
      """
        and (
          select count(pg_notify({timers_channel}, e.application))
          from ended e
          where exists (
            select from {timer_runs} w
            where w.application = e.application and w.name = e.name and w.ended_at is null
              and w.status = 'waiting')) >= 0
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
