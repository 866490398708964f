package dev.outbox4j.examples.docs;

import static dev.outbox4j.dlq.DeadLetterFilter.ids;
import static dev.outbox4j.dlq.DeadLetterFilter.queue;
import static dev.outbox4j.dlq.DeadLetterFilter.reason;
import static dev.outbox4j.dlq.DeadLetterFilter.resolvedBefore;
import static dev.outbox4j.dlq.DeadLetterFilter.type;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.Delivery;
import dev.outbox4j.ExceptionRenderer;
import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.codec.jackson3.Jackson3Codec;
import dev.outbox4j.dlq.DeadLetter;
import dev.outbox4j.dlq.DeadLetterAction;
import dev.outbox4j.dlq.DeadLetterEdit;
import dev.outbox4j.dlq.DeadLetterPage;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.dlq.DeadLetterReport;
import dev.outbox4j.dlq.DeadLetterSelection;
import dev.outbox4j.dlq.DeadLetterTrip;
import dev.outbox4j.dlq.DeadLetterWorklist;
import dev.outbox4j.dlq.Redrive;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.spi.UndecodableException;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
class DeadLetterSamplesIT {
  private final TestDatabase database;
  private final OutboxTable table = OutboxTable.named("outbox");

  DeadLetterSamplesIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void empty() {
    database.update(
        "truncate outbox, outbox_dlq, outbox_dlq_trips, outbox_dlq_audit restart identity");
  }

  @Test
  void movesWhatFailsForGood() {
    var dataSource = database.pool(3);
    publish("t");
    // tag::declare
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(PostgresOutbox.on(dataSource, table).store())
            .on("order.placed", String.class, this::ship)
            .retry(RetryPolicy.none())
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .build();
    // end::declare

    try (subscriber) {
      subscriber.start();
      await().untilAsserted(() -> assertThat(database.count("outbox_dlq")).isEqualTo(1));
    }
    assertThat(database.count("outbox")).isZero();
    assertThat(
            database.one(
                Boolean.class,
                """
                select failure_reason = 'retry_terminal' and attempts_count = 1
                  and deliveries_count = 1 and timer_id = 't' and last_exception like '%secret%'
                from outbox_dlq
                """))
        .isTrue();
  }

  @Test
  void keepsMessagesOfExceptionsOutIfTold() {
    var dataSource = database.pool(3);
    publish("t");
    // tag::renderer
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(PostgresOutbox.on(dataSource, table).store())
            .on("order.placed", String.class, this::ship)
            .retry(RetryPolicy.none())
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .renderExceptions(ExceptionRenderer.classNames())
            .build();
    // end::renderer

    try (subscriber) {
      subscriber.start();
      await().untilAsserted(() -> assertThat(database.count("outbox_dlq")).isEqualTo(1));
    }
    assertThat(database.one(String.class, "select last_exception from outbox_dlq"))
        .isEqualTo("java.lang.IllegalStateException");
  }

  /** What a service has beside its dead letters. */
  private record Bank(boolean up) {
    boolean ping() {
      if (!up) {
        throw new IllegalStateException("the bank does not answer");
      }
      return true;
    }
  }

  private record Customers(String only) {
    boolean exists(@Nullable String customer) {
      return only.equals(customer);
    }
  }

  private void failed(long id, String type, String payload, FailureReason reason) {
    database.update(
        """
        insert into outbox_dlq (id, outbox, original_id, lease_token, queue, type, payload, headers,
          deliveries_count, attempts_count, created_at, available_at, failed_at, failure_reason,
          last_exception)
        values (?, 'public.outbox', 100 + ?, 5, 'orders', ?, convert_to(?, 'UTF8'),
          '{"customer": "c-1"}', 3, 2, now(), now(), now() - interval '2 months', ?, 'no')
        """,
        id,
        id,
        type,
        payload,
        reason.code());
  }

  @Test
  void isAWorklist() throws Exception {
    var dataSource = database.pool(2);
    PayloadCodec codec = Jackson3Codec.standard();
    Bank bank = new Bank(true);
    Customers customers = new Customers("c-1");
    Instant aMonthAgo = Instant.now().minus(30, ChronoUnit.DAYS);
    String body = "{\"id\": \"o-1\", \"cents\": 5}";
    failed(7, "order.placed", body, FailureReason.REJECTED);
    failed(8, "order.placed", body, FailureReason.RETRY_TERMINAL);
    failed(9, "order.plcaed", "not JSON", FailureReason.UNDECODABLE);
    failed(10, "order.placed", "not JSON", FailureReason.RETRY_TERMINAL);
    failed(11, "test", "", FailureReason.EXPIRED);
    // tag::look
    DeadLetterWorklist deadLetters =
        DeadLetterWorklist.of(
            PostgresOutbox.on(dataSource, table), DeadLetterQueue.in("outbox_dlq"));
    DeadLetterSelection rejected =
        deadLetters.where(queue("orders").and(reason(FailureReason.REJECTED)));
    long howMany = rejected.count(10_000);
    DeadLetterPage page = rejected.page(50); // the latest first; page.next() leads on
    DeadLetter letter = deadLetters.find(page.letters().get(0).id()).orElseThrow();
    // end::look
    assertThat(howMany).isEqualTo(1);
    assertThat(letter.summary().id()).isEqualTo(7);
    assertThat(letter.decode(codec, Order.class)).isEqualTo(new Order("o-1", 5));
    assertThatThrownBy(() -> deadLetters.find(9).orElseThrow().decode(codec, Order.class))
        .isInstanceOf(UndecodableException.class);

    redrivesOne(deadLetters);
    redrivesMany(deadLetters, codec, bank, customers);
    edits(deadLetters, codec);
    database.update(
        "update outbox_dlq set resolved_at = resolved_at - interval '31 days' where id in (7, 8)");
    database.update("delete from outbox where id = 107"); // it was handled
    // tag::discard
    DeadLetterReport discarded =
        deadLetters.where(queue("orders").and(type("test"))).discard("ann", "test data");
    DeadLetterReport deleted = deadLetters.where(resolvedBefore(aMonthAgo)).purge("ann");
    // end::discard
    assertThat(discarded.done()).isEqualTo(1);
    assertThat(deleted.done()).isEqualTo(1);
    assertThat(deleted.refusals())
        .extracting(DeadLetterReport.Refusal::id)
        .containsExactly(8L); // its message waits
    // tag::audit
    List<DeadLetterAction> latest = deadLetters.audit(20);
    // end::audit
    assertThat(latest)
        .extracting(DeadLetterAction::action)
        .containsExactly("purge", "discard", "edit", "redrive", "redrive");
  }

  private void redrivesOne(DeadLetterWorklist deadLetters) {
    // tag::redrive-one
    DeadLetterReport report =
        deadLetters.where(ids(7)).redrive(Redrive.by("ann").note("the bank answers again"));
    List<DeadLetterTrip> history = deadLetters.history(7);
    // end::redrive-one
    assertThat(report.done()).isEqualTo(1);
    assertThat(history).hasSize(1);
  }

  private void redrivesMany(
      DeadLetterWorklist deadLetters, PayloadCodec codec, Bank bank, Customers customers) {
    // tag::redrive
    DeadLetterSelection failed =
        deadLetters.where(queue("orders").and(reason(FailureReason.RETRY_TERMINAL)));
    Redrive redrive =
        Redrive.by("ann")
            .note("the bank answers again")
            .perSecond(50)
            .probing(() -> bank.ping()) // if it throws, nothing is put back
            .decoding(codec, Order.class)
            .checking(
                letter ->
                    customers.exists(letter.headers().get("customer"))
                        ? Optional.empty()
                        : Optional.of("no such customer"));
    DeadLetterReport expected = failed.dryRun(redrive); // changes nothing
    DeadLetterReport report = failed.redrive(redrive);
    // end::redrive
    assertThat(report).isEqualTo(expected);
    assertThat(report.done()).isEqualTo(1);
    assertThat(report.refusals()).extracting(DeadLetterReport.Refusal::id).containsExactly(10L);
    assertThatThrownBy(() -> failed.redrive(redrive.probing(() -> new Bank(false).ping())))
        .hasMessageContaining("nothing was redriven");
  }

  private void edits(DeadLetterWorklist deadLetters, PayloadCodec codec) {
    // tag::edit
    DeadLetterReport report =
        deadLetters.redrive(
            9,
            DeadLetterEdit.type("order.placed")
                .andPayload(Payload.ofText("{\"id\": \"o-9\", \"cents\": 1250}")),
            Redrive.by("ann").decoding(codec, Order.class));
    // end::edit
    assertThat(report.done()).isEqualTo(1);
    assertThat(database.one(String.class, "select type from outbox where id = 109"))
        .isEqualTo("order.placed");
  }

  record Order(String id, int cents) {}

  @Test
  void isLookedAtAndPutBackBySql() throws IOException {
    for (int i = 1; i <= 8; i++) {
      database.update(
          """
          insert into outbox_dlq (outbox, original_id, lease_token, queue, type, payload, headers,
            deliveries_count, attempts_count, created_at, available_at, failure_reason,
            last_exception, timer_id)
          values ('public.outbox', 100 + ?, 5, 'orders', 'order.placed', 'body', '{"a": "b"}', 3, 2,
            now(), now(), 'rejected', 'no', ?)
          """,
          i,
          "t" + i);
    }
    assertThat(database.list(Long.class, sql("look"))).hasSize(8);
    assertThat(database.list(String.class, sql("count"))).containsExactly("orders");

    assertThat(database.one(Long.class, sql("redrive"))).isEqualTo(107);

    assertThat(
            database.one(
                Boolean.class,
                """
                select id = 107 and lease_token = 5 and queue = 'orders' and type = 'order.placed' and payload = 'body'
                  and headers = '{"a": "b"}' and timer_id = 't7' and attempts_count = 0
                  and deliveries_count = 0 and available_at <= clock_timestamp()
                from outbox
                """))
        .isTrue();
    assertThat(database.list(Long.class, sql("redrive"))).isEmpty();
    assertThat(database.list(Long.class, sql("look"))).hasSize(7).doesNotContain(7L);
    database.update("update outbox_dlq set resolved_at = null");
    assertThatThrownBy(() -> database.list(Long.class, sql("redrive")))
        .hasStackTraceContaining("outbox_pkey");
    assertThat(database.count("outbox")).isEqualTo(1);
    assertThat(database.list(Long.class, "select id from outbox_dlq where resolved_at is not null"))
        .isEmpty();

    assertThat(database.update(sql("discard"))).isEqualTo(1);
    assertThat(database.one(String.class, "select resolution from outbox_dlq where id = 8"))
        .isEqualTo("discarded: test data");
    database.update("update outbox_dlq set resolved_at = now() - interval '31 days' where id < 4");
    database.update(
        """
        insert into outbox_dlq_trips (dead_letter, number, redriven_by, failed_at, failure_reason,
          deliveries_count, attempts_count, created_at)
        select id, 1, 'ann', failed_at, 'rejected', 1, 1, created_at from outbox_dlq
        """);
    database.update(sql("purge"));
    assertThat(database.count("outbox_dlq")).isEqualTo(5);
    assertThat(database.count("outbox_dlq_trips")).isEqualTo(5);
  }

  @Test
  void countsWithTheTimeOfTheFirst() throws IOException {
    for (int days : List.of(3, 5, 1)) {
      letter(days, "order.placed", "now() - interval '%d days'".formatted(days));
    }

    assertThat(
            database.one(
                Boolean.class,
                "select count = 3 and since < now() - interval '4 days' and latest > now() - interval '2 days'"
                    + " from ("
                    + sql("count")
                    + ") as counted"))
        .isTrue();
  }

  @Test
  void manyArePutBackInBatchesThatAreDueOneAfterTheOther() throws IOException {
    String before = "timestamptz '2026-11-25 11:00:00+00'";
    for (int i = 1; i <= 501; i++) {
      letter(i, "order.placed", before + " + interval '%d ms'".formatted(i));
    }
    letter(601, "order.placed", "timestamptz '2026-11-25 12:00:00+00'"); // failed again
    letter(602, "order.shipped", before);
    letter(603, "order.placed", before);
    database.update("update outbox_dlq set timer_id = 't' where id = 603");

    assertThat(database.list(Long.class, sql("redrive-batch"))).hasSize(500);

    assertThat(
            database.one(
                Boolean.class,
                """
                select min(id) = 1001 and max(id) = 1500 and min(lease_token) = 5
                  and (max(available_at) filter (where id = 1500) - min(available_at) filter (where id = 1001))
                    between interval '49 seconds' and interval '51 seconds'
                from outbox
                """))
        .isTrue();
    assertThat(database.list(Long.class, sql("redrive-batch"))).containsExactly(1501L);
    assertThat(database.list(Long.class, sql("redrive-batch"))).isEmpty();
    assertThat(
            database.list(
                Long.class, "select id from outbox_dlq where resolved_at is null order by id"))
        .containsExactly(601L, 602L, 603L);
  }

  @Test
  void aBatchWithAnIdThatIsThereChangesNothing() throws IOException {
    letter(1, "order.placed", "timestamptz '2026-11-25 11:00:00+00'");
    letter(2, "order.placed", "timestamptz '2026-11-25 11:00:00+00'");
    database.update("insert into outbox (id, queue, payload) values (1002, 'orders', '')");

    assertThatThrownBy(() -> database.list(Long.class, sql("redrive-batch")))
        .hasStackTraceContaining("outbox_pkey");
    assertThat(database.count("outbox")).isEqualTo(1);
    assertThat(database.count("outbox_dlq where resolved_at is null")).isEqualTo(2);
  }

  @Test
  void oneIsMovedThereWhileItsHandlerHangs() throws Exception {
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch over = new CountDownLatch(1);
    database.update(
        "insert into outbox (id, queue, type, payload) values (7, 'orders', 'order.placed', 'body')");
    try (OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(PostgresOutbox.on(database.pool(3), table).store())
            .on(
                "order.placed",
                String.class,
                (body, delivery) -> {
                  begun.countDown();
                  over.await();
                })
            .deadLetters(DeadLetterQueue.in("outbox_dlq"))
            .build()) {
      subscriber.start();
      begun.await();

      assertThat(database.update(sql("move"))).isEqualTo(1);

      over.countDown();
      await()
          .untilAsserted(
              () ->
                  assertThat(subscriber.health().lastFailure().orElse(""))
                      .contains("row 7 of queue 'orders' was not there to be written"));
    } finally {
      over.countDown();
    }
    assertThat(database.update(sql("move"))).isZero();
    assertThat(database.count("outbox")).isZero();
    assertThat(
            database.one(
                Boolean.class,
                """
                select original_id = 7 and lease_token = 1 and queue = 'orders' and type = 'order.placed'
                  and payload = 'body' and deliveries_count = 1 and attempts_count = 0
                  and outbox = 'public.outbox' and failure_reason = 'rejected' and resolved_at is null
                from outbox_dlq
                """))
        .isTrue();
  }

  private void letter(int id, String type, String failedAt) {
    database.update(
        """
        insert into outbox_dlq (id, outbox, original_id, lease_token, queue, type, payload, headers,
          deliveries_count, attempts_count, created_at, available_at, failure_reason, failed_at)
        values (?, 'public.outbox', 1000 + ?, 5, 'orders', ?, 'body', '{}', 3, 2, now(), now(),
          'retry_terminal', %s)
        """
            .formatted(failedAt),
        id,
        id,
        type);
  }

  @Test
  void theGrantsOfTheOperatorSufficeForThat() throws IOException, SQLException {
    String suffix = UUID.randomUUID().toString().substring(0, 8);
    List<String> roles = List.of("pub " + suffix, "sub " + suffix, "ops " + suffix);
    roles.forEach(role -> database.update("create role \"" + role + "\""));
    database.update(
        OutboxMigrations.standard().grantsSql(roles.get(0), roles.get(1), roles.get(2)));
    database.update(
        """
        insert into outbox_dlq (id, outbox, original_id, lease_token, queue, payload, headers,
          deliveries_count, attempts_count, created_at, available_at, failure_reason)
        values (7, 'public.outbox', 100, 5, 'orders', 'body', '{}', 3, 2, now(), now(), 'rejected')
        """);
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("set role \"ops " + suffix + "\"");
      for (String name : List.of("look", "count", "redrive", "redrive-batch", "discard", "purge")) {
        statement.execute(sql(name));
      }
      statement.execute("set role \"sub " + suffix + "\"");
      statement.execute(sql("move"));
    } finally {
      roles.forEach(role -> database.update("drop owned by \"" + role + "\""));
      roles.forEach(role -> database.update("drop role \"" + role + "\""));
    }
    assertThat(database.one(String.class, "select queue from outbox")).isEqualTo("orders");
  }

  private static String sql(String name) throws IOException {
    return DocumentedSql.of("dead-letters.md", name);
  }

  private void publish(String timerId) {
    database.one(
        Long.class,
        "select outbox_publish('orders', 'body', type => 'order.placed', timer_id => ?)",
        timerId);
  }

  private void ship(String body, Delivery delivery) {
    throw new IllegalStateException("the secret of " + body);
  }
}
