package dev.outbox4j.dlq.engine;

import static dev.outbox4j.dlq.DeadLetterFilter.any;
import static dev.outbox4j.dlq.DeadLetterFilter.ids;
import static dev.outbox4j.dlq.DeadLetterFilter.queue;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.Outcome;
import dev.outbox4j.Payload;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.dlq.DeadLetterAction;
import dev.outbox4j.dlq.DeadLetterEdit;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.dlq.DeadLetterSelection;
import dev.outbox4j.dlq.DeadLetterSummary;
import dev.outbox4j.dlq.DeadLetterWorklist;
import dev.outbox4j.dlq.Redrive;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxRole;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.SchemaValidator;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.LeaseRef;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Queue;
import java.util.UUID;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * A publisher and a subscriber with the grants of their roles and no others, from the first message
 * to the last; the dead letters are in a schema of their own.
 */
@ExtendWith(PostgresExtension.class)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class RolesIT {
  private static final OutboxTable TABLE = OutboxTable.named("outbox").inSchema("box");

  private final TestDatabase database;
  private final String suffix = UUID.randomUUID().toString().substring(0, 8);
  private final OutboxMigrations migrations =
      OutboxMigrations.of("box", "outbox").deadLetters("dead", "letters");

  RolesIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeAll
  void grant() {
    migrations.migrate(database.plain());
    for (String role : List.of("pub", "sub", "ops")) {
      database.update("create role \"%s\" login password 'secret'".formatted(role(role)));
    }
    database.update(migrations.grantsSql(role("pub"), role("sub"), role("ops")));
  }

  @AfterAll
  void revoke() {
    for (String role : List.of("pub", "sub", "ops")) {
      database.update("drop owned by \"%s\"".formatted(role(role)));
      database.update("drop role \"%s\"".formatted(role(role)));
    }
  }

  @Test
  void theSubscriberDeliversRetriesReschedulesAndDeadLetters() throws Exception {
    RecordedEvents events = new RecordedEvents();
    AtomicBoolean sent = new AtomicBoolean();
    try (HikariDataSource pool = pool("sub");
        OutboxSubscriber subscriber =
            subscriber(pool, events)
                .retry(RetryPolicy.constant(Duration.ofMillis(1)).attempts(2))
                .on("ok", (payload, delivery) -> {})
                .on(
                    "bad",
                    (Payload payload, Delivery delivery) -> {
                      throw new IllegalStateException("no");
                    })
                .on(
                    "later",
                    String.class,
                    (body, delivery) -> {
                      return sent.getAndSet(true)
                          ? Outcome.ack()
                          : Outcome.reschedule(Duration.ofMillis(1));
                    })
                .build()) {
      subscriber.start();
      await().until(() -> subscriber.health().healthy());

      publish("ok", "bad", "later");
      await().untilAsserted(() -> assertThat(events.acked).hasValue(2));
      await()
          .untilAsserted(() -> assertThat(events.deadLettered).containsExactly("retry_terminal"));
      assertThat(events.retried).hasSize(1);
      assertThat(events.rescheduled).hasSize(1);
    }
    assertThat(events.storeFailed).isEmpty();
    assertThat(database.count("box.outbox")).isZero();
    assertThat(database.count("dead.letters")).isEqualTo(1);
    assertThat(database.count("box.outbox_sleepers")).isZero();
  }

  @Test
  void aSubscriberThatStopsReleasesWhatNoWorkerHasBegun() throws Exception {
    RecordedEvents events = new RecordedEvents();
    Queue<Runnable> held = new ConcurrentLinkedQueue<>();
    try (HikariDataSource pool = pool("sub")) {
      OutboxSubscriber subscriber =
          subscriber(pool, events)
              .workers(2)
              .executor(held::add)
              .on("ok", (payload, delivery) -> {})
              .build();
      subscriber.start();
      publish("ok", "ok", "ok");
      await()
          .untilAsserted(
              () ->
                  assertThat(database.count("box.outbox where lease_until is not null"))
                      .isPositive());
      Thread stopping = new Thread(subscriber::stop, "stopping");
      stopping.start();
      await().untilAsserted(() -> assertThat(events.released).hasPositiveValue());
      for (Runnable task = held.poll(); task != null; task = held.poll()) {
        task.run();
      }
      stopping.join();
    }
    assertThat(events.storeFailed).isEmpty();
    assertThat(events.acked).hasValue(0);
    assertThat(database.count("box.outbox where lease_until is null")).isEqualTo(3);
    database.update("delete from box.outbox");
  }

  @Test
  void theOperatorHasTheWorklistAndTheSubscriberOpensALetterAgain() {
    for (long id = 900_001; id <= 900_004; id++) {
      database.update(
          """
          insert into dead.letters (outbox, original_id, lease_token, queue, ordering_key, payload,
            deliveries_count, attempts_count, created_at, available_at, failure_reason)
          values ('box.outbox', ?, 1, 'worklist', 'k', '', 1, 1, now(), now(), 'rejected')
          """,
          id);
    }
    DeadLetterQueue letters = DeadLetterQueue.in("dead", "letters");
    DeadLetterWorklist worklist =
        DeadLetterWorklist.of(PostgresOutbox.on(as("ops"), TABLE), letters);
    DeadLetterSelection all = worklist.where(queue("worklist"));
    List<Long> each = all.page(10).letters().stream().map(DeadLetterSummary::id).sorted().toList();
    Redrive ann = Redrive.by("ann");

    assertThat(all.count(10)).isEqualTo(4);
    assertThat(all.dryRun(ann).done()).isEqualTo(4);
    assertThat(worklist.where(ids(each.get(0))).redrive(ann).done()).isEqualTo(1);
    assertThat(worklist.redrive(each.get(1), DeadLetterEdit.type("x"), ann).done()).isEqualTo(1);
    worklist.where(ids(each.get(2))).redrive(ann.checking(letter -> Optional.of("no")));
    assertThat(worklist.find(each.get(2)).orElseThrow().summary().note())
        .contains("not redriven: no");
    assertThat(worklist.where(ids(each.get(3))).discard("ann", "x").done()).isEqualTo(1);
    assertThat(worklist.history(each.get(0))).hasSize(1);

    database.update(
        "update box.outbox set lease_until = now() + interval '1 minute', leased_by = 's',"
            + " lease_token = 2 where id = 900001");
    assertThat(
            letters
                .bind(PostgresOutbox.on(as("sub"), TABLE).store())
                .write(
                    List.of(
                        new DeadLetterEntry(
                            new LeaseRef("worklist", 900_001, 2), FailureReason.REJECTED, 1, "x")))
                .done())
        .containsExactly(900_001L);
    assertThat(all.count(10)).isEqualTo(2); // it, and the one that was refused

    assertThat(worklist.where(any().and(queue("worklist"))).purgeUnresolvedToo("ann").done())
        .isEqualTo(4);
    assertThat(worklist.audit(10))
        .extracting(DeadLetterAction::action)
        .containsExactly("purge", "discard", "redrive", "edit", "redrive");
    database.update("delete from box.outbox where queue = 'worklist'");
  }

  @Test
  void eachRoleMayLookWhetherItsSchemaIsRight() {
    for (OutboxRole role : OutboxRole.values()) {
      String name =
          switch (role) {
            case PUBLISHER -> "pub";
            case SUBSCRIBER -> "sub";
            case OPERATOR -> "ops";
          };
      assertThat(
              PostgresOutbox.on(as(name), TABLE)
                  .validator()
                  .checkStorage()
                  .checkGrants(role)
                  .validateSchema())
          .hasToString("valid");
    }
    assertThat(
            PostgresOutbox.on(as("sub"), TABLE)
                .validator()
                .deadLetters("dead", "letters")
                .checkGrants(OutboxRole.SUBSCRIBER)
                .validateSchema())
        .hasToString("valid");
    PostgresOutbox outbox = PostgresOutbox.on(as("ops"), TABLE);
    SchemaValidator validator =
        outbox.validator().deadLetters("dead", "letters").checkGrants(OutboxRole.OPERATOR);
    assertThat(outbox.healthCheck().validator(validator).queues("orders").check().healthy())
        .isTrue();
  }

  private OutboxSubscriber.Builder subscriber(HikariDataSource pool, RecordedEvents events) {
    return OutboxSubscriber.builder("orders")
        .store(PostgresOutbox.on(pool, TABLE).store())
        .listen(PgjdbcListen.on(as("sub")))
        .deadLetters(DeadLetterQueue.in("dead", "letters"))
        .maxDeliveries(100)
        .events(events);
  }

  private void publish(String... types) throws SQLException {
    try (Connection connection = as("pub").getConnection()) {
      connection.setAutoCommit(false);
      for (String type : types) {
        PostgresOutbox.publisher(TABLE)
            .build()
            .publish(
                connection,
                OutboxMessage.to("orders").type(type).header("h", "v").body("x").build());
      }
      connection.commit();
    }
  }

  private String role(String name) {
    return name + " " + suffix;
  }

  private PGSimpleDataSource as(String role) {
    PGSimpleDataSource source = database.plain();
    source.setUser(role(role));
    source.setPassword("secret");
    return source;
  }

  private HikariDataSource pool(String role) {
    HikariConfig config = new HikariConfig();
    config.setDataSource(as(role));
    config.setMaximumPoolSize(3);
    return new HikariDataSource(config);
  }
}
