package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Collection;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What a publisher's role needs, and that it needs no more. */
@ExtendWith(PostgresExtension.class)
class PublishGrantsIT {
  private static final String INSERT =
      "insert (queue, type, ordering_key, payload, headers, available_at, timer_id, expires_at) on outbox";
  private static final String SELECT = "select (id, queue, timer_id, available_at) on outbox";
  private static final String SLEEPERS = "select (queue, wake_at) on outbox_sleepers";
  private static final String DELETE = "delete on outbox";
  private static final String LEASE = "select (queue, timer_id, lease_until) on outbox";

  private final TestDatabase database;
  private final String role = "publisher_" + UUID.randomUUID().toString().replace('-', '_');

  PublishGrantsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void create() {
    database.update("truncate outbox");
    database.update("create role " + role);
  }

  @AfterEach
  void drop() {
    database.update("drop owned by " + role);
    database.update("drop role " + role);
  }

  private void grant(String... privileges) {
    for (String privilege : privileges) {
      database.update("grant " + privilege + " to " + role);
    }
  }

  private void asRole(NotifyMode mode, Collection<OutboxMessage> messages) {
    asRole(
        connection ->
            PostgresOutbox.publisher(database.table())
                .notify(mode)
                .build()
                .publish(connection, messages));
  }

  private void cancelAsRole() {
    asRole(
        connection ->
            PostgresOutbox.publisher(database.table()).build().cancelTimer(connection, "q", "t"));
  }

  private void asRole(java.util.function.Consumer<Connection> work) {
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("set role " + role);
      connection.setAutoCommit(false);
      work.accept(connection);
      connection.commit();
    } catch (SQLException e) {
      throw new AssertionError(e);
    }
  }

  private void publishAsRole(NotifyMode mode, PublishShape shape) {
    shape.publish(
        List.of(
            OutboxMessage.to("q").type("t").orderingKey("k").header("a", "b").body("x").build(),
            shape.timer(OutboxMessage.to("q"), "t").build(),
            shape.timer(OutboxMessage.to("q"), "t").build()),
        messages -> {
          asRole(mode, messages);
          return List.of();
        });
  }

  /** The columns that the statement looks at, in the mode that looks. */
  private static List<String> columnsRead(PublishShape shape) {
    return switch (shape) {
      case SINGLE -> List.of("id", "queue", "available_at");
      case PLAIN -> List.of("id");
      case TIMERS -> List.of("id", "queue", "timer_id", "available_at");
    };
  }

  @ParameterizedTest
  @EnumSource
  void publishesWithTheGrantsThatItsJavadocNames(PublishShape shape) {
    grant(INSERT, SELECT, SLEEPERS);
    publishAsRole(NotifyMode.AUTO, shape);
    publishAsRole(NotifyMode.ALWAYS, shape);
    assertThat(database.count("outbox")).isEqualTo(shape == PublishShape.TIMERS ? 3 : 6);
  }

  @ParameterizedTest
  @EnumSource
  void needsNothingOfTheSleepersIfItNeverNotifies(PublishShape shape) {
    grant(INSERT, SELECT);
    assertThatCode(() -> publishAsRole(NotifyMode.NEVER, shape)).doesNotThrowAnyException();
  }

  @Test
  void publishesThroughTheFunctionWithTheSameGrants() {
    grant(INSERT, SELECT, SLEEPERS);
    asRole(
        connection -> {
          try (Statement statement = connection.createStatement()) {
            statement.execute(
                "select outbox_publish('q', '', timer_id => 't'), outbox_publish('q', '', timer_id => 't')");
          } catch (SQLException e) {
            throw new AssertionError(e);
          }
        });
    assertThat(database.count("outbox")).isEqualTo(1);
  }

  /** Why the order of ids is that of insertion, and not chosen by the publisher. */
  @Test
  void mayNeitherTakeIdsFromTheSequenceNorChooseThem() {
    grant(INSERT, SELECT, SLEEPERS);
    for (String sql :
        List.of(
            "select nextval(pg_get_serial_sequence('outbox', 'id'))",
            "insert into outbox (id, queue, payload) values (1, 'q', '')")) {
      asRole(
          connection -> {
            try (Statement statement = connection.createStatement()) {
              assertThatThrownBy(() -> statement.execute(sql))
                  .isInstanceOfSatisfying(
                      SQLException.class, e -> assertThat(e.getSQLState()).isEqualTo("42501"));
            } catch (SQLException e) {
              throw new AssertionError(e);
            }
          });
    }
  }

  @Test
  void cancelsTimersWithTwoMore() {
    grant(DELETE, LEASE);
    assertThatCode(this::cancelAsRole).doesNotThrowAnyException();
  }

  @ParameterizedTest
  @EnumSource
  void saysThatAGrantIsMissing(PublishShape shape) {
    assertRefused(() -> publishAsRole(NotifyMode.AUTO, shape), "publish");
    grant(INSERT, SELECT);
    assertRefused(() -> publishAsRole(NotifyMode.AUTO, shape), "publish");
    database.update("revoke " + INSERT + " from " + role);
    grant(SLEEPERS);
    assertRefused(() -> publishAsRole(NotifyMode.AUTO, shape), "publish");
    grant(INSERT);
    for (String column : columnsRead(shape)) {
      database.update("revoke select (" + column + ") on outbox from " + role);
      assertRefused(() -> publishAsRole(NotifyMode.AUTO, shape), "publish");
      grant("select (" + column + ") on outbox");
    }
    assertRefused(this::cancelAsRole, "cancelTimer");
    assertThat(database.count("outbox")).isZero();
  }

  private static void assertRefused(Runnable work, String operation) {
    assertThatThrownBy(work::run)
        .isInstanceOfSatisfying(
            OutboxStoreException.class,
            e -> assertThat(e.fault()).isEqualTo(OutboxStoreException.Fault.SETUP))
        .hasMessageContaining(operation + " on outbox failed")
        .hasMessageContaining("permission denied")
        .hasMessageContaining("grant");
  }
}
