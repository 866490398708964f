package dev.outbox4j.monitor.internal;

import dev.outbox4j.postgres.internal.Following;

/**
 * Fails the instance of a message in the statement that makes a dead letter of it: so no instance
 * waits for a message that does not come any more.
 */
final class MonitorEnds {
  static final Following.Ends OF_MESSAGES =
      new Following.Ends(
          Following.NOTHING,
          new Following(
              """
              ,
              ended as (
                update {monitors} m
                set status = 'failed', attempts_count = m.attempts_count + done.attempts,
                  last_error = left('its message became a dead letter, ' || done.reason || ': '
                    || coalesce(done.exception, ''), 2000),
                  waits_for = '{}', unseen = '{}', woken = false, updated_at = clock_timestamp(),
                  ended_at = clock_timestamp(), due_at = null
                from done
                where m.message_id = done.id and m.ended_at is null
                returning m.*),
              noted as (
                insert into {monitor_events} (application, monitor_id, execution, kind, iteration,
                  detail)
                select e.application, e.id, e.execution, 'failed', e.iteration, e.last_error
                from ended e
                where e.history > 0)\
              """,
              ""));

  private MonitorEnds() {}
}
