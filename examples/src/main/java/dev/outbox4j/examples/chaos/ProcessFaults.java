package dev.outbox4j.examples.chaos;

import dev.outbox4j.examples.chaos.Tally.Count;
import dev.outbox4j.examples.chaos.Watch.Since;
import java.io.IOException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** Faults of the processes and of what they run in. */
final class ProcessFaults {
  /** Whose rows show that they are handled elsewhere: the others wait, fail or hang. */
  private static final String PROMPT_KINDS = "('NORMAL', 'SLOW')";

  private static final Duration TIME_TO_HOLD_ROWS = Duration.ofSeconds(20);

  /** A process has some in every other burst of the limited queue. */
  private static final Duration TIME_TO_HOLD_SLOTS = Duration.ofSeconds(15);

  /** What the server had received before a process was frozen is carried out. */
  private static final Duration UNDER_WAY = Duration.ofMillis(500);

  private static final Duration DEAD_POOL = Fault.Length.BRIEF.time();

  private final Scene scene;

  ProcessFaults(Scene scene) {
    this.scene = scene;
  }

  /** Rows under a lease of one process, each with its token. */
  private record Held(String owner, List<String> rows) {
    String ids() {
      return "{"
          + String.join(",", rows.stream().map(row -> row.substring(0, row.indexOf(' '))).toList())
          + "}";
    }
  }

  Episode killSubscriber() throws IOException, InterruptedException, SQLException {
    String from = scene.watch().now();
    int slot = slotThatHoldsRows();
    Worker victim = scene.fleet().subscriber(slot);
    Held held = freezeWithSlots(victim);
    long slots = slotsOf(victim.name());
    scene.deeds().act(victim::kill);
    Since killed = scene.watch().since();
    scene.report().rowsHeldAtKill(held.rows().size());
    Evidence evidence =
        new Evidence()
            .sign("processes_killed", victim.killed() ? 1 : 0)
            .sign("rows_held", held.rows().size());
    double recovery =
        victim.killed() ? untilHandledElsewhere(held, killed) : scene.watch().untilHandled(killed);
    scene.report().recoveryAfterKill(recovery);
    if (victim.killed() && slots > 0) {
      scene.report().slotsAfterKill(slots, untilOthersHaveSlots(victim.name(), killed));
    }
    scene.ledger().hit(Fault.KILL_SUBSCRIBER.label(), victim.name(), from, scene.watch().now());
    scene.fleet().restoreSubscriber(slot);
    return new Episode(
        new Recovery(recovery, scene.watch().untilAllAreWell(scene.watch().since())), evidence);
  }

  private double untilHandledElsewhere(Held held, Since killed) {
    return scene
        .watch()
        .until(
            () ->
                scene.number(
                        "select count(*) from outbox where "
                            + heldBy(held.owner())
                            + " or id = any(?::bigint[]) and type in "
                            + PROMPT_KINDS,
                        held.ids())
                    == 0,
            "the rows of " + held.owner() + " to be handled elsewhere",
            killed);
  }

  /** What it had leased of the limited queue is leased by others, which takes as many slots. */
  private double untilOthersHaveSlots(String subscriber, Since killed) {
    return scene
        .watch()
        .until(
            () -> slotsOf(subscriber) == 0,
            "the slots of " + subscriber + " to be others'",
            killed);
  }

  private long slotsOf(String subscriber) throws SQLException {
    return scene.number(
        "select count(*) from outbox where queue = ? and " + heldBy(Subscriber.bounded(subscriber)),
        Subscriber.LIMITED_QUEUE);
  }

  private static String heldBy(String subscriber) {
    return "leased_by like '" + subscriber + "/%'";
  }

  private List<String> rowsOf(String subscriber) throws SQLException {
    return scene.texts("select id || ' ' || lease_token from outbox where " + heldBy(subscriber));
  }

  /** Who is in reserve may hold none for long, so a process is chosen that holds some just now. */
  private int slotThatHoldsRows() throws SQLException {
    long until = System.nanoTime() + TIME_TO_HOLD_ROWS.toNanos();
    int slot;
    do {
      slot = scene.random().nextInt(scene.fleet().size());
      if (!rowsOf(scene.fleet().subscriber(slot).name()).isEmpty()) {
        return slot;
      }
      Watch.pause(Duration.ofMillis(20));
    } while (System.nanoTime() < until);
    return slot;
  }

  /** Stops a process at a moment at which it holds rows: to stop it at another proves nothing. */
  private Held freezeWithRows(Worker victim)
      throws IOException, InterruptedException, SQLException {
    long until = System.nanoTime() + TIME_TO_HOLD_ROWS.toNanos();
    while (true) {
      scene.deeds().act(() -> victim.signal("STOP"));
      List<String> rows = rowsOf(victim.name());
      if (!rows.isEmpty() || System.nanoTime() > until) {
        return new Held(victim.name(), rows);
      }
      scene.deeds().act(() -> victim.signal("CONT"));
      Watch.pause(Duration.ofMillis(20));
    }
  }

  /** The same at one at which it has slots, too, if there is one soon. */
  private Held freezeWithSlots(Worker victim)
      throws IOException, InterruptedException, SQLException {
    long until = System.nanoTime() + TIME_TO_HOLD_SLOTS.toNanos();
    while (System.nanoTime() < until) {
      if (slotsOf(victim.name()) > 0) {
        scene.deeds().act(() -> victim.signal("STOP"));
        List<String> rows = rowsOf(victim.name());
        if (!rows.isEmpty() && slotsOf(victim.name()) > 0) {
          return new Held(victim.name(), rows);
        }
        scene.deeds().act(() -> victim.signal("CONT"));
      }
      Watch.pause(Duration.ofMillis(10));
    }
    return freezeWithRows(victim);
  }

  Episode killPublisher() throws IOException, InterruptedException, SQLException {
    Fleet fleet = scene.fleet();
    int slot = scene.random().nextInt(fleet.publisherCount());
    Worker victim = fleet.publisher(slot);
    scene.deeds().act(victim::kill);
    Since killed = scene.watch().since();
    Evidence evidence = new Evidence().sign("processes_killed", victim.killed() ? 1 : 0);
    double recovery = scene.watch().untilHandled(killed);
    if (victim.killed()) {
      long first = fleet.startPublisher(slot);
      scene.watch().until(() -> isPublishing(first), "the new publisher to publish", killed);
    }
    return new Episode(new Recovery(recovery, scene.watch().untilAllAreWell(killed)), evidence);
  }

  private boolean isPublishing(long first) throws SQLException {
    return scene.number(
            "select count(*) from committed where no between ? and ?",
            first,
            first + Publisher.INCARNATION - 1)
        > 0;
  }

  Episode freezeSubscriber() throws IOException, InterruptedException, SQLException {
    Worker victim = scene.fleet().subscriber(slotThatHoldsRows());
    String from = scene.watch().now();
    Held held = freezeWithRows(victim);
    Watch.pause(UNDER_WAY);
    String frozen = scene.watch().now();
    Watch.pause(scene.settings().lease().plusSeconds(2));
    long effects =
        scene.number(
            "select count(*) from handled where owner = ? and at > ?::timestamptz",
            victim.name(),
            frozen);
    List<String> still = rowsOf(victim.name());
    long taken = held.rows().stream().filter(row -> !still.contains(row)).count();
    scene.deeds().act(() -> victim.signal("CONT"));
    Recovery recovery = scene.recovery();
    scene.ledger().hit(Fault.FREEZE_SUBSCRIBER.label(), victim.name(), from, scene.watch().now());
    return new Episode(
        recovery,
        new Evidence()
            .sign("rows_held", held.rows().size())
            .sign("rows_taken_by_others", taken)
            .countersign("effects_meanwhile", effects));
  }

  Episode rollingRestart() throws IOException, InterruptedException, SQLException {
    long stopped = 0;
    for (int slot = 0; slot < scene.fleet().size(); slot++) {
      String name = scene.fleet().subscriber(slot).name();
      if (scene.deeds().stop(scene.fleet(), slot)) {
        stopped++;
        int left = rowsOf(name).size();
        if (left > 0) {
          scene
              .report()
              .breach(name + " left " + left + " rows under its lease after a graceful stop");
        }
      }
      scene.fleet().restoreSubscriber(slot);
    }
    Recovery recovery = scene.recovery();
    return new Episode(
        recovery,
        new Evidence()
            .sign("processes_stopped", stopped)
            .countersign("processes_not_stopped", scene.fleet().size() - stopped));
  }

  Episode deadPool() throws IOException, InterruptedException, SQLException {
    Map<Count, Long> before = scene.fleet().tally();
    scene.deeds().act(() -> scene.fleet().orderSubscribers(Orders.DEAD_POOL));
    Watch.pause(DEAD_POOL);
    scene.deeds().act(() -> scene.fleet().orderSubscribers(Orders.AS_USUAL));
    Recovery recovery = scene.recovery();
    Evidence evidence = new Evidence();
    scene.addCounts(evidence, before, Count.DEAD_CONNECTIONS, Count.STATEMENTS_FAILED);
    return new Episode(recovery, evidence);
  }

  /** Each takes longer than half a lease, so that what waits for a worker is given back. */
  Episode slowHandlers() throws IOException, InterruptedException, SQLException {
    Map<Count, Long> before = scene.fleet().tally();
    scene.deeds().act(() -> scene.fleet().orderSubscribers(Orders.SLOW_HANDLERS));
    Watch.pause(Orders.SLOWNESS.multipliedBy(2));
    scene.deeds().act(() -> scene.fleet().orderSubscribers(Orders.AS_USUAL));
    Recovery recovery = scene.recovery();
    Evidence evidence = new Evidence();
    scene.addCounts(evidence, before, Count.HANDLERS_SLOWED, Count.ROWS_GIVEN_BACK);
    return new Episode(recovery, evidence);
  }
}
