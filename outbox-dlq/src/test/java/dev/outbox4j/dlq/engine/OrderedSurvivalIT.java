package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TcpProxy;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** Order while subscribers stop, start and are cut off, and messages fail. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class OrderedSurvivalIT {
  private static final Duration LEASE = Duration.ofSeconds(2);
  private static final int KEYS = 40;
  private static final int EACH = 120;

  /** The body of a message that cuts off whoever handles it, as if it killed the process. */
  private static final String KILLS = "kills";

  private static final AtomicInteger QUEUES = new AtomicInteger();

  private final TestDatabase database;
  private final List<Member> members = new ArrayList<>();
  private final AtomicInteger deadly = new AtomicInteger();
  private EngineFixture engine;
  private String queue;

  OrderedSurvivalIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 2);
    queue = "ordered-survival-" + QUEUES.incrementAndGet();
    OrderedMigrations.of("public", "outbox", queue).migrate(database.plain());
    database.update(
        "create table if not exists ordered_effect"
            + " (id bigserial primary key, queue text, key text, number int, who text)");
  }

  @AfterEach
  void tearDown() {
    members.forEach(Member::close);
    engine.close();
  }

  /** A subscriber with a network and a pool of its own, through which its handlers write, too. */
  private final class Member {
    private final TcpProxy network =
        new TcpProxy(database.server().host(), database.server().port());
    private final HikariDataSource pool = new HikariDataSource();
    private final OutboxSubscriber subscriber;
    private volatile CountDownLatch goOn = new CountDownLatch(0);

    Member(String name, UnaryOperator<OutboxSubscriber.Builder> ways) {
      members.add(this);
      PGSimpleDataSource through = database.plain();
      through.setServerNames(new String[] {network.host()});
      through.setPortNumbers(new int[] {network.port()});
      through.setSocketTimeout(2);
      through.setConnectTimeout(1);
      pool.setDataSource(through);
      pool.setMaximumPoolSize(6);
      pool.setConnectionTimeout(1_000);
      pool.setInitializationFailTimeout(-1);
      subscriber =
          ways.apply(
                  OutboxSubscriber.builder(queue)
                      .name(name)
                      .lease(LEASE)
                      .workers(4)
                      .store(PostgresOutbox.on(pool, database.table()).store(Duration.ofSeconds(1)))
                      .deadLetters(DeadLetterQueue.in("outbox_dlq"))
                      .retry(RetryPolicy.constant(Duration.ofMillis(50)).attempts(1_000))
                      .gracefulTimeout(Duration.ofSeconds(2))
                      .on("t", String.class, this::handle))
              .build();
      subscriber.start();
    }

    private void handle(String number, Delivery delivery) throws Exception {
      if (number.equals(KILLS)) {
        deadly.incrementAndGet();
        network.cut();
        goOn = new CountDownLatch(1);
      }
      goOn.await();
      if (Integer.parseInt(number) % 20 == 7 && delivery.attempt() < 3) {
        throw new IllegalStateException("fails twice");
      }
      try (Connection connection = pool.getConnection();
          PreparedStatement insert =
              connection.prepareStatement(
                  "insert into ordered_effect (queue, key, number, who) values (?, ?, ?, ?)")) {
        insert.setString(1, queue);
        insert.setString(2, delivery.orderingKey().orElseThrow());
        insert.setInt(3, Integer.parseInt(number));
        insert.setString(
            4, subscriber.name() + "/" + delivery.attempt() + "/" + delivery.deliveries());
        insert.executeUpdate();
      }
    }

    void close() {
      network.resume();
      goOn.countDown();
      subscriber.stop();
      pool.close();
      network.close();
    }
  }

  private OutboxMessage message(String key, int number) {
    return message(key, String.valueOf(number));
  }

  private OutboxMessage message(String key, String text) {
    return OutboxMessage.to(queue).type("t").orderingKey(key).body(text).build();
  }

  @RepeatedTest(2)
  @Tag("large")
  void noMessageOfAKeyIsLostOrOvertaken() throws Exception {
    for (int i = 0; i < 4; i++) {
      new Member("m" + i, OutboxSubscriber.Builder::ordered);
    }
    Random random = new Random(QUEUES.get());
    Thread publisher = new Thread(this::publish);
    publisher.start();
    int faults = 0;
    while (publisher.isAlive() || faults < 8) {
      Member member = members.get(random.nextInt(members.size()));
      if (random.nextBoolean()) {
        member.subscriber.stop();
        member.subscriber.start();
      } else { // as a kill: nothing of it arrives any more
        member.network.cut();
        await().pollDelay(LEASE.plusMillis(random.nextInt(1_000))).until(() -> true);
        member.network.resume();
      }
      faults++;
    }
    await().atMost(Duration.ofMinutes(1)).until(() -> engine.rows(queue) == 0);
    assertThat(engine.deadLetters(queue)).isZero();
    Map<String, Integer> reached = new HashMap<>();
    int repeated = 0;
    for (String effect :
        database.list(
            String.class,
            "select key || ' ' || number from ordered_effect where queue = ? order by id",
            queue)) {
      String key = effect.substring(0, effect.indexOf(' '));
      int number = Integer.parseInt(effect.substring(key.length() + 1));
      int last = reached.getOrDefault(key, -1);
      assertThat(number)
          .as(() -> "what follows " + last + " of key " + key + ": " + around(key))
          .isLessThanOrEqualTo(last + 1);
      repeated += number <= last ? 1 : 0;
      reached.merge(key, number, Math::max);
    }
    assertThat(reached)
        .hasSize(KEYS)
        .allSatisfy((key, last) -> assertThat(last).isEqualTo(EACH - 1));
    assertThat(repeated).as("handled twice").isLessThan(KEYS * EACH / 4);
  }

  /** While a queue is switched over: an old one was not stopped, and dies with a message. */
  @Test
  void whatOneThatClaimedRowByRowHeldWhenItWasCutOffComesFirstOfItsKey() {
    Member byRow =
        new Member(
            "by-row",
            ways ->
                ways.poll(Duration.ofMillis(5), Duration.ofMillis(50))
                    .listen(PgjdbcListen.on(database.plain())));
    byRow.goOn = new CountDownLatch(1);
    engine.inTransaction(List.of(message("k0", 0)));
    await()
        .until(
            () -> database.count("outbox where queue = '" + queue + "' and lease_token > 0") == 1);
    Member ordered = new Member("ordered", OutboxSubscriber.Builder::ordered);
    await().until(() -> ordered.subscriber.health().failing()); // it has seen the other one
    byRow.network.cut();
    engine.inTransaction(List.of(message("k0", 1), message("k1", 0)));
    await().atMost(Duration.ofSeconds(30)).until(() -> engine.rows(queue) == 0);
    assertThat(around("k0")).containsExactly("0:ordered/1/2", "1:ordered/1/1");
    assertThat(around("k1")).containsExactly("0:ordered/1/1");
    await().until(() -> ordered.subscriber.health().healthy());
    assertThat(byRow.goOn.getCount()).isOne(); // its handler runs to this moment
  }

  @Test
  void aMessageThatKillsItsProcessEachTimeIsADeadLetterAfterItsDeliveries() {
    engine.inTransaction(List.of(message("k0", KILLS), message("k0", 1), message("k1", 0)));
    for (int i = 0; i < 5; i++) {
      new Member("m" + i, ways -> ways.ordered().retry(RetryPolicy.none()).maxDeliveries(3));
    }
    await().atMost(Duration.ofMinutes(1)).until(() -> engine.rows(queue) == 0);
    assertThat(deadly).as("the first one was not counted").hasValue(4);
    assertThat(engine.deadLetters(queue)).isOne();
    assertThat(around("k0")).singleElement(InstanceOfAssertFactories.STRING).startsWith("1:m");
    assertThat(around("k1")).isNotEmpty().allMatch(each -> each.startsWith("0:m"));
  }

  /** For people: who handled what, by which attempt and delivery. */
  private List<String> around(String key) {
    return database.list(
        String.class,
        "select number || ':' || who from ordered_effect where queue = ? and key = ? order by id",
        queue,
        key);
  }

  /** In the order of each key, over some ten seconds. */
  private void publish() {
    for (int from = 0; from < EACH; from++) {
      int number = from;
      engine.inTransaction(
          IntStream.range(0, KEYS).mapToObj(key -> message("k" + key, number)).toList());
      await().pollDelay(Duration.ofMillis(80)).until(() -> true);
    }
  }
}
