package dev.outbox4j.examples.misuse;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.SubscriberState;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxRole;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.SchemaReport;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * A database that is not as the service thinks, and starts and stops in the wrong order; with the
 * words in which the user is told.
 */
@ExtendWith(PostgresExtension.class)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@Tag("once")
class DatabaseMisusesIT {
  private static final String NO_TABLE =
      "a table or function that it needs does not exist or is not on the search path; run the"
          + " migrations of OutboxMigrations (with Spring Boot: outbox4j.migrate=true), or correct"
          + " its name or schema [42P01:";
  private static final String UNREACHABLE =
      "check that the server runs, that its address is right, and that the pool has a free connection";
  private static final String REFUSED = "check user, password and database name";

  private final TestDatabase database;
  private Shop shop;

  DatabaseMisusesIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeAll
  void open() {
    shop = new Shop(database);
  }

  private OutboxSubscriber subscriber(DataSource source, OutboxTable table) {
    return shop.subscriber("orders")
        .store(PostgresOutbox.on(source, table).store())
        .otherwise((body, delivery) -> {})
        .build();
  }

  /** The log and the health of a subscriber that cannot claim. */
  private void assertClaimsFail(DataSource source, OutboxTable table, String words) {
    try (Told told = new Told();
        OutboxSubscriber subscriber = subscriber(source, table)) {
      subscriber.start();
      told.awaitLine(
          "WARN [orders] claim failed and will be tried again: claim on " + table, words);
      SubscriberHealth health = subscriber.health();
      assertThat(health.healthy()).isFalse();
      assertThat(health.lastFailure()).hasValueSatisfying(text -> assertThat(text).contains(words));
    }
  }

  private static void assertReported(SchemaReport report, String... words) {
    assertThat(report.valid()).isFalse();
    assertThat(report.toString()).contains(words);
    assertThatThrownBy(report::requireValid).hasMessageContaining(words[0]);
  }

  @Test
  void wrongTable() {
    OutboxTable table = OutboxTable.named("outbx");
    assertClaimsFail(shop.pool(), table, NO_TABLE);
    assertReported(
        PostgresOutbox.on(shop.pool(), table).validator().validateSchema(),
        "table outbx: expected the outbox table, found none on the search path",
        "to fix it: apply the migrations, or name the schema with inSchema(...)");
  }

  @Test
  void missingMigration() {
    database.update("create schema bare");
    OutboxTable table = OutboxTable.named("outbox").inSchema("bare");
    assertClaimsFail(shop.pool(), table, NO_TABLE);
    assertReported(
        PostgresOutbox.on(shop.pool(), table).validator().validateSchema(),
        "table bare.outbox: expected the outbox table, found no such table",
        "to fix it: apply the migrations");
  }

  @Test
  void columnThatIsMissing() {
    OutboxMigrations.of("old", "outbox").migrate(shop.pool());
    database.update("alter table old.outbox drop column leased_at");
    OutboxTable table = OutboxTable.named("outbox").inSchema("old");
    assertClaimsFail(
        shop.pool(), table, "has not the columns this version needs; run the migrations");
    assertReported(
        PostgresOutbox.on(shop.pool(), table).validator().validateSchema(),
        "column old.outbox.leased_at:",
        "to fix it: alter table \"old\".\"outbox\" add column \"leased_at\"");
  }

  @Test
  void missingRights() {
    PGSimpleDataSource stranger = shop.stranger();
    try {
      assertClaimsFail(
          stranger,
          Shop.TABLE,
          "a right is missing; grant the database user what it needs on table outbox, its sleepers and its dead letters: OutboxMigrations.grantsSql(...) prints it, and validator().checkGrants(...) says what is missing [42501:");
      assertReported(
          PostgresOutbox.on(stranger, Shop.TABLE)
              .validator()
              .checkGrants(OutboxRole.SUBSCRIBER)
              .validateSchema(),
          "grant on public.outbox: expected select for role " + stranger.getUser() + ", found none",
          "to fix it: grant select on \"public\".\"outbox\" to \"" + stranger.getUser() + "\"");
    } finally {
      shop.forget(stranger);
    }
  }

  @Test
  void unknownHost() {
    PGSimpleDataSource source = database.plain();
    source.setServerNames(new String[] {"no-such-host.invalid"});
    assertClaimsFail(source, Shop.TABLE, UNREACHABLE);
    assertReported(
        PostgresOutbox.on(source, Shop.TABLE).validator().validateSchema(),
        "database not reachable",
        "to fix it: " + UNREACHABLE);
  }

  @Test
  void wrongUser() {
    PGSimpleDataSource source = database.plain();
    source.setUser("nobody_of_that_name");
    assertClaimsFail(source, Shop.TABLE, REFUSED);
    assertReported(
        PostgresOutbox.on(source, Shop.TABLE).validator().validateSchema(),
        "database refused the connection",
        "to fix it: " + REFUSED);
  }

  @Test
  void wrongDatabase() {
    PGSimpleDataSource source = database.plain();
    source.setDatabaseName("no_such_database");
    assertClaimsFail(source, Shop.TABLE, REFUSED);
  }

  @Test
  void wrongUserForListen() {
    PGSimpleDataSource source = database.plain();
    source.setUser("nobody_of_that_name");
    try (Told told = new Told();
        OutboxSubscriber subscriber =
            shop.subscriber("orders")
                .listen(PgjdbcListen.on(source))
                .otherwise((body, delivery) -> {})
                .build()) {
      subscriber.start();
      told.awaitLine(
          "WARN LISTEN on channel ",
          " by pgjdbc is out: ",
          REFUSED,
          "find messages by polling meanwhile");
      assertThat(subscriber.health().listener()).isEqualTo(SubscriberHealth.Listener.DOWN);
      assertThat(subscriber.health().healthy()).isFalse();
    }
  }

  @Test
  void missingDeadLetterTable() throws SQLException {
    try (Told told = new Told();
        OutboxSubscriber subscriber =
            shop.subscriber("lost")
                .deadLetters(DeadLetterQueue.in("no_such_dlq"))
                .on(
                    "t",
                    String.class,
                    (String body, Delivery delivery) -> {
                      throw new IllegalStateException(body);
                    })
                .build()) {
      subscriber.start();
      shop.publish("lost", "t", "x");
      told.awaitLine(
          "WARN [lost] dead_letter failed and will be tried again: dead-letter to no_such_dlq on outbox failed: "
              + NO_TABLE,
          "relation \"no_such_dlq\" does not exist");
      await().untilAsserted(() -> assertThat(subscriber.health().deadLettersWaiting()).isOne());
      assertThat(subscriber.health().healthy()).isFalse();
    }
    assertReported(
        PostgresOutbox.on(shop.pool(), Shop.TABLE)
            .validator()
            .deadLetters("no_such_dlq")
            .validateSchema(),
        "table no_such_dlq:",
        "to fix it: apply the migrations");
    assertThat(database.count("outbox where queue = 'lost'")).isOne();
    database.update("delete from outbox where queue = 'lost'");
  }

  /** It is no misuse: a subscriber sets the isolation of its own statements. */
  @Test
  void poolAtSerializable() throws SQLException {
    HikariConfig config = new HikariConfig();
    config.setDataSource(database.plain());
    config.setMaximumPoolSize(3);
    config.setTransactionIsolation("TRANSACTION_SERIALIZABLE");
    List<String> handled = new CopyOnWriteArrayList<>();
    try (Told told = new Told();
        HikariDataSource pool = new HikariDataSource(config);
        OutboxSubscriber subscriber =
            shop.subscriber("serializable")
                .store(PostgresOutbox.on(pool, Shop.TABLE).store())
                .on(
                    "t",
                    String.class,
                    (body, delivery) -> {
                      handled.add(body);
                    })
                .build()) {
      subscriber.start();
      shop.publish("serializable", "t", "x");
      await().untilAsserted(() -> assertThat(handled).containsExactly("x"));
      await()
          .untilAsserted(
              () -> assertThat(database.count("outbox where queue = 'serializable'")).isZero());
      assertThat(told.lines()).isEmpty();
    }
  }

  @Test
  void poolThatIsClosedBeforeTheSubscriber() {
    HikariDataSource pool = database.pool(2);
    try (Told told = new Told();
        OutboxSubscriber subscriber = subscriber(pool, Shop.TABLE)) {
      subscriber.start();
      await().until(() -> subscriber.health().healthy());
      pool.close();
      told.awaitLine(
          "WARN [orders] claim failed and will be tried again:",
          "the pool has been closed; stop the subscriber before that");
    }
  }

  /** What the documents call harmless is. */
  @Test
  void startsAndStopsOutOfOrder() {
    OutboxSubscriber subscriber = subscriber(shop.pool(), Shop.TABLE);
    try (Told told = new Told()) {
      subscriber.stop();
      subscriber.start();
      subscriber.start();
      await().until(() -> subscriber.health().healthy());
      subscriber.stop();
      subscriber.stop();
      assertThat(subscriber.health().state()).isEqualTo(SubscriberState.STOPPED);
      subscriber.start();
      await().until(() -> subscriber.health().healthy());
      assertThat(told.lines()).isEmpty();
    } finally {
      subscriber.stop();
    }
  }

  /** A main method that fails after start() leaves a process that goes on, unless it says so. */
  @Test
  void failureAfterTheStart() throws Exception {
    OutboxSubscriber subscriber =
        shop.subscriber("orders").name("forgotten").otherwise((body, delivery) -> {}).build();
    assertThatThrownBy(
            () -> {
              try (subscriber) {
                subscriber.start();
                assertThat(threads("outbox-forgotten")).isNotEmpty().allMatch(t -> !t.isDaemon());
                throw new IllegalStateException("the service did not start");
              }
            })
        .isInstanceOf(IllegalStateException.class);
    await()
        .atMost(Duration.ofSeconds(10))
        .untilAsserted(() -> assertThat(threads("outbox-forgotten")).isEmpty());

    assertThat(Files.readString(Path.of("..", "docs", "subscribing.md")).replaceAll("\\s+", " "))
        .contains("keep the JVM alive until `stop()`");
  }

  private static List<Thread> threads(String prefix) {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith(prefix))
        .toList();
  }
}
