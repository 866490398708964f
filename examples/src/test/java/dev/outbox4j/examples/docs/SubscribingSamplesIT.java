package dev.outbox4j.examples.docs;

import static dev.outbox4j.test.OutboxAssertions.assertThatOutbox;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.awaitility.Awaitility.await;

import com.impossibl.postgres.jdbc.PGDataSource;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.OutboxSubscribers;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.SubscriberHealth.Listener;
import dev.outbox4j.TypeRef;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.ng.PgjdbcNgListen;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.notify.r2dbc.R2dbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.OutboxStore;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;
import reactor.core.publisher.Mono;

@ExtendWith(PostgresExtension.class)
@Tag("once")
class SubscribingSamplesIT {
  private final TestDatabase database;
  private final HikariDataSource dataSource;
  private final OutboxTable table = OutboxTable.named("outbox");
  private final NotificationSource notifications;
  private final List<String> done = new CopyOnWriteArrayList<>();
  private final Search search = new Search();
  private volatile boolean carrierOpen = true;

  SubscribingSamplesIT(TestDatabase database) {
    this.database = database;
    this.dataSource = database.pool(6);
    this.notifications = PgjdbcListen.on(database.plain());
  }

  record Order(String id) {}

  record Item(String sku, int count) {}

  static final class InvalidOrder extends RuntimeException {}

  @BeforeEach
  void empty() {
    database.update("truncate outbox, outbox_dlq");
  }

  @Test
  void handlesByType() {
    publish("orders", "order.placed", "{\"id\": \"o-1\"}");
    publish("orders", "order.archived", "{}");
    // tag::subscribe
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(PostgresOutbox.on(dataSource, table).store())
            .listen(notifications)
            .codec(Jackson2Codec.standard())
            .on("order.placed", Order.class, this::ship)
            .otherwise(this::archive)
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .build();
    subscriber.start();
    // end::subscribe

    try (subscriber) {
      assertThatOutbox(dataSource, table).awaitDrained("orders", Duration.ofSeconds(30));
      assertThat(done).containsExactlyInAnyOrder("shipped o-1", "archived 2 bytes");
      assertThat(database.count("outbox")).isZero();
    }
  }

  @Test
  void decodesABodyWithTypeArguments() {
    OutboxStore store = PostgresOutbox.on(dataSource, table).store();
    // tag::list
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("carts")
            .store(store)
            .codec(Jackson2Codec.standard())
            .on("cart.filled", new TypeRef<List<Item>>() {}, this::fill)
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .build();
    // end::list

    publish(
        "carts",
        "cart.filled",
        "[{\"sku\": \"tea\", \"count\": 2}, {\"sku\": \"cup\", \"count\": 1}]");
    try (subscriber) {
      subscriber.start();
      assertThatOutbox(dataSource, table).awaitDrained("carts", Duration.ofSeconds(30));
    }
    assertThat(done).containsExactly("2 tea", "1 cup");
    assertThat(database.count("outbox_dlq")).isZero();
  }

  private void fill(List<Item> items, Delivery delivery) {
    for (Item item : items) {
      record(item.count() + " " + item.sku());
    }
  }

  /** Compiled for 17, as is the builder's method. */
  private OutboxSubscriber onVirtualThreads(OutboxStore store) {
    // tag::virtual
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .virtualThreads() // Java 21 or later
            .workers(500) // handlers that may wait at once
            .store(store)
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .on("order.placed", String.class, this::call)
            .build();
    // end::virtual
    return subscriber;
  }

  private void call(String order, Delivery delivery) throws ReflectiveOperationException {
    boolean isVirtual =
        (Boolean) Thread.class.getMethod("isVirtual").invoke(Thread.currentThread());
    record(order + (isVirtual ? " on a virtual thread" : " on another thread"));
  }

  @Test
  @EnabledForJreRange(minVersion = 21)
  void handlesOnVirtualThreads() {
    publish("orders", "order.placed", "o-1");
    try (OutboxSubscriber subscriber =
        onVirtualThreads(PostgresOutbox.on(dataSource, table).store())) {
      subscriber.start();
      assertThatOutbox(dataSource, table).awaitDrained("orders", Duration.ofSeconds(30));
    }
    assertThat(done).containsExactly("o-1 on a virtual thread");
  }

  @Test
  @EnabledForJreRange(max = JRE.JAVA_20)
  void refusesVirtualThreadsWhereThereAreNone() {
    OutboxStore store = PostgresOutbox.on(dataSource, table).store();
    assertThatIllegalStateException()
        .isThrownBy(() -> onVirtualThreads(store))
        .withMessageContaining("Java 21 or later");
  }

  // tag::stopping
  private Outcome index(String catalogue, Delivery delivery) {
    for (String page : search.missing(catalogue)) {
      if (delivery.stopping() || delivery.leaseLost()) {
        return Outcome.reschedule(Duration.ZERO); // the rest is done by whoever has it next
      }
      search.add(page, delivery.leaseLeft()); // the time limit of the call
    }
    return Outcome.ack();
  }

  // end::stopping

  @Test
  void endsAtAPageWhenItsSubscriberStopsAndGoesOnFromThere() throws InterruptedException {
    AtomicReference<Delivery> running = new AtomicReference<>();
    CountDownLatch first = new CountDownLatch(1);
    search.onAdd =
        () -> {
          first.countDown();
          await().until(running.get()::stopping);
        };
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("catalogues")
            .store(PostgresOutbox.on(dataSource, table).store())
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .on(
                "catalogue.changed",
                String.class,
                (catalogue, delivery) -> {
                  running.set(delivery);
                  return index(catalogue, delivery);
                })
            .build();

    publish("catalogues", "catalogue.changed", "spring");
    subscriber.start();
    first.await();
    subscriber.stop();
    assertThat(search.pages).containsExactly("spring 1");
    assertThat(
            database.list(
                Boolean.class,
                "select available_at <= now() and attempts_count = 0 and lease_until is null"
                    + " from outbox"))
        .containsExactly(true);

    search.onAdd = () -> {};
    try (subscriber) {
      subscriber.start();
      assertThatOutbox(dataSource, table).awaitDrained("catalogues", Duration.ofSeconds(30));
    }
    assertThat(search.pages).containsExactly("spring 1", "spring 2", "spring 3");
    assertThat(search.limits)
        .hasSize(3)
        .allMatch(limit -> limit.compareTo(Duration.ofSeconds(60)) <= 0) // the default lease
        .allMatch(limit -> limit.compareTo(Duration.ofSeconds(30)) > 0); // renewed at its half
  }

  /** Another system. */
  private static final class Search {
    private final List<String> pages = new CopyOnWriteArrayList<>();
    private final List<Duration> limits = new CopyOnWriteArrayList<>();
    private volatile Runnable onAdd = () -> {};

    List<String> missing(String catalogue) {
      return IntStream.rangeClosed(1, 3)
          .mapToObj(number -> catalogue + " " + number)
          .filter(page -> !pages.contains(page))
          .toList();
    }

    void add(String page, Duration limit) {
      limits.add(limit);
      pages.add(page);
      onAdd.run();
    }
  }

  @Test
  void writesTheOutcomeThatTheHandlerGives() {
    OutboxStore store = PostgresOutbox.on(dataSource, table).store();
    // tag::outcomes
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(store)
            .codec(Jackson2Codec.standard())
            .on(
                "order.placed",
                Order.class,
                (order, delivery) -> {
                  if (order.id().isBlank()) {
                    return Outcome.reject("an order without id");
                  }
                  if (!carrierOpen()) {
                    return Outcome.reschedule(Duration.ofHours(1));
                  }
                  ship(order, delivery);
                  return Outcome.ack();
                })
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .build();
    // end::outcomes

    publish("orders", "order.placed", "{\"id\": \" \"}");
    publish("orders", "order.placed", "{\"id\": \"o-1\"}");
    try (subscriber) {
      subscriber.start();
      assertThatOutbox(dataSource, table)
          .awaitDrained("orders", Duration.ofSeconds(30))
          .hasPublishedNothing()
          .hasDeadLetter("orders", "order.placed", FailureReason.REJECTED);
      assertThat(done).containsExactly("shipped o-1");
      assertThat(assertThatOutbox(dataSource, table).deadLettered("orders"))
          .extracting(dead -> dead.exception().orElseThrow())
          .containsExactly("an order without id");

      carrierOpen = false;
      publish("orders", "order.placed", "{\"id\": \"o-2\"}");
      await()
          .untilAsserted(
              () ->
                  assertThat(
                          database.list(
                              Boolean.class,
                              "select available_at > now() + interval '55 min' and attempts_count = 0"
                                  + " and lease_until is null from outbox"))
                      .containsExactly(true));
    }
  }

  @Test
  void retriesByThePolicyAndGivesUpWhereItSaysSo() {
    // tag::retry
    RetryPolicy policy =
        RetryPolicy.exponential(Duration.ofSeconds(1))
            .max(Duration.ofMinutes(5))
            .attempts(10)
            .jitter(0.2)
            .maxTotalTime(Duration.ofHours(1))
            .giveUpOn(InvalidOrder.class);
    // end::retry

    publish("orders", "bad", "");
    publish("orders", "unlucky", "");
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(PostgresOutbox.on(dataSource, table).store())
            .on(
                "bad",
                (Payload payload, Delivery delivery) -> {
                  throw new InvalidOrder();
                })
            .on(
                "unlucky",
                (Payload payload, Delivery delivery) -> {
                  throw new IllegalStateException("not now");
                })
            .retry(policy)
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .build();
    try (subscriber) {
      subscriber.start();
      await()
          .untilAsserted(
              () ->
                  assertThat(
                          database.list(
                              String.class, "select type || attempts_count from outbox_dlq"))
                      .containsExactly("bad1"));
      await()
          .untilAsserted(
              () ->
                  assertThat(
                          database.list(
                              Boolean.class,
                              "select attempts_count >= 1 and last_error like '%not now%' from outbox"))
                      .containsExactly(true));
    }
  }

  @Test
  void settlesAnAsyncHandlerWhenItsStageEnds() {
    CompletableFuture<Void> carrier = new CompletableFuture<>();
    HttpShipping shipping = new HttpShipping(carrier);
    // tag::async
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(PostgresOutbox.on(dataSource, table).store())
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .codec(Jackson2Codec.standard())
            .on(
                "order.placed",
                Order.class,
                (order, delivery) -> {
                  return shipping.send(order);
                })
            .workers(200) // pending stages, not threads
            .handlerTimeout(Duration.ofSeconds(30))
            .build();
    // end::async

    publish("orders", "order.placed", "{\"id\": \"o-1\"}");
    try (subscriber) {
      subscriber.start();
      await().untilAsserted(() -> assertThat(subscriber.health().running()).isEqualTo(1));
      await().untilAsserted(() -> assertThat(shipping.sent).containsExactly("o-1"));
      assertThat(database.count("outbox")).isEqualTo(1);
      carrier.complete(null);
      await().untilAsserted(() -> assertThat(database.count("outbox")).isZero());
    }
  }

  @Test
  void settlesAHandlerWhosePublisherEnds() {
    CompletableFuture<Void> reserved = new CompletableFuture<>();
    Warehouse warehouse = order -> Mono.fromFuture(reserved);
    // tag::publisher
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(PostgresOutbox.on(dataSource, table).store())
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .codec(Jackson2Codec.standard())
            .on(
                "order.placed",
                Order.class,
                (order, delivery) -> {
                  return warehouse.reserve(order); // a Mono<Void>
                })
            .build();
    // end::publisher

    publish("orders", "order.placed", "{\"id\": \"o-1\"}");
    try (subscriber) {
      subscriber.start();
      await().untilAsserted(() -> assertThat(subscriber.health().running()).isEqualTo(1));
      assertThat(database.count("outbox")).isEqualTo(1);
      reserved.complete(null);
      await().untilAsserted(() -> assertThat(database.count("outbox")).isZero());
    }
  }

  @FunctionalInterface
  private interface Warehouse {
    Mono<Void> reserve(Order order);
  }

  @Test
  void startsAndStopsSeveralTogether() {
    OutboxStore store = PostgresOutbox.on(dataSource, table).store();
    // tag::several
    OutboxSubscriber orders =
        OutboxSubscriber.builder("orders")
            .queues("returns") // the same handlers, the same workers
            .store(store)
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .listen(notifications)
            .otherwise(this::recordQueue)
            .build();
    OutboxSubscriber mails =
        OutboxSubscriber.builder("mails")
            .store(store)
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .listen(notifications)
            .workers(1)
            .otherwise(this::recordQueue)
            .build();

    OutboxSubscribers all = OutboxSubscribers.of(orders, mails);
    all.start();
    // end::several

    try (all) {
      List.of("orders", "returns", "mails").forEach(queue -> publish(queue, "any", ""));
      await()
          .untilAsserted(
              () -> assertThat(done).containsExactlyInAnyOrder("orders", "returns", "mails"));
      await()
          .untilAsserted(
              () -> assertThat(all.health()).allMatch(health -> health.listener() == Listener.UP));
    }
    assertThat(all.health()).noneMatch(health -> health.running() > 0);
  }

  @Test
  void listensByEachDriver() throws SQLException {
    String host = database.server().host();
    int port = database.server().port();
    String name = database.name();
    String user = database.server().user();
    String password = database.server().password();
    // tag::r2dbc
    NotificationSource byR2dbc =
        R2dbcListen.on(
            new PostgresqlConnectionFactory(
                PostgresqlConnectionConfiguration.builder()
                    .host(host)
                    .port(port)
                    .database(name)
                    .username(user)
                    .password(password)
                    .connectTimeout(Duration.ofSeconds(5))
                    .tcpKeepAlive(true)
                    .build()));
    // end::r2dbc
    // tag::ng
    PGDataSource ng = new PGDataSource();
    ng.setServerName(host);
    ng.setPortNumber(port);
    ng.setDatabaseName(name);
    ng.setUser(user);
    ng.setPassword(password);
    NotificationSource byPgjdbcNg = PgjdbcNgListen.on(ng);
    // end::ng
    // tag::pgjdbc
    PGSimpleDataSource plain = new PGSimpleDataSource();
    plain.setServerNames(new String[] {host});
    plain.setPortNumbers(new int[] {port});
    plain.setDatabaseName(name);
    plain.setUser(user);
    plain.setPassword(password);
    NotificationSource byPgjdbc = PgjdbcListen.on(plain);
    // end::pgjdbc

    for (NotificationSource source : List.of(byR2dbc, byPgjdbcNg, byPgjdbc)) {
      OutboxSubscriber subscriber =
          OutboxSubscriber.builder("orders")
              .store(PostgresOutbox.on(dataSource, table).store())
              .deadLetters(DeadLetterQueue.in("outbox_dlq"))
              .listen(source)
              .otherwise(this::recordQueue)
              .build();
      try (subscriber) {
        subscriber.start();
        await()
            .until(
                () ->
                    subscriber
                        .health()
                        .lastClaimAt()
                        .filter(at -> at.isBefore(Instant.now().minusSeconds(1))) // asleep
                        .isPresent());
        done.clear();
        publish("orders", "any", "");
        await().untilAsserted(() -> assertThat(done).containsExactly("orders"));
      }
    }
  }

  private void publish(String queue, String type, String body) {
    database.one(
        Long.class,
        "select outbox_publish(?, convert_to(?, 'UTF8'), type => ?)",
        queue,
        body,
        type);
  }

  private boolean carrierOpen() {
    return carrierOpen;
  }

  private void ship(Order order, Delivery delivery) {
    record("shipped " + order.id());
  }

  private void archive(Payload payload, Delivery delivery) {
    record("archived " + payload.size() + " bytes");
  }

  private void recordQueue(Payload payload, Delivery delivery) {
    record(delivery.queue());
  }

  private void record(String what) {
    done.add(what);
  }

  private record HttpShipping(CompletableFuture<Void> answer, List<String> sent) {
    HttpShipping(CompletableFuture<Void> answer) {
      this(answer, new CopyOnWriteArrayList<>());
    }

    CompletionStage<Void> send(Order order) {
      sent.add(order.id());
      return answer;
    }
  }
}
