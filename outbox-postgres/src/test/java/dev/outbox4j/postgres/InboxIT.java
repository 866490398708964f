package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.migrations.InboxMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What an inbox remembers, and for whom. */
@ExtendWith(PostgresExtension.class)
class InboxIT {
  private final TestDatabase database;
  private final Inbox inbox = Inbox.in("inbox");

  InboxIT(TestDatabase database) {
    this.database = database;
    InboxMigrations.of("public", "inbox").migrate(database.plain());
  }

  @BeforeEach
  void empty() {
    database.update("truncate inbox");
  }

  private Connection begin() throws SQLException {
    Connection connection = database.plain().getConnection();
    connection.setAutoCommit(false);
    return connection;
  }

  private boolean add(Inbox inbox, String queue, String key) throws SQLException {
    try (Connection connection = begin()) {
      boolean added = inbox.add(connection, queue, key);
      connection.commit();
      return added;
    }
  }

  @Test
  void aMessageIsNewOnceForEachQueueAndKey() throws SQLException {
    assertThat(add(inbox, "orders", "1")).isTrue();
    assertThat(add(inbox, "orders", "1")).isFalse();
    assertThat(add(inbox, "orders", "2")).isTrue();
    assertThat(add(inbox, "returns", "1")).isTrue();
    assertThat(
            database.one(
                Boolean.class,
                "select expires_at - processed_at = interval '30 days' from inbox"
                    + " where queue = 'returns'"))
        .isTrue();
  }

  @Test
  void whatIsRolledBackIsNotRemembered() throws SQLException {
    try (Connection connection = begin()) {
      assertThat(inbox.add(connection, "orders", "1")).isTrue();
      connection.rollback();
    }
    assertThat(add(inbox, "orders", "1")).isTrue();
  }

  @Test
  void whatHasExpiredIsNewAgainAndThenRemembered() throws SQLException {
    add(inbox, "orders", "1");
    database.update("update inbox set expires_at = now()");
    assertThat(add(inbox, "orders", "1")).isTrue();
    assertThat(add(inbox, "orders", "1")).isFalse();
  }

  @Test
  void ofTwoAtOnceTheSecondWaitsAndIsNewOnlyIfTheFirstRollsBack() throws Exception {
    for (boolean commits : new boolean[] {true, false}) {
      String key = "commits " + commits;
      try (Connection first = begin()) {
        assertThat(inbox.add(first, "orders", key)).isTrue();
        CompletableFuture<Boolean> second =
            CompletableFuture.supplyAsync(
                () -> {
                  try {
                    return add(inbox, "orders", key);
                  } catch (SQLException e) {
                    throw new IllegalStateException(e);
                  }
                });
        await().until(() -> waiting() == 1);
        assertThat(second).isNotDone();
        if (commits) {
          first.commit();
        } else {
          first.rollback();
        }
        assertThat(second.get(20, TimeUnit.SECONDS)).isEqualTo(!commits);
      }
    }
  }

  private long waiting() {
    return database.one(
        Long.class,
        "select count(*) from pg_stat_activity where datname = current_database()"
            + " and wait_event_type = 'Lock'");
  }

  @Test
  void refusesAConnectionInAutocommitMode() throws SQLException {
    try (Connection connection = database.plain().getConnection()) {
      assertThatThrownBy(() -> inbox.add(connection, "orders", "1"))
          .isInstanceOf(SQLException.class)
          .hasMessageContaining("setAutoCommit(false)");
    }
    assertThat(database.count("inbox")).isZero();
  }

  @Test
  void refusesBadNamesTimesAndLimits() throws SQLException {
    try (Connection connection = begin()) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> inbox.add(connection, " ", "1"))
          .withMessageContaining("queue is blank");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> inbox.add(connection, "orders", "x".repeat(256)))
          .withMessageContaining("key has 256 bytes");
      assertThat(inbox.add(connection, "orders", "x".repeat(255))).isTrue();
    }
    assertThatIllegalArgumentException()
        .isThrownBy(() -> inbox.timeToLive(Duration.ofMillis(999)))
        .withMessageContaining("it must be PT1S to");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> inbox.purge(database.plain(), 0))
        .withMessageContaining("it must be 1 to 100000");
    assertThatIllegalArgumentException().isThrownBy(() -> Inbox.in("x".repeat(37)));
  }

  @Test
  void purgesWhatHasExpiredTheOldestFirst() throws SQLException {
    for (int i = 0; i < 10; i++) {
      add(inbox, "orders", "k" + i);
    }
    database.update(
        "update inbox set expires_at = now() - make_interval(mins => substr(message_key, 2)::int)"
            + " where message_key <= 'k7'");
    assertThat(inbox.purge(database.pool(1), 3)).isEqualTo(3);
    assertThat(database.list(String.class, "select message_key from inbox order by 1"))
        .containsExactly("k0", "k1", "k2", "k3", "k4", "k8", "k9");
    assertThat(inbox.purge(database.plain(), 100)).isEqualTo(5);
    assertThat(inbox.purge(database.plain(), 100)).isZero();
    assertThat(database.count("inbox")).isEqualTo(2);
  }

  @Test
  void aRoleNeedsTheGrantsAndNoMore() throws SQLException {
    String role = "inbox_" + database.name();
    database.update("create role \"" + role + "\"");
    try (Connection connection = begin();
        Statement statement = connection.createStatement()) {
      statement.execute(InboxMigrations.of("public", "inbox").grantsSql(role));
      connection.commit();
      statement.execute("set role \"" + role + "\"");
      assertThat(inbox.add(connection, "orders", "1")).isTrue();
      assertThat(inbox.add(connection, "orders", "1")).isFalse();
      connection.rollback();
    } finally {
      database.update("drop owned by \"" + role + "\"");
      database.update("drop role \"" + role + "\"");
    }
  }
}
