package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.RateLimit;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** A subscriber begins no more messages of a queue than its rate allows. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class RateLimitsIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();
  private static final Duration SOON = Duration.ofSeconds(60);

  private final TestDatabase database;
  private final Permits permits = new Permits();
  private final AtomicInteger begun = new AtomicInteger();
  private EngineFixture engine;
  private String queue;

  RateLimitsIT(TestDatabase database) {
    this.database = database;
  }

  /** Permits that the test gives. */
  private static final class Permits implements RateLimit {
    private final AtomicInteger left = new AtomicInteger();
    private volatile boolean broken;

    @Override
    public int available() {
      if (broken) {
        throw new IllegalStateException("no connection to the limiter");
      }
      return left.get();
    }

    @Override
    public void take(int messages) {
      left.addAndGet(-messages);
    }

    @Override
    public Duration untilNext() {
      return Duration.ofMillis(20);
    }
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 8);
    queue = "rated-" + QUEUES.incrementAndGet();
  }

  @AfterEach
  void tearDown() {
    engine.close();
    database.update("delete from outbox where queue = ?", queue);
  }

  private OutboxSubscriber.Builder rated() {
    return engine
        .subscriber(queue)
        .name("rated")
        .workers(8)
        .rateLimit(queue, permits)
        .otherwise(
            (payload, delivery) -> {
              begun.incrementAndGet();
            });
  }

  private void staysAt(int value) {
    await()
        .during(Duration.ofSeconds(1))
        .atMost(SOON)
        .untilAsserted(() -> assertThat(begun).hasValue(value));
  }

  @Test
  void eachMessageTakesAPermitAndTheOthersWaitInTheTable() {
    engine.start(rated());
    engine.publish(queue, "t", 100);
    staysAt(0);

    permits.left.addAndGet(3);
    await().atMost(SOON).until(() -> begun.get() == 3);
    staysAt(3);
    assertThat(permits.left).hasValue(0);
    assertThat(
            database.one(
                Long.class,
                "select count(*) from outbox where queue = ? and deliveries_count = 0",
                queue))
        .isEqualTo(97);

    permits.left.addAndGet(1_000);
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    assertThat(permits.left).hasValue(903);
  }

  @Test
  void aRunThatIsRetriedTakesAnotherPermit() {
    permits.left.set(10);
    engine.start(
        engine
            .subscriber(queue)
            .rateLimit(queue, permits)
            .retry(RetryPolicy.constant(Duration.ofMillis(1)).attempts(4))
            .on(
                "fails",
                String.class,
                (text, delivery) -> {
                  if (begun.incrementAndGet() > 0) {
                    throw new IllegalStateException("always");
                  }
                }));
    engine.publish(queue, "fails", "x");

    await().atMost(SOON).until(() -> engine.deadLetters(queue) == 1);
    assertThat(begun).hasValue(4);
    assertThat(permits.left).hasValue(6);
  }

  @Test
  void anIdleQueueTakesNoPermits() {
    permits.left.set(5);
    OutboxSubscriber subscriber = engine.start(rated());
    await().atMost(SOON).until(() -> engine.events.claims.get() > 5);
    assertThat(permits.left).hasValue(5);
    assertThat(subscriber.health().healthy()).isTrue();
  }

  @Test
  void whatOneProcessMayNotBeginAnotherDoes() {
    engine.start(rated());
    engine.publish(queue, "t", 20);
    staysAt(0);
    AtomicInteger elsewhere = new AtomicInteger();
    engine.start(
        engine
            .subscriber(queue)
            .name("other")
            .otherwise(
                (payload, delivery) -> {
                  elsewhere.incrementAndGet();
                }));

    await().atMost(SOON).until(() -> elsewhere.get() == 20);
    engine.publish(queue, "t", 20);
    await().atMost(SOON).until(() -> elsewhere.get() == 40);
    assertThat(begun).hasValue(0);
  }

  @Test
  void aLimitThatThrowsIsAFailedClaimUntilItNoLongerDoes() {
    permits.left.set(100);
    permits.broken = true;
    OutboxSubscriber subscriber = engine.start(rated());
    engine.publish(queue, "t", 5);
    await()
        .atMost(SOON)
        .untilAsserted(
            () ->
                assertThat(subscriber.health().lastFailure())
                    .hasValueSatisfying(
                        words -> assertThat(words).contains("no connection to the limiter")));
    assertThat(subscriber.health().healthy()).isFalse();
    assertThat(begun).hasValue(0);

    permits.broken = false;
    await().atMost(SOON).until(() -> engine.rows(queue) == 0);
    await().atMost(SOON).until(() -> subscriber.health().healthy());
  }

  @Test
  void aRateOfAQueueThatIsNotReadOrOrderedIsRefused() {
    assertThatThrownBy(() -> rated().rateLimit("x", permits).build())
        .hasMessageContaining("rateLimit(...) is set for queue 'x'");
    assertThatThrownBy(() -> rated().ordered().build())
        .hasMessageContaining("rateLimit(...) and ordered()");
  }
}
