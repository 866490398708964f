package dev.outbox4j.timer.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.timer.CatchUp;
import dev.outbox4j.timer.Timer;
import java.time.Duration;
import java.time.Instant;
import java.util.stream.Collectors;

/** The plans of {@link CatchUpRows}. */
class CatchUpTest {
  @CatchUpRows.Each
  void whatIsRunAfterATimeWithoutANode(
      CatchUp policy,
      String time,
      Duration window,
      String schedule,
      String deployment,
      String runs,
      long notRun,
      String pastDue) {
    Instant now = CatchUpRows.at(time);
    Timer before = CatchUpRows.before(policy, window);
    TimerRecord onRecord =
        Changed.from(TimerRecord.first(before, "v1", CatchUpRows.LAST_LOOK)).startup(null).record();
    Timer timer = CatchUpRows.now(policy, window, schedule);

    TickPlan plan =
        TickPlanner.plan(timer, onRecord.registered(timer, CatchUpRows.name(deployment), now), now);

    assertThat(TestPlans.runs(plan)).isEqualTo(CatchUpRows.list(runs));
    assertThat(plan.notRun()).isEqualTo(notRun);
    assertThat(pastDue(timer, plan, now)).isEqualTo(pastDue);
    assertThat(plan.missed()).isNull();
    assertThat(plan.startup()).isNull();
    assertThat(plan.next()).contains(timer.schedule().next(now).orElseThrow());
  }

  /** Whose handlers would be told so, if they began at the look. */
  private static String pastDue(Timer timer, TickPlan plan, Instant now) {
    return plan.runs().added().stream()
        .filter(run -> TestRuns.attempt(timer, run.instant(), now).isPastDue())
        .map(run -> TestPlans.time(run.instant()).toString())
        .collect(Collectors.joining(" "));
  }
}
