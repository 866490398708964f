package dev.outbox4j.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.QueueScan;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.DeadLetterWriter;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.OutboxStore;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class InMemoryStoreTest extends OutboxStoreContract {
  private final SettableClock clock = new SettableClock();
  private final InMemoryStore store = new InMemoryStore(clock);

  @Override
  protected OutboxStore store() {
    return store;
  }

  @Override
  protected long publish(OutboxMessage message) {
    return store.publish(message).orElseThrow();
  }

  @Override
  protected void pass(Duration time) {
    clock.advance(time);
  }

  @Override
  protected Set<Long> liveIds() {
    return store.rows().stream().map(StoredRow::id).collect(Collectors.toSet());
  }

  @Test
  void aTimerIdIsPublishedOnceWhileItsRowLives() {
    OutboxMessage timer = message("orders").timerId("t").build();

    assertThat(store.publish(timer)).isPresent();
    assertThat(store.publish(timer)).isEmpty();
    store.ack(leases(claim(1, "orders")));
    assertThat(store.publish(timer)).isPresent();
  }

  @Test
  void deadLettersTakeTheRowUnderItsLease() {
    publish("orders", 1);
    LeaseRef lease = only(claim(1, "orders")).lease();
    DeadLetterWriter writer = store.deadLetters().bind(store);

    LeaseRef stale = new LeaseRef("orders", lease.id(), 7);
    assertThat(writer.write(List.of(letter(stale)))).isEmpty();
    assertThat(writer.write(List.of(letter(lease)))).containsExactly(lease.id());

    assertThat(store.rows()).isEmpty();
    assertThat(store.deadRows())
        .singleElement()
        .satisfies(
            dead -> {
              assertThat(dead.row().id()).isEqualTo(lease.id());
              assertThat(dead.reason()).isEqualTo(FailureReason.REJECTED);
            });
  }

  @Test
  void publishingNotifiesOnlyWhileSomeoneSleepsPastTheDueInstant() {
    List<String> heard = new ArrayList<>();
    store.notifications().listen(store.channel(), new Recorder(heard));

    publish("orders", 1);
    claim(request(9, Idle.sleep(Duration.ofSeconds(10)), new QueueScan("orders", null)));
    publish(message("orders").deliverIn(Duration.ofSeconds(11)).build());
    assertThat(heard).isEmpty();
    publish("orders", 1);
    assertThat(heard).containsExactly("orders");
    claim(request(9, Idle.AWAKE, new QueueScan("orders", null)));
    publish("orders", 1);
    assertThat(heard).hasSize(1);
  }

  private static DeadLetterEntry letter(LeaseRef lease) {
    return new DeadLetterEntry(lease, FailureReason.REJECTED, 1, "no");
  }

  private record Recorder(List<String> heard) implements NotificationSource.Listener {
    @Override
    public void connected() {}

    @Override
    public void notified(String payload) {
      heard.add(payload);
    }

    @Override
    public void disconnected(Throwable cause) {}
  }
}
