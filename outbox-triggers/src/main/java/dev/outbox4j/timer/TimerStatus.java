package dev.outbox4j.timer;

import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * A timer as it is on record.
 *
 * @param name its name
 * @param schedule the description of its schedule
 * @param registered when it was put on record
 * @param due when it is looked at next; empty if it is paused, or has no instant any more
 * @param overdue for how long it should have been looked at; zero if it is not due
 * @param pause its pause, if it is paused
 * @param notRun how many instants were missed and have no run
 * @param waiting how many runs wait for others to end
 * @param begun how many runs have a message
 * @param oldestStarted of the runs that have not ended, the one that was started first; empty if
 *     none was started: a run that has begun is started when a worker takes its message
 * @param lastSuccess when a run last succeeded
 * @param sinceSuccess how long ago that was; since it was put on record if none has
 * @param lastInstant the latest instant of its schedule that has a run
 * @param countsFrom from when an instant without a run counts as missed: since it was put on
 *     record, resumed, or given another schedule
 * @param runsLeft how many runs there are still to be; empty if they are not limited
 * @param asOf the server's clock when this was read
 */
public record TimerStatus(
    String name,
    String schedule,
    Instant registered,
    Optional<Instant> due,
    Duration overdue,
    Optional<Pause> pause,
    long notRun,
    long waiting,
    long begun,
    Optional<Started> oldestStarted,
    Optional<Instant> lastSuccess,
    Duration sinceSuccess,
    Optional<Instant> lastInstant,
    Instant countsFrom,
    OptionalLong runsLeft,
    Instant asOf) {

  /**
   * A run that was started and has not ended. It may be tried again meanwhile.
   *
   * @param id its key, as {@link RecordedRun#id} has it
   * @param instant the one it is for
   * @param at when its first attempt began
   */
  public record Started(long id, Instant instant, Instant at) {}

  /**
   * A pause.
   *
   * @param since since when
   * @param by who paused it
   * @param reason why
   */
  public record Pause(Instant since, String by, String reason) {}
}
