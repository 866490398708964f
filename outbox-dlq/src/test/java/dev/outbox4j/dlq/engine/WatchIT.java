package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.SubscriberHealth.Listener;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;

/** Several subscribers of one queue: one is notified, and what it cannot take wakes the next. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class WatchIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();

  private final TestDatabase database;
  private final CountDownLatch go = new CountDownLatch(1);
  private final Map<String, AtomicInteger> handledBy = new ConcurrentHashMap<>();
  private final List<OutboxSubscriber> subscribers = new ArrayList<>();
  private EngineFixture engine;
  private String queue;

  WatchIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 20);
    queue = "watch-" + QUEUES.incrementAndGet();
  }

  @AfterEach
  void tearDown() {
    go.countDown();
    engine.close();
  }

  @Test
  void ofFiveIdleSubscribersOneIsNotifiedOncePerMessageAndOneClaimsInTheEnd() throws SQLException {
    startAsleep(5);
    await().until(() -> settled());
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("listen " + database.table().channel());
      for (int i = 0; i < 50; i++) {
        int handled = handled();
        engine.publish(queue, "quick", "x");
        await().until(() -> handled() == handled + 1);
      }
      PGNotification[] sent = connection.unwrap(PGConnection.class).getNotifications(10_000);
      assertThat(Arrays.stream(sent).map(PGNotification::getParameter).filter(queue::equals))
          .as("notifications for whoever is on watch")
          .hasSizeBetween(41, 50);
    }
    assertThat(handledBy.values().stream().mapToInt(AtomicInteger::get).max().orElseThrow())
        .as("messages handled by the one on watch, but for what others found by polling")
        .isGreaterThan(40);
    assertThat(onWatch()).isEqualTo(1);
  }

  @Test
  void whenTheOneOnWatchHasNoRoomTheNextIsWokenAndNoMessageWaitsForAPoll() {
    startAsleep(4);
    for (int i = 0; i < 16; i++) { // four workers each
      engine.publish(queue, "slow", "x");
    }
    await().until(() -> handled() == 16);
    assertThat(handledBy).hasSize(4);
  }

  @Test
  void whenTheOneOnWatchStopsAnotherIsWokenForTheNextMessage() {
    startAsleep(3);
    String first =
        database.one(
            String.class,
            "select subscriber from outbox_sleepers where queue = ? and on_watch",
            queue);
    OutboxSubscriber watching =
        subscribers.stream()
            .filter(each -> first.startsWith(each.name().substring(0, 7)))
            .findFirst()
            .orElseThrow();
    watching.stop();
    await().until(() -> onWatch() == 1);
    await().until(() -> settled());
    engine.publish(queue, "quick", "x");
    await().until(() -> handled() == 1);
  }

  @Test
  void whenTheOneOnWatchHasDiedOthersFindMessagesAtTheirPollOfASecond() {
    database.update(
        "insert into outbox_sleepers (queue, subscriber, wake_at, on_watch, until)"
            + " values (?, '0-killed', now() + interval '1 hour', true, now() + interval '1 hour')",
        queue);
    for (String name : List.of("a-" + queue, "b-" + queue)) {
      subscribers.add(
          engine.start(
              OutboxSubscriber.builder(queue)
                  .deleteTerminalFailures()
                  .name(name)
                  .store(PostgresOutbox.on(engine.pool, database.table()).store())
                  .listen(PgjdbcListen.on(database.plain()))
                  .on(
                      "quick",
                      (payload, delivery) -> {
                        ran(name);
                      })));
    }
    await()
        .until(
            () ->
                database.one(
                        Long.class,
                        "select count(*) from outbox_sleepers where queue = ? and not on_watch"
                            + " and until > now()",
                        queue)
                    == 2);
    for (int i = 0; i < 3; i++) {
      int handled = handled();
      engine.publish(queue, "quick", "x");
      await().atMost(Duration.ofSeconds(2)).until(() -> handled() == handled + 1);
    }
    assertThat(onWatch()).as("the dead one's, until it runs out").isEqualTo(1);
  }

  private void startAsleep(int count) {
    for (int i = 0; i < count; i++) {
      String name = (char) ('a' + i) + "-" + queue;
      subscribers.add(
          engine.start(
              OutboxSubscriber.builder(queue)
                  .deleteTerminalFailures()
                  .name(name)
                  .store(PostgresOutbox.on(engine.pool, database.table()).store())
                  .listen(PgjdbcListen.on(database.plain()))
                  .poll(Duration.ofMillis(10), Duration.ofSeconds(40))
                  .pollWithoutListener(Duration.ofSeconds(40)) // so that no poll helps
                  .gracefulTimeout(Duration.ofSeconds(2))
                  .on(
                      "quick",
                      (payload, delivery) -> {
                        ran(name);
                      })
                  .on(
                      "slow",
                      (payload, delivery) -> {
                        ran(name);
                        go.await();
                      })));
      // of several that begin at once more than one may be on watch until their next poll
      await().until(() -> onWatch() == 1);
    }
    await()
        .until(
            () -> subscribers.stream().allMatch(each -> each.health().listener() == Listener.UP));
    await()
        .until(
            () ->
                database.one(
                        Long.class,
                        "select count(*) from outbox_sleepers where queue = ? and until > now()",
                        queue)
                    == count);
    assertThat(onWatch()).isEqualTo(1);
  }

  private boolean settled() {
    return database.one(
            Long.class,
            "select count(*) from outbox_sleepers where queue = ? and wake_at > now()",
            queue)
        == 1;
  }

  private long onWatch() {
    return database.one(
        Long.class,
        "select count(*) from outbox_sleepers where queue = ? and on_watch and until > now()",
        queue);
  }

  private int handled() {
    return handledBy.values().stream().mapToInt(AtomicInteger::get).sum();
  }

  private void ran(String name) {
    handledBy.computeIfAbsent(name, none -> new AtomicInteger()).incrementAndGet();
  }
}
