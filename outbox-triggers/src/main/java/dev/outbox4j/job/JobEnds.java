package dev.outbox4j.job;

import dev.outbox4j.postgres.internal.Following;

/**
 * Writes how a job ended in the statement that ends its message: neither is there without the
 * other. It reads the job's row and locks none, so no ack waits for who enqueues the job anew. A
 * message whose job was enqueued anew meanwhile leaves no trace: the job's state is that of the
 * later one.
 */
final class JobEnds {
  private static final String ENDED =
      """
      ,
      ended as (
        insert into {job_ends} as e (message_id, queue, job_id, status, reason, attempts_count,
          deliveries_count, ended_at)
        select done.id, j.queue, j.job_id, {status}, {reason}, {attempts},
          done.deliveries_count, clock_timestamp()
        from done cross join {jobs} j
        where j.queue = :queue and j.message_id = any (array[done.id])
        on conflict (message_id) do update
        set queue = excluded.queue, job_id = excluded.job_id, status = excluded.status,
          reason = excluded.reason, attempts_count = excluded.attempts_count,
          deliveries_count = excluded.deliveries_count, ended_at = excluded.ended_at)\
      """;

  /** A dead letter that was put back may end well, or once more badly. */
  static final Following.Ends OF_MESSAGES =
      new Following.Ends(
          new Following(
              ended("'completed'", "null", "done.attempts_count"),
              "",
              ", o.attempts_count, {deliveries} as deliveries_count"),
          new Following(
              ended(
                  "case done.reason when 'rejected' then 'failed' else 'dead_lettered' end",
                  "done.reason",
                  "done.attempts"),
              ""));

  private JobEnds() {}

  private static String ended(String status, String reason, String attempts) {
    return ENDED
        .replace("{status}", status)
        .replace("{reason}", reason)
        .replace("{attempts}", attempts);
  }
}
