package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;

@ExtendWith(PostgresExtension.class)
class PublishNotifyIT {
  private final TestDatabase database;
  private Connection listener;

  PublishNotifyIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void listen() throws SQLException {
    database.update("truncate outbox, outbox_sleepers");
    listener = database.plain().getConnection();
    try (Statement statement = listener.createStatement()) {
      statement.execute("listen outbox_outbox");
    }
  }

  @AfterEach
  void close() throws SQLException {
    listener.close();
  }

  private static OutboxMessage now(String queue) {
    return OutboxMessage.to(queue).build();
  }

  private static OutboxMessage in(String queue, Duration delay) {
    return OutboxMessage.to(queue).deliverIn(delay).build();
  }

  private static OutboxMessage timer(String queue) {
    return OutboxMessage.to(queue).timerId("t").build();
  }

  private void asleep(String queue, String interval) {
    database.update(
        "insert into outbox_sleepers values (?, ?, clock_timestamp() + ?::interval, false, 'infinity')",
        queue,
        UUID.randomUUID().toString(),
        interval);
  }

  private void publish(PublishApi api, NotifyMode mode, OutboxMessage... messages) {
    api.publish(
        database, PostgresOutbox.publisher(database.table()).notify(mode), List.of(messages));
  }

  /** Returns the queues that were notified since the last call: a marker tells that all are in. */
  private List<String> notified() throws SQLException {
    String marker = "marker " + UUID.randomUUID();
    database.one(String.class, "select pg_notify('outbox_outbox', ?)::text", marker);
    List<String> queues = new ArrayList<>();
    Instant deadline = Instant.now().plusSeconds(20);
    while (Instant.now().isBefore(deadline)) {
      for (PGNotification notification :
          listener.unwrap(PGConnection.class).getNotifications(1_000)) {
        if (notification.getParameter().equals(marker)) {
          return queues;
        }
        queues.add(notification.getParameter());
      }
    }
    throw new AssertionError("the marker did not arrive; before it came " + queues);
  }

  @ParameterizedTest
  @EnumSource
  void autoNotifiesNobodyWhileNobodySleeps(PublishApi api) throws SQLException {
    publish(api, NotifyMode.AUTO, now("a"), now("b"));
    assertThat(notified()).isEmpty();
  }

  @ParameterizedTest
  @EnumSource
  void autoNotifiesOncePerQueueOfASleeper(PublishApi api) throws SQLException {
    asleep("a", "10 seconds");
    asleep("a", "1 minute");
    asleep("b", "10 seconds");
    asleep("c", "10 seconds");
    publish(api, NotifyMode.AUTO, now("a"), now("b"), now("a"), now("awake"), now("a"));
    assertThat(notified()).containsExactlyInAnyOrder("a", "b");
  }

  @ParameterizedTest
  @EnumSource
  void autoDoesNotNotifyASleeperThatIsAboutToWake(PublishApi api) throws SQLException {
    asleep("a", "-1 millisecond");
    publish(api, NotifyMode.AUTO, now("a"));
    assertThat(notified()).isEmpty();
  }

  @ParameterizedTest
  @EnumSource
  void delayedMessagesNotifyIfTheyAreDueBeforeASleeperWakes(PublishApi api) throws SQLException {
    asleep("a", "1 minute");
    for (NotifyMode mode : List.of(NotifyMode.AUTO, NotifyMode.ALWAYS)) {
      publish(api, mode, in("a", Duration.ofMinutes(2)));
      assertThat(notified()).isEmpty();
      publish(api, mode, in("a", Duration.ofMinutes(2)), in("a", Duration.ofSeconds(10)));
      assertThat(notified()).containsExactly("a");
      publish(
          api,
          mode,
          OutboxMessage.to("a").deliverAt(Instant.now().plusSeconds(3_600)).build(),
          in("b", Duration.ofSeconds(1)));
      assertThat(notified()).isEmpty();
    }
  }

  @ParameterizedTest
  @EnumSource
  void alwaysNotifiesOncePerQueueWithAMessageThatIsDue(PublishApi api) throws SQLException {
    publish(
        api,
        NotifyMode.ALWAYS,
        now("a"),
        now("b"),
        now("a"),
        in("late", Duration.ofMinutes(1)),
        OutboxMessage.to("past").deliverAt(Instant.EPOCH).build());
    assertThat(notified()).containsExactlyInAnyOrder("a", "b", "past");
  }

  @ParameterizedTest
  @EnumSource
  void neverNotifiesNobody(PublishApi api) throws SQLException {
    asleep("a", "1 minute");
    publish(api, NotifyMode.NEVER, now("a"));
    assertThat(notified()).isEmpty();
  }

  @ParameterizedTest
  @EnumSource
  void aMessageAloneNotifiesAsOneAmongOthers(PublishApi api) throws SQLException {
    OutboxMessage soon = OutboxMessage.to("a").deliverAt(Instant.now().plusSeconds(20)).build();
    OutboxMessage past = OutboxMessage.to("a").deliverAt(Instant.EPOCH).build();
    OutboxMessage late = OutboxMessage.to("a").deliverAt(Instant.now().plusSeconds(600)).build();
    List<OutboxMessage> now = List.of(now("a"), past);
    List<OutboxMessage> later = List.of(in("a", Duration.ofSeconds(20)), soon);
    List<OutboxMessage> tooLate = List.of(in("a", Duration.ofMinutes(10)), late);

    // nobody sleeps
    assertThat(heardOf(api, NotifyMode.AUTO, now)).containsExactly(0, 0);
    assertThat(heardOf(api, NotifyMode.ALWAYS, now)).containsExactly(1, 1);
    assertThat(heardOf(api, NotifyMode.ALWAYS, later)).containsExactly(0, 0);
    asleep("a", "1 minute");
    for (NotifyMode mode : List.of(NotifyMode.AUTO, NotifyMode.ALWAYS)) {
      assertThat(heardOf(api, mode, now)).containsExactly(1, 1);
      assertThat(heardOf(api, mode, later)).containsExactly(1, 1);
      assertThat(heardOf(api, mode, tooLate)).containsExactly(0, 0);
    }
    assertThat(heardOf(api, NotifyMode.NEVER, now)).containsExactly(0, 0);
  }

  /** How many notifications each message brought, published alone. */
  private List<Integer> heardOf(PublishApi api, NotifyMode mode, List<OutboxMessage> messages)
      throws SQLException {
    List<Integer> heard = new ArrayList<>();
    for (OutboxMessage message : messages) {
      publish(api, mode, message);
      heard.add(notified().size());
    }
    return heard;
  }

  /**
   * A transaction that has looked, but not written, before a subscriber falls asleep: it cannot see
   * the sleeper, and the sleeper cannot see it.
   */
  @ParameterizedTest
  @CsvSource({
    "REPEATABLE READ,AUTO",
    "REPEATABLE READ,ALWAYS",
    "SERIALIZABLE,AUTO",
    "READ COMMITTED,AUTO",
    "READ UNCOMMITTED,AUTO"
  })
  void aSleeperThatTheTransactionCannotSeeIsTold(String isolation, NotifyMode mode)
      throws SQLException {
    OutboxPublisher publisher = PostgresOutbox.publisher(database.table()).notify(mode).build();
    for (PublishShape shape : PublishShape.values()) {
      inOldTransaction(
          isolation,
          connection ->
              shape.publish(
                  List.of(
                      shape.timer(OutboxMessage.to("a"), "t" + UUID.randomUUID()).build(),
                      in("b", Duration.ofSeconds(5))),
                  messages -> publisher.publish(connection, messages)));
      assertThat(notified()).as("%s", shape).containsExactlyInAnyOrder("a", "b");
    }
    inOldTransaction(
        isolation,
        connection -> {
          try (Statement statement = connection.createStatement()) {
            statement.execute("select outbox_publish('a', 'x')");
          }
        });
    assertThat(notified()).containsExactly("a");
  }

  private void inOldTransaction(String isolation, Work work) throws SQLException {
    database.update("truncate outbox_sleepers");
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement()) {
      connection.setAutoCommit(false);
      statement.execute("set transaction isolation level " + isolation);
      statement.execute("select count(*) from outbox");
      asleep("a", "10 seconds");
      asleep("b", "10 seconds");
      work.on(connection);
      connection.commit();
    }
  }

  private interface Work {
    void on(Connection connection) throws SQLException;
  }

  @ParameterizedTest
  @EnumSource
  void aDuplicateNotifiesNobody(PublishApi api) throws SQLException {
    asleep("a", "1 minute");
    publish(api, NotifyMode.NEVER, timer("a"));
    for (NotifyMode mode : NotifyMode.values()) {
      publish(api, mode, timer("a"), timer("a"));
      assertThat(notified()).isEmpty();
    }
    publish(api, NotifyMode.AUTO, timer("a"), timer("b"), now("a"));
    assertThat(notified()).containsExactly("a");
  }

  @Test
  void aRollbackNotifiesNobodyAndACommitDoes() throws SQLException {
    asleep("a", "1 minute");
    OutboxPublisher publisher = PostgresOutbox.publisher(database.table()).build();
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      publisher.publish(connection, now("a"));
      connection.rollback();
      assertThat(notified()).isEmpty();
      publisher.publish(connection, now("a"));
      assertThat(notified()).isEmpty();
      connection.commit();
      assertThat(notified()).containsExactly("a");
    }
  }

  @Test
  void thousandQueuesAreNotifiedOnceEach() throws SQLException {
    List<OutboxMessage> messages = new ArrayList<>();
    for (int i = 0; i < 3_000; i++) {
      messages.add(now("q" + i % 1_000));
    }
    publish(PublishApi.JDBC, NotifyMode.ALWAYS, messages.toArray(OutboxMessage[]::new));
    assertThat(notified()).hasSize(1_000).doesNotHaveDuplicates();
  }
}
