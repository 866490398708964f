package dev.outbox4j.examples.docs;

import static dev.outbox4j.test.OutboxAssertions.assertThatOutbox;
import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.migrations.SlotMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.resilience4j.Resilience4jRateLimit;
import dev.outbox4j.spi.OutboxStore;
import io.github.resilience4j.ratelimiter.RateLimiter;
import io.github.resilience4j.ratelimiter.RateLimiterConfig;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
@Tag("once")
class LimitsSamplesIT {
  private final TestDatabase database;
  private final HikariDataSource dataSource;
  private final OutboxTable table = OutboxTable.named("outbox");
  private final AtomicInteger printing = new AtomicInteger();
  private final AtomicInteger most = new AtomicInteger();
  private final AtomicInteger printed = new AtomicInteger();
  private final AtomicInteger mails = new AtomicInteger();
  private CyclicBarrier together = new CyclicBarrier(1);

  LimitsSamplesIT(TestDatabase database) {
    this.database = database;
    this.dataSource = database.pool(8);
  }

  private void print(String label, Delivery delivery) throws Exception {
    most.accumulateAndGet(printing.incrementAndGet(), Math::max);
    together.await(30, TimeUnit.SECONDS);
    printing.decrementAndGet();
    printed.incrementAndGet();
  }

  private void mail(String mail, Delivery delivery) {
    mails.incrementAndGet();
  }

  private void publish(List<OutboxMessage> messages) throws SQLException {
    try (Connection tx = database.plain().getConnection()) {
      tx.setAutoCommit(false);
      PostgresOutbox.publisher(table).build().publish(tx, messages);
      tx.commit();
    }
  }

  private OutboxSubscriber subscriber(OutboxStore store) {
    // tag::subscriber
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("labels")
            .workers(16)
            .concurrencyLimit("labels", 5)
            .store(store)
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .on("label.wanted", String.class, this::print)
            .build();
    // end::subscriber
    return subscriber;
  }

  @Test
  void noMoreThanTheLimitAreHandledAtOnceByTwoSubscribers() throws SQLException {
    together = new CyclicBarrier(5);
    // tag::migrate
    SlotMigrations.of("public", "outbox").migrate(dataSource);
    // end::migrate
    OutboxStore store = PostgresOutbox.on(dataSource, table).store();
    try (OutboxSubscriber one = subscriber(store);
        OutboxSubscriber other = subscriber(store)) {
      one.start();
      other.start();
      publish(labels(100));
      assertThatOutbox(dataSource, table).awaitDrained("labels", Duration.ofSeconds(30));
    }
    assertThat(printed).hasValue(100);
    assertThat(most).hasValue(5);
  }

  private OutboxSubscriber ofTwoQueues(OutboxStore store) {
    // tag::process
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("labels")
            .queues("mails")
            .workers(16)
            .concurrencyLimitPerProcess("labels", 12)
            .store(store)
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .on("label.wanted", String.class, this::print)
            .on("mail.wanted", String.class, this::mail)
            .build();
    // end::process
    return subscriber;
  }

  @Test
  void aQueueLeavesWorkersToTheOthersOfItsSubscriber() throws SQLException {
    together = new CyclicBarrier(10);
    OutboxStore store = PostgresOutbox.on(dataSource, table).store();
    try (OutboxSubscriber subscriber = ofTwoQueues(store)) {
      subscriber.start();
      List<OutboxMessage> messages = labels(100);
      messages.add(OutboxMessage.to("mails").type("mail.wanted").body("m").build());
      publish(messages);
      assertThatOutbox(dataSource, table).awaitDrained("labels", Duration.ofSeconds(30));
      assertThatOutbox(dataSource, table).awaitDrained("mails", Duration.ofSeconds(30));
    }
    assertThat(mails).hasValue(1);
    assertThat(most.get()).isBetween(10, 12);
  }

  private OutboxSubscriber weighted(OutboxStore store) {
    // tag::weight
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("labels")
            .queues("mails")
            .weight("labels", 3)
            .store(store)
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .on("label.wanted", String.class, this::print)
            .on("mail.wanted", String.class, this::mail)
            .build();
    // end::weight
    return subscriber;
  }

  @Test
  void bothQueuesAreHandledWhateverTheirWeights() throws SQLException {
    OutboxStore store = PostgresOutbox.on(dataSource, table).store();
    List<OutboxMessage> messages = labels(50);
    messages.add(OutboxMessage.to("mails").type("mail.wanted").body("m").build());
    publish(messages);
    try (OutboxSubscriber subscriber = weighted(store)) {
      subscriber.start();
      assertThatOutbox(dataSource, table).awaitDrained("labels", Duration.ofSeconds(30));
      assertThatOutbox(dataSource, table).awaitDrained("mails", Duration.ofSeconds(30));
    }
    assertThat(printed).hasValue(50);
    assertThat(mails).hasValue(1);
  }

  private OutboxSubscriber ofARate(OutboxStore store) {
    // tag::rate
    RateLimiter limiter =
        RateLimiter.of(
            "labels",
            RateLimiterConfig.custom()
                .limitForPeriod(10)
                .limitRefreshPeriod(Duration.ofMillis(500))
                .build());
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("labels")
            .rateLimit("labels", Resilience4jRateLimit.of(limiter))
            .store(store)
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .on("label.wanted", String.class, this::print)
            .build();
    // end::rate
    return subscriber;
  }

  @Test
  void aRateHoldsOverTime() throws SQLException {
    OutboxStore store = PostgresOutbox.on(dataSource, table).store();
    publish(labels(50));
    long begunAt = System.nanoTime();
    try (OutboxSubscriber subscriber = ofARate(store)) {
      subscriber.start();
      assertThatOutbox(dataSource, table).awaitDrained("labels", Duration.ofSeconds(30));
    }
    assertThat(printed).hasValue(50);
    assertThat(Duration.ofNanos(System.nanoTime() - begunAt))
        .as(
            "ten at once, and four times ten more, each after half a second; the first may be short")
        .isGreaterThan(Duration.ofMillis(1_500));
  }

  private static List<OutboxMessage> labels(int count) {
    List<OutboxMessage> messages = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      messages.add(OutboxMessage.to("labels").type("label.wanted").body("l" + i).build());
    }
    return messages;
  }

  @Test
  void itsGrantsAreForTheSubscriber() {
    // tag::grants
    String sql = SlotMigrations.of("public", "outbox").grantsSql("shop_subscriber");
    // end::grants
    assertThat(sql).contains("on \"public\".\"outbox_slots\" to \"shop_subscriber\"");
  }
}
