package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.postgresql.util.PSQLException;

/** Transactions that are prepared and committed later, as those of XA are. */
@ExtendWith(PostgresExtension.class)
class PublishTwoPhaseCommitIT {
  private final TestDatabase database;

  PublishTwoPhaseCommitIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void empty() {
    assumeThat(
            database.one(Integer.class, "select current_setting('max_prepared_transactions')::int"))
        .as("the server allows prepared transactions")
        .isPositive();
    database.update("truncate outbox, outbox_sleepers");
  }

  private void asleep() {
    database.update(
        "insert into outbox_sleepers values ('q', 's', clock_timestamp() + interval '1 hour', false, now())");
  }

  private void publishAndPrepare(NotifyMode mode, PublishShape shape, String isolation)
      throws SQLException {
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement()) {
      connection.setAutoCommit(false);
      statement.execute("set transaction isolation level " + isolation);
      OutboxPublisher publisher = PostgresOutbox.publisher(database.table()).notify(mode).build();
      shape.publish(
          List.of(shape.timer(OutboxMessage.to("q"), "t").build(), OutboxMessage.to("q").build()),
          messages -> publisher.publish(connection, messages));
      statement.execute("prepare transaction 'two-phase'");
    }
  }

  @ParameterizedTest
  @EnumSource
  void modeNeverCanBePreparedWhileSomebodySleeps(PublishShape shape) throws SQLException {
    asleep();
    publishAndPrepare(NotifyMode.NEVER, shape, "serializable");
    assertThat(database.count("outbox")).isZero();
    database.update("commit prepared 'two-phase'");
    assertThat(database.count("outbox")).isEqualTo(2);
  }

  @ParameterizedTest
  @CsvSource({"AUTO,read committed", "ALWAYS,read committed", "AUTO,repeatable read"})
  void otherModesAreRefusedByTheServerWhileSomebodySleeps(NotifyMode mode, String isolation) {
    asleep();
    for (PublishShape shape : PublishShape.values()) {
      assertThatThrownBy(() -> publishAndPrepare(mode, shape, isolation))
          .isInstanceOf(PSQLException.class)
          .hasMessageContaining("cannot PREPARE a transaction that has executed")
          .hasMessageContaining("NOTIFY");
    }
    assertThat(database.count("outbox")).isZero();
  }

  /** So tests in which nobody subscribes do not show that the mode is wrong. */
  @ParameterizedTest
  @EnumSource
  void modeAutoCanBePreparedWhileNobodySleeps(PublishShape shape) throws SQLException {
    publishAndPrepare(NotifyMode.AUTO, shape, "read committed");
    database.update("rollback prepared 'two-phase'");
    assertThat(database.count("outbox")).isZero();
  }
}
