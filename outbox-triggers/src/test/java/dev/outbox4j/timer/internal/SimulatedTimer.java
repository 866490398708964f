package dev.outbox4j.timer.internal;

import dev.outbox4j.timer.Cause;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.internal.PlannedRun.Fate;
import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/** A simulation of what is planned, without a server. */
final class SimulatedTimer extends Simulation {
  private final Timer timer;
  private TimerRecord record;
  private Instant next;
  private long lastId;

  SimulatedTimer(Timer timer, Instant registered, Duration lasts) {
    super(lasts);
    this.timer = timer;
    this.record = TimerRecord.first(timer, null, registered);
    this.next = timer.schedule().next(registered).orElseThrow();
  }

  TimerRecord record() {
    return record;
  }

  void add(Instant instant, Cause cause) {
    open(new OpenRun(++lastId, instant, cause, "", false));
  }

  void pause(boolean paused) {
    record = Changed.from(record).paused(paused).record();
  }

  @Override
  Instant next() {
    return next;
  }

  @Override
  void end(Instant now, long id) {
    remove(id);
  }

  @Override
  void tick(Instant now) {
    TickPlan plan = TickPlanner.plan(timer, record, now);
    plan.runs().begun().forEach(id -> begin(now, remove(id)));
    plan.runs().skipped().forEach(id -> skips(now, remove(id).instant()));
    plan.runs().terminated().forEach(id -> terminates(now, id, remove(id).instant()));
    plan.runs().cancelled().forEach(id -> cancels(now, id, find(id).instant()));
    plan.runs().added().forEach(run -> add(now, run));
    next = plan.next().orElse(Instant.MAX);
    record = Changed.from(record).by(plan).record();
  }

  private void add(Instant now, PlannedRun run) {
    if (run.fate() == Fate.SKIPPED) {
      skips(now, run.instant());
      return;
    }
    OpenRun open = new OpenRun(++lastId, run.instant(), run.cause(), "", false);
    if (run.fate() == Fate.BEGINS) {
      begin(now, open);
    } else {
      open(open);
      waits(now, run.instant());
    }
  }

  private void begin(Instant now, OpenRun run) {
    open(new OpenRun(run.id(), run.instant(), run.cause(), run.request(), true));
    begins(now, run.id(), run.instant());
  }

  private OpenRun find(long id) {
    return record.open().stream().filter(run -> run.id() == id).findFirst().orElseThrow();
  }

  private OpenRun remove(long id) {
    OpenRun found = find(id);
    replaceOpen(record.open().stream().filter(run -> run.id() != id).toList());
    return found;
  }

  private void open(OpenRun run) {
    replaceOpen(
        Stream.concat(record.open().stream(), Stream.of(run))
            .sorted(Comparator.comparing(OpenRun::instant).thenComparing(OpenRun::id))
            .toList());
  }

  private void replaceOpen(List<OpenRun> open) {
    record = Changed.from(record).open(open).record();
  }
}
