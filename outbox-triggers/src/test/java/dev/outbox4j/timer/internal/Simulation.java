package dev.outbox4j.timer.internal;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** A timer of which each run lasts the same, and which is looked at when something changes. */
abstract class Simulation {
  private final Duration lasts;
  private final List<String> events = new ArrayList<>();
  private final Map<Long, Begun> begun = new HashMap<>();
  private @Nullable Duration heeds;
  private Instant firstLook = Instant.MIN;

  private record Begun(long id, Instant instant, Instant end) {}

  Simulation(Duration lasts) {
    this.lasts = lasts;
  }

  /** {@return when it is due} */
  abstract Instant next();

  /** Takes note that a run has ended. */
  abstract void end(Instant now, long id);

  /** Looks at it. */
  abstract void tick(Instant now);

  /** Its runs end so long after they were asked to stop; without this it is no matter to them. */
  void heedCancelAfter(Duration time) {
    heeds = time;
  }

  void nobodyLooksUntil(Instant time) {
    firstLook = time;
  }

  List<String> events() {
    return events;
  }

  void runUntil(Instant last) {
    for (Instant now = nextLook(); !now.isAfter(last); now = nextLook()) {
      endRuns(now);
      tick(now);
    }
  }

  private Instant nextLook() {
    Instant earliest =
        Stream.concat(Stream.of(next()), begun.values().stream().map(Begun::end))
            .min(Comparator.naturalOrder())
            .orElseThrow();
    return earliest.isAfter(firstLook) ? earliest : firstLook;
  }

  private void endRuns(Instant now) {
    begun.values().stream()
        .filter(run -> run.end().equals(now))
        .sorted(Comparator.comparing(Begun::instant).thenComparing(Begun::id))
        .toList()
        .forEach(
            run -> {
              begun.remove(run.id());
              end(now, run.id());
              log(now, "ends", run.instant());
            });
  }

  void begins(Instant now, long id, Instant instant) {
    begun.put(id, new Begun(id, instant, now.plus(lasts)));
    log(now, "begins", instant);
  }

  void waits(Instant now, Instant instant) {
    log(now, "waits", instant);
  }

  void skips(Instant now, Instant instant) {
    log(now, "skips", instant);
  }

  void terminates(Instant now, long id, Instant instant) {
    begun.remove(id);
    log(now, "terminates", instant);
  }

  void cancels(Instant now, long id, Instant instant) {
    if (heeds != null) {
      begun.put(id, new Begun(id, instant, now.plus(heeds)));
    }
    log(now, "cancels", instant);
  }

  private void log(Instant now, String what, Instant instant) {
    events.add("%s %s %s".formatted(TestPlans.time(now), what, TestPlans.time(instant)));
  }
}
