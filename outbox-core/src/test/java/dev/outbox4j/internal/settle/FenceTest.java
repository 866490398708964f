package dev.outbox4j.internal.settle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Delivery;
import dev.outbox4j.FailureReason;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.internal.EngineThreads;
import dev.outbox4j.internal.state.EngineParts;
import dev.outbox4j.internal.state.Events;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.Settlement;
import dev.outbox4j.internal.state.Shared;
import dev.outbox4j.testing.CapturedLogs;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What is said of a row that a write did not find. */
class FenceTest {
  private final List<String> told = new CopyOnWriteArrayList<>();
  private final EngineThreads threads =
      new EngineThreads("orders", FenceTest.class.getClassLoader());
  private final Events events = new Events("orders", threads, List.of(new Observer()));
  private final Shared shared = EngineParts.shared(threads, events, EngineParts.MINUTE);
  private final CapturedLogs logs = new CapturedLogs();

  @BeforeEach
  void start() {
    events.start();
  }

  @AfterEach
  void stop() {
    events.stop(System.nanoTime() + TimeUnit.SECONDS.toNanos(10));
    logs.close();
  }

  @Test
  void aRowThatIsGoneUnderALiveLeaseIsWarnedOfWithWhatToLookFor() {
    HeldRow row = row(System.nanoTime());
    Fence.reportMissing(shared, row, Phase.ACK);
    String text =
        "row "
            + row.id()
            + " of queue 'orders' was not there to be written, though its lease has not run out:"
            + " look for a trigger or rule of yours that drops the write, for somebody who changed"
            + " the row, and whether a transactional handler has a pool of another database than"
            + " the store's";
    assertThat(logs.lines())
        .filteredOn(line -> line.startsWith("WARN"))
        .singleElement()
        .asString()
        .endsWith("[orders] ack: " + text);
    assertThat(shared.health().lastFailure().text()).isEqualTo("ack: " + text);
    await().until(() -> told.equals(List.of("lost ACK " + row.id())));
  }

  @Test
  void aRowWhoseLeaseHasRunOutMayBeAnothersAndIsOnlyToldToObservers() {
    HeldRow row = row(System.nanoTime() - EngineParts.MINUTE.toNanos());
    Fence.reportMissing(shared, row, Phase.RETRY);
    assertThat(logs.lines())
        .noneMatch(line -> line.startsWith("WARN") || line.startsWith("ERROR"))
        .anyMatch(line -> line.endsWith("lease lost, found while writing RETRY"));
    assertThat(shared.health().lastFailure()).isNull();
    await().until(() -> told.equals(List.of("lost RETRY " + row.id())));
  }

  @Test
  void aDeadLetterWhoseAnswerWasLostIsSaidToHaveLeftTheOutbox() {
    HeldRow row = row(System.nanoTime());
    row.start(System.nanoTime());
    EngineParts.decide(
        row, new Settlement.DeadLetter(FailureReason.REJECTED, 3, null, "it is bad"));
    row.outcomeUnknown = true;
    Fence.reportMissing(shared, row, Phase.DEAD_LETTER);
    assertThat(logs.lines())
        .anyMatch(line -> line.endsWith("an earlier DEAD_LETTER may have taken effect"))
        .filteredOn(line -> line.startsWith("ERROR"))
        .singleElement()
        .asString()
        .contains("message " + row.id() + " of queue 'orders'")
        .contains("has left the outbox, by a statement whose answer was lost")
        .endsWith("it is bad");
    await().until(() -> told.equals(List.of("unknown DEAD_LETTER " + row.id())));
  }

  private HeldRow row(long claimedAt) {
    return EngineParts.claim(
            new InMemoryStore(Clock.systemUTC()),
            shared.registry(),
            1,
            EngineParts.MINUTE,
            claimedAt)
        .get(0);
  }

  private final class Observer implements SubscriberEvents {
    @Override
    public void leaseLost(String subscriber, Delivery delivery, Phase phase) {
      told.add("lost " + phase + " " + delivery.id());
    }

    @Override
    public void outcomeUnknown(String subscriber, Delivery delivery, Phase phase) {
      told.add("unknown " + phase + " " + delivery.id());
    }
  }
}
