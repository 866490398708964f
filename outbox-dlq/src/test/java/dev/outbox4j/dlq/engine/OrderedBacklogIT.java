package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.BucketStore;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What an ordered subscriber asks of the server, and remembers, while much waits for it. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class OrderedBacklogIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();
  private static final Duration SOON = Duration.ofSeconds(60);

  private static final int WORKERS = 4;

  private final TestDatabase database;
  private final Queue<Integer> counted = new ConcurrentLinkedQueue<>();
  private final Queue<BucketStore.ReadRequest> requests = new ConcurrentLinkedQueue<>();
  private final AtomicInteger fallenDue = new AtomicInteger();
  private final AtomicInteger handled = new AtomicInteger();
  private EngineFixture engine;
  private String queue;

  OrderedBacklogIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 12);
    queue = "ordered-backlog-" + QUEUES.incrementAndGet();
    OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
  }

  @AfterEach
  void tearDown() {
    engine.close();
    database.update("delete from outbox where queue = ?", queue);
  }

  private OutboxSubscriber.Builder subscriber() {
    return engine
        .subscriber(queue)
        .ordered()
        .workers(WORKERS)
        .store(WatchedBuckets.of(engine.pool, database.table(), this::watch));
  }

  private Object watch(String method, Object argument, Callable<Object> real) throws Exception {
    Object result = real.call();
    if (method.equals("count")) {
      counted.add(((List<?>) argument).size());
    }
    if (argument instanceof BucketStore.ReadRequest request) {
      requests.add(request);
      if (!request.due().isEmpty()) {
        fallenDue.addAndGet(((BucketStore.Read) result).rows().size());
      }
    }
    return result;
  }

  private static boolean isLookBack(BucketStore.ReadRequest request) {
    return !request.sweep().isEmpty() && request.timeLimit() == null;
  }

  private void publish(int keys, int each) {
    for (int i = 0; i < each; i++) {
      engine.inTransaction(
          IntStream.range(0, keys)
              .mapToObj(
                  key -> OutboxMessage.to(queue).type("t").orderingKey("k" + key).body("x").build())
              .toList());
    }
  }

  @Test
  void aBacklogWhoseTransactionsHaveEndedIsReadWithoutLookingBack() {
    int most = 40_000;
    publish(1_000, most / 1_000);
    Semaphore permits = new Semaphore(0);
    engine.start(
        subscriber()
            .otherwise(
                (payload, delivery) -> {
                  permits.acquire();
                  handled.incrementAndGet();
                }));
    // its ids settle with the second mark, and a walk that is begun after it
    await().atMost(SOON).until(() -> releaseSome(permits) && hasSettled());
    requests.clear();
    permits.release(most);

    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    List<BucketStore.ReadRequest> ofBacklog = requests.stream().limit(requests.size() / 2).toList();
    assertThat(ofBacklog).as("requests").hasSizeGreaterThan(10);
    assertThat(ofBacklog).noneMatch(OrderedBacklogIT::isLookBack);
    assertThat(handled).hasValue(most);
  }

  private boolean releaseSome(Semaphore permits) {
    permits.release(20);
    return true;
  }

  /** Reads that bring rows look back until then. */
  private boolean hasSettled() {
    List<BucketStore.ReadRequest> last =
        requests.stream().skip(Math.max(0, requests.size() - 12)).toList();
    return requests.stream().filter(BucketStore.ReadRequest::mark).count() >= 2
        && last.stream().noneMatch(OrderedBacklogIT::isLookBack);
  }

  @Test
  void afterAKillDeliveriesAreCountedFewAtATimeAtFirstAndThenMany() {
    int most = 8_000;
    publish(1_000, most / 1_000);
    database.update("update outbox_buckets set counted_up_to = 1000000000 where queue = ?", queue);
    engine.start(
        subscriber()
            .otherwise(
                (payload, delivery) -> {
                  assertThat(delivery.deliveries()).isOne();
                  handled.incrementAndGet();
                }));

    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(handled).hasValue(most);
    List<Integer> sizes = List.copyOf(counted);
    assertThat(sizes.stream().mapToInt(Integer::intValue).sum()).isEqualTo(most);
    assertThat(sizes.get(0)).isLessThanOrEqualTo(4 * WORKERS);
    assertThat(sizes).as("statements").hasSizeLessThan(most / (4 * WORKERS) / 4);
  }

  @Test
  void noMoreIsLookedForThanCanBeReadSoon() {
    int most = 100_000;
    Semaphore permits = new Semaphore(0);
    database.update(
        """
        insert into outbox (queue, type, ordering_key, payload, available_at)
        select ?, 't', 'k' || n, '', clock_timestamp() + interval '15 seconds' from generate_series(1, ?) n
        """,
        queue,
        most);
    engine.start(
        subscriber()
            .otherwise(
                (payload, delivery) -> {
                  if (delivery.orderingKey().isPresent()) {
                    permits.acquire();
                  }
                  handled.incrementAndGet();
                }));
    int above = 640; // these are read, and so their buckets up to here
    engine.publish(queue, "t", above);
    await().atMost(SOON).until(() -> handled.get() == above);

    await()
        .atMost(SOON)
        .until(
            () -> {
              permits.release(200); // for some seconds, in which it is read time and again
              return handled.get() >= above + 15_000;
            });
    // what is done, as much as may be known, and one look at all 64 buckets
    assertThat(fallenDue.get()).isLessThan(handled.get() + 10_000 + 64 * 500).isLessThan(most);

    permits.release(most);
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(handled).hasValue(most + above);
  }
}
