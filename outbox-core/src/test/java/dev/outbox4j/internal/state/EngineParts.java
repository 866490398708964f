package dev.outbox4j.internal.state;

import dev.outbox4j.AckMode;
import dev.outbox4j.ExceptionRenderer;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.Warnings;
import dev.outbox4j.internal.settings.HandlerTable;
import dev.outbox4j.internal.settings.SubscriberSettings;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.History;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.ScanBound;
import dev.outbox4j.spi.StoredMessage;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** What single parts of the engine are given in tests. */
public final class EngineParts {
  public static final Instant SERVER = Instant.parse("2026-01-01T00:00:00Z");
  public static final Duration MINUTE = Duration.ofMinutes(1);

  private EngineParts() {}

  /** Settings of a subscriber of one queue, whose handlers are never run. */
  public static SubscriberSettings settings(
      OutboxStore store, SubscriberSettings.Claiming claiming) {
    return new SubscriberSettings(
        "orders",
        List.of("orders"),
        store,
        null,
        null,
        new HandlerTable.Builder().build(),
        List.of(),
        new SubscriberSettings.Work(1, null, false, null),
        claiming,
        failing(),
        new SubscriberSettings.Stopping(MINUTE, false));
  }

  /** What happens on failure in a subscriber that was told nothing about it. */
  public static SubscriberSettings.Failing failing() {
    return new SubscriberSettings.Failing(
        RetryPolicy.standard(),
        Map.of(),
        false,
        AckMode.AUTO,
        SubscriberSettings.Deliveries.UNLIMITED,
        ExceptionRenderer.stackTrace(),
        1_000,
        false,
        false);
  }

  public static Shared shared(EngineThreads threads, Events events, Duration lease) {
    return shared(threads, events, new ConnectionBudget(lease, Duration.ofSeconds(15), 2));
  }

  public static Shared shared(EngineThreads threads, Events events, ConnectionBudget connections) {
    return shared(threads, events, connections, Clock.systemUTC());
  }

  /** With a clock by which health tells since when something fails. */
  public static Shared shared(
      EngineThreads threads, Events events, ConnectionBudget connections, Clock clock) {
    HeldRows registry = new HeldRows();
    return new Shared(
        "orders",
        "orders/1",
        threads,
        connections,
        registry,
        new Room(registry, new Buffer(), new Permits(1), new Prefetch(1, 100), 100, 1 << 20),
        new EngineHealth("orders", events, clock),
        events,
        new Warnings("orders"),
        PausedQueues.none());
  }

  /** Ends a row's run, if it has one, as a handler does that gives this outcome. */
  public static void decide(HeldRow row, Settlement settlement) {
    HandlerRun run = row.run();
    if (run != null) {
      run.end();
    }
    row.decide(settlement);
  }

  /** Claims new rows, as if the claim had been sent at an instant. */
  public static List<HeldRow> claim(
      InMemoryStore store, HeldRows registry, int count, Duration lease, long sentAt) {
    return claim(store, registry, "orders", count, lease, sentAt);
  }

  /** Claims new rows of one queue, as if the claim had been sent at an instant. */
  public static List<HeldRow> claim(
      InMemoryStore store,
      HeldRows registry,
      String queue,
      int count,
      Duration lease,
      long sentAt) {
    for (int i = 0; i < count; i++) {
      store.publish(OutboxMessage.to(queue).body("x").build());
    }
    ClaimRequest request =
        new ClaimRequest(
            queue,
            ClaimRequest.Range.ALL,
            count,
            1 << 20,
            lease,
            "me",
            ClaimRequest.Idle.UNCHANGED,
            null);
    ClaimedBatch batch =
        new ClaimedBatch(queue, store.claim(request).rows(), sentAt, lease.toNanos());
    registry.add(batch);
    List<HeldRow> rows = new ArrayList<>();
    for (HeldRow row = batch.next(); row != null; row = batch.next()) {
      rows.add(row);
    }
    return rows;
  }

  public static ClaimedRow row(ScanBound place) {
    return row(place, "x", new History(1, 0, Duration.ZERO, Duration.ZERO));
  }

  public static ClaimedRow row(ScanBound place, String body, History history) {
    return new ClaimedRow(
        new LeaseRef("orders", place.id(), 1),
        new StoredMessage(
            "t",
            "key",
            "timer",
            Payload.ofText(body),
            Map.of("h", "v"),
            SERVER,
            place.availableAt(),
            null),
        history);
  }
}
