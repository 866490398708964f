package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How the queues of one subscriber share it. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class WeightsIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();
  private static final Duration SOON = Duration.ofSeconds(60);
  private static final int BACKLOG = 6_000;

  private final TestDatabase database;
  private final Queue<String> handled = new ConcurrentLinkedQueue<>();
  private final CountDownLatch bothWait = new CountDownLatch(1);
  private EngineFixture engine;
  private String heavy;
  private String light;

  WeightsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 8);
    heavy = "heavy-" + QUEUES.incrementAndGet();
    light = "light-" + QUEUES.get();
  }

  @AfterEach
  void tearDown() {
    bothWait.countDown();
    engine.close();
    database.update("delete from outbox where queue in (?, ?)", heavy, light);
  }

  private OutboxSubscriber.Builder subscriber() {
    return engine
        .subscriber(light)
        .queues(heavy)
        .batchSize(50)
        .workers(4)
        .otherwise(
            (payload, delivery) -> {
              bothWait.await();
              handled.add(delivery.queue());
            });
  }

  private long ofHeavy(int first) {
    return handled.stream().limit(first).filter(heavy::equals).count();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aQueueOfFourTimesTheWeightGetsAboutFourTimesAsManyMessagesThrough(boolean ordered) {
    OutboxSubscriber.Builder builder = subscriber().weight(heavy, 4);
    if (ordered) {
      OrderedMigrations.of("public", "outbox", heavy, light).migrate(database.plain());
      builder.ordered();
    }
    engine.publish(light, "t", BACKLOG);
    engine.publish(heavy, "t", BACKLOG);
    engine.start(builder);
    bothWait.countDown();

    await().atMost(SOON).until(() -> handled.size() == 2 * BACKLOG);
    int whileBothWait = BACKLOG;
    assertThat(ofHeavy(whileBothWait))
        .isBetween(whileBothWait * 6L / 10, whileBothWait * 95L / 100);
  }

  @Test
  void whatAQueueDoesNotNeedTheOthersGet() {
    engine.publish(light, "t", 500);
    engine.start(subscriber().weight(heavy, 100));
    bothWait.countDown();

    await().atMost(SOON).until(() -> handled.size() == 500);
    engine.publish(heavy, "t", 10);
    await().atMost(SOON).until(() -> handled.size() == 510);
  }

  @Test
  void aWeightThatCannotBeIsRefused() {
    assertThatThrownBy(() -> subscriber().weight(heavy, 0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("weight")
        .hasMessageContaining("1 to 100");
    assertThatThrownBy(() -> subscriber().weight("other", 2).build())
        .hasMessageContaining("weight(...) is set for queue 'other'")
        .hasMessageContaining("queues(...)");
  }
}
