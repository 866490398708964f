package dev.outbox4j.timer.internal;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * What a tick does to one timer, in one transaction.
 *
 * @param cursor up to here all instants are decided now
 * @param missed what is still to be caught up by one run
 * @param notRun how many instants were missed and have no run
 * @param runsLeft how many runs there are still to be, if they are limited
 * @param startup when a deployment asked for a run that is still to be made
 * @param runs what becomes of runs
 * @param next when to look again; empty if only the end of a run, or somebody, changes anything
 */
public record TickPlan(
    Instant cursor,
    @Nullable Missed missed,
    long notRun,
    long runsLeft,
    @Nullable Instant startup,
    Runs runs,
    Optional<Instant> next) {

  /**
   * What becomes of runs, each of them in at most one list, but for those that are asked to stop.
   *
   * @param added those to make, in their order
   * @param begun the keys of waiting ones whose messages are to be published
   * @param cancelled the keys of those that are to be asked to stop
   * @param terminated the keys of those that are to be fenced off
   * @param skipped the keys of waiting ones that are not to be
   */
  public record Runs(
      List<PlannedRun> added,
      List<Long> begun,
      List<Long> cancelled,
      List<Long> terminated,
      List<Long> skipped) {
    static Runs none() {
      return new Runs(
          new ArrayList<>(),
          new ArrayList<>(),
          new ArrayList<>(),
          new ArrayList<>(),
          new ArrayList<>());
    }

    Runs copy() {
      return new Runs(
          List.copyOf(added),
          List.copyOf(begun),
          List.copyOf(cancelled),
          List.copyOf(terminated),
          List.copyOf(skipped));
    }
  }
}
