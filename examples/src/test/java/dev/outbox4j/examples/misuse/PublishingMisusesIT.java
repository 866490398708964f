package dev.outbox4j.examples.misuse;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.Payload;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.examples.misuse.Shop.Order;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.QueueDepth;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.PayloadCodec;
import java.lang.reflect.Type;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** What goes wrong with publishing, and the words in which the user is told. */
@ExtendWith(PostgresExtension.class)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@Tag("once")
class PublishingMisusesIT {
  private static final OutboxMessage MESSAGE = OutboxMessage.to("orders").body("x").build();

  private final TestDatabase database;
  private Shop shop;

  PublishingMisusesIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeAll
  void open() {
    shop = new Shop(database);
  }

  /** A codec of the user's. */
  private record Encoder(Callable<Payload> encoding) implements PayloadCodec {
    @Override
    public String contentType() {
      return "text/plain";
    }

    @Override
    public Payload encode(Object body) throws Exception {
      return encoding.call();
    }

    @Override
    public Object decode(Payload from, Map<String, String> headers, Type type) {
      return from;
    }
  }

  @Test
  void connectionInAutocommitMode() throws SQLException {
    try (Connection connection = shop.pool().getConnection()) {
      assertThatThrownBy(() -> shop.publisher().publish(connection, MESSAGE))
          .isInstanceOf(OutboxException.class)
          .hasMessageContaining("the connection is in autocommit mode")
          .hasMessageContaining(
              "begin a transaction first, or build the publisher with allowAutoCommit()");
    }
  }

  /** JDBC cannot tell whether somebody will commit, so all there is is the warning in the guide. */
  @Test
  void connectionOfItsOwnFromAPoolWithAutocommitOffThatNobodyCommits() throws Exception {
    PGSimpleDataSource source = database.plain();
    try (Connection connection = source.getConnection()) {
      connection.setAutoCommit(false); // as such a pool does
      assertThat(
              shop.publisher()
                  .publish(connection, OutboxMessage.to("uncommitted").body("x").build())
                  .rowId())
          .isPresent();
    }
    assertThat(database.count("outbox where queue = 'uncommitted'")).isZero();

    assertThat(Files.readString(Path.of("..", "docs", "publishing.md")).replaceAll("\\s+", " "))
        .contains(
            "**A pool with autocommit off hides a missing transaction.**",
            "publish on the connection that your own statements use");
  }

  @Test
  void bodyThatNeedsACodecWhereThereIsNone() throws SQLException {
    assertRefused(
        shop.publisher(),
        OutboxMessage.to("orders").body(new Order("o-1")).build(),
        "the publisher has none; set one with codec(...), with Spring Boot by a JSON mapper or a"
            + " PayloadCodec bean, or give the body as bytes, Payload or String");
  }

  @Test
  void codecThatThrows() throws SQLException {
    PayloadCodec codec =
        new Encoder(
            () -> {
              throw new IllegalStateException("no key for it");
            });
    assertRefused(
        PostgresOutbox.publisher(Shop.TABLE).codec(codec).build(),
        OutboxMessage.to("orders").body(new Order("o-1")).build(),
        "it threw java.lang.IllegalStateException, the cause of this");
  }

  @Test
  void codecThatReturnsNull() throws SQLException {
    assertRefused(
        PostgresOutbox.publisher(Shop.TABLE).codec(new Encoder(() -> null)).build(),
        OutboxMessage.to("orders").body(new Order("o-1")).build(),
        "it returned null; it must return a payload or throw");
  }

  @Test
  void dateForJackson2WithoutItsModule() throws SQLException {
    OutboxPublisher publisher =
        PostgresOutbox.publisher(Shop.TABLE).codec(Jackson2Codec.of(new JsonMapper())).build();
    try (Connection tx = transaction()) {
      assertThatThrownBy(
              () -> publisher.publish(tx, OutboxMessage.to("q").body(Instant.EPOCH).build()))
          .isInstanceOf(OutboxException.class)
          .cause()
          .hasMessageContaining("jackson-datatype-jsr310");
    }
  }

  @Test
  void bodyOfNull() {
    assertThatNullPointerException()
        .isThrownBy(() -> OutboxMessage.to("orders").body(null))
        .withMessage("body is null; leave body(...) out for a message without one");
  }

  @Test
  void badValues() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMessage.to(" "))
        .withMessage("queue is blank; give it a name");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMessage.to("orders").type("x".repeat(256)))
        .withMessage("type is 256 bytes long; at most 255 are allowed");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMessage.to("orders").header("tenant", "a\0b"))
        .withMessage(
            "header 'tenant' has a NUL character at position 1; PostgreSQL cannot store it, remove it");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMessage.to("orders").deliverIn(Duration.ofSeconds(-1)))
        .withMessage("deliverIn is PT-1S; it must be zero or more");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMessage.to("o").deliverIn(Duration.ZERO).deliverAt(Instant.EPOCH))
        .withMessage("deliverIn and deliverAt are both set; set one of them");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxTable.named("sales.outbox"))
        .withMessageContaining("name the schema with inSchema(...)");
  }

  @Test
  void wrongTable() throws SQLException {
    assertRefused(
        PostgresOutbox.publisher(OutboxTable.named("outbx")).build(),
        MESSAGE,
        "publish on outbx failed: a table or function that it needs does not exist or is not on the search path; run the migrations of OutboxMigrations (with Spring Boot: outbox4j.migrate=true), or correct its name or schema [42P01:");
  }

  @Test
  void missingRight() throws SQLException {
    PGSimpleDataSource stranger = shop.stranger();
    try (Connection tx = stranger.getConnection()) {
      tx.setAutoCommit(false);
      assertThatThrownBy(() -> shop.publisher().publish(tx, MESSAGE))
          .isInstanceOf(OutboxStoreException.class)
          .hasMessageContaining(
              "a right is missing; grant the database user what it needs on table outbox");
    } finally {
      shop.forget(stranger);
    }
  }

  @Test
  void readOnlyTransaction() throws SQLException {
    try (Connection tx = transaction()) {
      tx.setReadOnly(true);
      assertThatThrownBy(() -> shop.publisher().publish(tx, MESSAGE))
          .isInstanceOf(OutboxStoreException.class)
          .hasMessageContaining("the transaction was begun so")
          .hasMessageContaining("look where the address leads")
          .hasMessageContaining("and at the transaction");
    }
  }

  @Test
  void transactionThatHasFailedBefore() throws SQLException {
    try (Connection tx = transaction();
        Statement statement = tx.createStatement()) {
      assertThatThrownBy(() -> statement.execute("select 1 / 0")).isInstanceOf(SQLException.class);
      assertThatThrownBy(() -> shop.publisher().publish(tx, MESSAGE))
          .isInstanceOf(OutboxStoreException.class)
          .hasMessageContaining("roll it back, and look for what failed first");
    }
  }

  @Test
  void closedConnection() throws SQLException {
    try (Connection tx = database.plain().getConnection()) {
      tx.setAutoCommit(false);
      tx.close();
      assertThatThrownBy(() -> shop.publisher().publish(tx, MESSAGE))
          .isInstanceOf(OutboxStoreException.class)
          .hasMessageContaining("the connection is closed");
    }
  }

  @Test
  void typoInTheQueuesName() throws SQLException {
    shop.publish("ordrs", "order.placed", "o-1");

    assertThat(PostgresOutbox.on(shop.pool(), Shop.TABLE).depths())
        .filteredOn(depth -> depth.ready() > 0)
        .extracting(QueueDepth::queue)
        .contains("ordrs");
  }

  private Connection transaction() throws SQLException {
    Connection tx = database.plain().getConnection();
    tx.setAutoCommit(false);
    return tx;
  }

  private void assertRefused(OutboxPublisher publisher, OutboxMessage message, String words)
      throws SQLException {
    try (Connection tx = transaction()) {
      assertThatThrownBy(() -> publisher.publish(tx, message))
          .isInstanceOf(OutboxException.class)
          .hasMessageContaining(words);
    }
  }
}
