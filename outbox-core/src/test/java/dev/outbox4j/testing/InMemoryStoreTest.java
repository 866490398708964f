package dev.outbox4j.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.DeadLetterWriter;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.test.SettableClock;
import dev.outbox4j.test.internal.StoredRow;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class InMemoryStoreTest extends OutboxStoreContract {
  private final SettableClock clock = new SettableClock();
  private final InMemoryStore store = new InMemoryStore(clock);
  private final List<String> heard = new ArrayList<>();

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

  @BeforeEach
  void listen() {
    store.notifications().listen(store.channel(), new Recorder(heard));
  }

  @Override
  protected Held lock(long id) {
    store.lock(id);
    return () -> store.unlock(id);
  }

  @Override
  protected Held openTransaction() {
    long number = store.openTransaction();
    return () -> store.endTransaction(number);
  }

  @Override
  protected Held refuseLease(long id) {
    store.refuseLease(id);
    return () -> store.mend(id);
  }

  @Override
  protected Held slowClaims(Duration cost) {
    store.claimCost(range -> cost);
    return () -> store.claimCost(range -> Duration.ZERO);
  }

  @Override
  protected List<String> heard() {
    List<String> payloads = List.copyOf(heard);
    heard.clear();
    return payloads;
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
    assertThat(writer.write(List.of(letter(stale))).done()).isEmpty();
    store.lock(lease.id());
    assertThat(writer.write(List.of(letter(lease))).busy()).containsExactly(lease.id());
    store.unlock(lease.id());
    assertThat(writer.write(List.of(letter(lease))).done()).containsExactly(lease.id());

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
  void aWriteThatIsToldToFailFailsAndChangesNothing() {
    publish("orders", 2);
    List<LeaseRef> leases = leases(claim(2, "orders"));
    store.failWrites(leases.get(1).id(), Fault.ROW);

    assertThatThrownBy(() -> store.ack(leases))
        .isInstanceOfSatisfying(
            OutboxStoreException.class,
            failure -> assertThat(failure.fault()).isEqualTo(Fault.ROW));
    assertThat(store.rows()).hasSize(2);
    store.mend(leases.get(1).id());
    assertThat(store.ack(leases).done()).hasSize(2);
    assertThat(store.calls("ack")).isEqualTo(2);
    assertThat(store.calls("renew")).isZero();
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
