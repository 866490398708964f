package dev.outbox4j.test;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.testing.InMemoryStore;
import dev.outbox4j.testing.OutboxStoreContract;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;

/** The contract of all stores, on the outbox in memory as a user has it, but for the faults. */
class InMemoryOutboxContractTest extends OutboxStoreContract {
  private final SettableClock clock = new SettableClock();
  private final InMemoryStore faults = new InMemoryStore(clock);
  private final InMemoryOutbox outbox = new InMemoryOutbox(clock, null, faults);
  private final List<String> heard = new ArrayList<>();

  @Override
  protected OutboxStore store() {
    return outbox.store();
  }

  @Override
  protected long publish(OutboxMessage message) {
    return outbox.publish(message).get(0).rowId().orElseThrow();
  }

  @Override
  protected void pass(Duration time) {
    clock.advance(time);
    heard.clear(); // the clock has told those who sleep to look
  }

  @BeforeEach
  void listen() {
    outbox
        .notifications()
        .listen(
            store().channel(),
            new NotificationSource.Listener() {
              @Override
              public void connected() {}

              @Override
              public void notified(String payload) {
                heard.add(payload);
              }

              @Override
              public void disconnected(Throwable cause) {}
            });
  }

  @Override
  protected Held lock(long id) {
    faults.lock(id);
    return () -> faults.unlock(id);
  }

  @Override
  protected Held openTransaction() {
    long number = faults.openTransaction();
    return () -> faults.endTransaction(number);
  }

  @Override
  protected Held refuseLease(long id) {
    faults.refuseLease(id);
    return () -> faults.mend(id);
  }

  @Override
  protected Held slowClaims(Duration cost) {
    faults.claimCost(range -> cost);
    return () -> faults.claimCost(range -> Duration.ZERO);
  }

  @Override
  protected List<String> heard() {
    List<String> payloads = List.copyOf(heard);
    heard.clear();
    return payloads;
  }

  @Override
  protected Set<Long> liveIds() {
    return outbox.waiting("orders").stream().map(OutboxRow::id).collect(Collectors.toSet());
  }
}
