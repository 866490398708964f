package dev.outbox4j.internal;

import dev.outbox4j.AckMode;
import dev.outbox4j.ExceptionRenderer;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.History;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.ScanBound;
import dev.outbox4j.spi.StoredMessage;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** What single parts of the engine are given in tests. */
final class EngineParts {
  static final Instant SERVER = Instant.parse("2026-01-01T00:00:00Z");
  static final Duration MINUTE = Duration.ofMinutes(1);

  private EngineParts() {}

  /** Settings of a subscriber of one queue, whose handlers are never run. */
  static SubscriberSettings settings(OutboxStore store, SubscriberSettings.Claiming claiming) {
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
  static SubscriberSettings.Failing failing() {
    return new SubscriberSettings.Failing(
        RetryPolicy.standard(),
        Map.of(),
        false,
        AckMode.AUTO,
        SubscriberSettings.Deliveries.UNLIMITED,
        ExceptionRenderer.stackTrace(),
        1_000,
        false);
  }

  static Engine.Shared shared(EngineThreads threads, Events events, Duration lease) {
    return shared(threads, events, new ConnectionBudget(lease, Duration.ofSeconds(15), 2));
  }

  static Engine.Shared shared(EngineThreads threads, Events events, ConnectionBudget connections) {
    InFlightRegistry registry = new InFlightRegistry();
    return new Engine.Shared(
        "orders",
        threads,
        connections,
        registry,
        new Room(registry, new Buffer(), new Permits(1), new Prefetch(1, 100), 100, 1 << 20),
        new EngineHealth("orders", events),
        events,
        new Warnings("orders"));
  }

  /** Claims new rows, as if the claim had been sent at an instant. */
  static List<InFlight> claim(
      InMemoryStore store, InFlightRegistry registry, int count, Duration lease, long sentAt) {
    return claim(store, registry, "orders", count, lease, sentAt);
  }

  /** Claims new rows of one queue, as if the claim had been sent at an instant. */
  static List<InFlight> claim(
      InMemoryStore store,
      InFlightRegistry registry,
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
    List<InFlight> rows = new ArrayList<>();
    for (InFlight row = batch.next(); row != null; row = batch.next()) {
      rows.add(row);
    }
    return rows;
  }

  static ClaimedRow row(ScanBound place) {
    return row(place, "x", new History(1, 0, Duration.ZERO, Duration.ZERO));
  }

  static ClaimedRow row(ScanBound place, String body, History history) {
    return new ClaimedRow(
        new LeaseRef("orders", place.id(), 1),
        new StoredMessage(
            "t",
            "key",
            "timer",
            Payload.ofText(body),
            Map.of("h", "v"),
            SERVER,
            place.availableAt()),
        history);
  }
}
