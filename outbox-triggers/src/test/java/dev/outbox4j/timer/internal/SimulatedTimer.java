package dev.outbox4j.timer.internal;

import dev.outbox4j.timer.Cause;
import dev.outbox4j.timer.Timer;
import dev.outbox4j.timer.internal.PlannedRun.Fate;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** A timer of which each run lasts the same, and which is looked at when something changes. */
final class SimulatedTimer {
  private final Timer timer;
  private final Duration lasts;
  private final List<String> events = new ArrayList<>();
  private final Map<Long, Instant> ends = new HashMap<>();
  private @Nullable Duration heeds;
  private TimerRecord record;
  private Instant next;
  private long lastId;

  SimulatedTimer(Timer timer, Instant registered, Duration lasts) {
    this.timer = timer;
    this.lasts = lasts;
    this.record = TimerRecord.first(timer, null, registered);
    this.next = timer.schedule().next(registered).orElseThrow();
  }

  SimulatedTimer heedingCancelAfter(Duration time) {
    this.heeds = time;
    return this;
  }

  void nobodyLooksUntil(Instant time) {
    this.next = time;
  }

  List<String> events() {
    return events;
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

  void runUntil(Instant last) {
    for (Instant now = earliest(); !now.isAfter(last); now = earliest()) {
      endRuns(now);
      tick(now);
    }
  }

  private Instant earliest() {
    return Stream.concat(Stream.of(next), ends.values().stream())
        .min(Comparator.naturalOrder())
        .orElseThrow();
  }

  private void endRuns(Instant now) {
    for (OpenRun run : record.open()) {
      if (now.equals(ends.get(run.id()))) {
        ends.remove(run.id());
        remove(run.id());
        log(now, "ends", run.instant());
      }
    }
  }

  void tick(Instant now) {
    TickPlan plan = TickPlanner.plan(timer, record, now);
    plan.runs().begun().forEach(id -> begin(now, remove(id)));
    plan.runs().skipped().forEach(id -> log(now, "skips", remove(id).instant()));
    plan.runs()
        .terminated()
        .forEach(
            id -> {
              ends.remove(id);
              log(now, "terminates", remove(id).instant());
            });
    plan.runs()
        .cancelled()
        .forEach(
            id -> {
              log(now, "cancels", find(id).orElseThrow().instant());
              if (heeds != null) {
                ends.put(id, now.plus(heeds));
              }
            });
    plan.runs().added().forEach(run -> add(now, run));
    next = plan.next().orElse(Instant.MAX);
    record = Changed.from(record).by(plan).record();
  }

  private void add(Instant now, PlannedRun run) {
    if (run.fate() == Fate.SKIPPED) {
      log(now, "skips", run.instant());
      return;
    }
    OpenRun open = new OpenRun(++lastId, run.instant(), run.cause(), "", false);
    if (run.fate() == Fate.BEGINS) {
      begin(now, open);
    } else {
      open(open);
      log(now, "waits", run.instant());
    }
  }

  private void begin(Instant now, OpenRun run) {
    open(new OpenRun(run.id(), run.instant(), run.cause(), run.request(), true));
    ends.put(run.id(), now.plus(lasts));
    log(now, "begins", run.instant());
  }

  private Optional<OpenRun> find(long id) {
    return record.open().stream().filter(run -> run.id() == id).findFirst();
  }

  private OpenRun remove(long id) {
    OpenRun found = find(id).orElseThrow();
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

  private void log(Instant now, String what, Instant instant) {
    events.add("%s %s %s".formatted(TestPlans.time(now), what, TestPlans.time(instant)));
  }
}
