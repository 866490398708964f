package dev.outbox4j.timer.internal;

import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.timer.RecordedRun;
import dev.outbox4j.timer.RunStatus;
import dev.outbox4j.timer.Timer;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/** A simulation of what becomes of runs on a server. */
final class ServerTimer extends Simulation {
  private final TestDatabase database;
  private final ServerClock clock;
  private final Timer timer;
  private final TimerStore store;
  private final ControlStore control;
  private Map<Long, RecordedRun> before = Map.of();

  ServerTimer(
      TestDatabase database, ServerClock clock, Timer timer, Instant registered, Duration lasts) {
    super(lasts);
    this.database = database;
    this.clock = clock;
    this.timer = timer;
    PostgresOutbox outbox = PostgresOutbox.on(clock.sessions(), database.table());
    this.store = new TimerStore(outbox, "shop", "timers", InstantSource.system());
    this.control = new ControlStore(outbox, "shop");
    clock.set(registered);
    store.register(List.of(timer), null);
  }

  @Override
  Instant next() {
    return control.timers().get(0).due().orElse(Instant.MAX);
  }

  @Override
  void end(Instant now, long id) {
    database.update(
        "with done as (delete from outbox o using outbox_timer_run r"
            + " where r.id = ? and o.id = r.message_id returning r.id)"
            + " update outbox_timer_run r set status = 'succeeded', ended_at = ?::timestamptz"
            + " from done where r.id = done.id",
        id,
        now.toString());
  }

  @Override
  void tick(Instant now) {
    clock.set(now);
    while (store.tick(Map.of(timer.name(), timer), Set.of(), 10).again()) {}
    List<RecordedRun> runs = new ArrayList<>(control.history(timer.name(), 1_000));
    Collections.reverse(runs);
    each(runs, became(RunStatus.BEGUN), run -> begins(now, run.id(), run.instant()));
    each(runs, became(RunStatus.SKIPPED), run -> skips(now, run.instant()));
    each(runs, became(RunStatus.TERMINATED), run -> terminates(now, run.id(), run.instant()));
    each(runs, this::wasCancelled, run -> cancels(now, run.id(), run.instant()));
    each(runs, run -> !before.containsKey(run.id()), run -> added(now, run));
    before = runs.stream().collect(Collectors.toMap(RecordedRun::id, Function.identity()));
  }

  private static void each(
      List<RecordedRun> runs, Predicate<RecordedRun> which, Consumer<RecordedRun> what) {
    runs.stream().filter(which).forEach(what);
  }

  private Predicate<RecordedRun> became(RunStatus status) {
    return run -> {
      RecordedRun known = before.get(run.id());
      return known != null && known.status() != status && run.status() == status;
    };
  }

  private boolean wasCancelled(RecordedRun run) {
    RecordedRun known = before.get(run.id());
    return known != null && known.cancelled().isEmpty() && run.cancelled().isPresent();
  }

  private void added(Instant now, RecordedRun run) {
    switch (run.status()) {
      case BEGUN -> begins(now, run.id(), run.instant());
      case WAITING -> waits(now, run.instant());
      case SKIPPED -> skips(now, run.instant());
      default -> throw new IllegalStateException(run.toString());
    }
  }
}
