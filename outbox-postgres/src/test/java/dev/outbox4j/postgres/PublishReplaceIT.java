package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.IfLive;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;

/** Messages that take the place of live ones with their timer id. */
@ExtendWith(PostgresExtension.class)
class PublishReplaceIT {
  private final TestDatabase database;
  private final ExecutorService threads = Executors.newSingleThreadExecutor();

  PublishReplaceIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void empty() {
    database.update("truncate outbox, outbox_sleepers");
  }

  @AfterEach
  void endThreads() throws InterruptedException {
    threads.shutdownNow();
    assertThat(threads.awaitTermination(20, TimeUnit.SECONDS)).isTrue();
  }

  private static OutboxMessage.Builder replacing(String timerId, String body) {
    return OutboxMessage.to("q").timerId(timerId, IfLive.REPLACE).body(body);
  }

  static Stream<Arguments> ways() {
    return Stream.of(PublishApi.values())
        .flatMap(api -> Stream.of(NotifyMode.values()).map(mode -> Arguments.of(api, mode)));
  }

  private void lease() {
    database.update(
        "update outbox set lease_until = now() + interval '1 hour', leased_at = now(),"
            + " leased_by = 'me', lease_token = 7, deliveries_count = 3, attempts_count = 2,"
            + " first_attempt_at = now(), last_attempt_at = now(), last_error = 'e'");
  }

  private String row() {
    return database.one(
        String.class,
        "select row(id, next_id, queue, timer_id, type, ordering_key, convert_from(payload, 'UTF8'),"
            + " headers, lease_token, leased_by, lease_until is not null, leased_at is not null,"
            + " deliveries_count, attempts_count, first_attempt_at, last_attempt_at, last_error,"
            + " expires_at is not null)::text from outbox");
  }

  /** It is due when the one before was; whoever is awake has been since, and polls. */
  @ParameterizedTest
  @EnumSource
  void whoIsAwakeIsNotNotifiedHoweverLongTheMessageBeforeHasBeenDue(PublishApi api)
      throws SQLException {
    PostgresOutbox.PublisherBuilder builder = PostgresOutbox.publisher(database.table());
    for (boolean asleep : new boolean[] {false, true}) {
      database.update("truncate outbox, outbox_sleepers");
      api.publish(database, builder, List.of(replacing("t", "old").build()));
      database.update("update outbox set available_at = now() - interval '1 minute'");
      lease();
      database.update(
          "insert into outbox_sleepers values ('q', 's', now() + ?::interval, true, 'infinity')",
          asleep ? "1 minute" : "-1 second");
      try (Connection listening = database.plain().getConnection();
          Statement statement = listening.createStatement()) {
        statement.execute("listen outbox_outbox");
        api.publish(database, builder, List.of(replacing("t", "new").build()));
        statement.execute("select 1");
        PGNotification[] heard = listening.unwrap(PGConnection.class).getNotifications();
        assertThat(heard == null ? 0 : heard.length).isEqualTo(asleep ? 1 : 0);
      }
    }
  }

  @ParameterizedTest
  @MethodSource("ways")
  void aMessageTakesThePlaceOfOneThatWaitsWithAllItHas(PublishApi api, NotifyMode mode) {
    PostgresOutbox.PublisherBuilder builder =
        PostgresOutbox.publisher(database.table()).notify(mode);
    api.publish(
        database,
        builder,
        List.of(replacing("t", "old").type("old").orderingKey("k").header("a", "b").build()));
    database.update("update outbox set attempts_count = 2, last_error = 'e', deliveries_count = 3");

    List<Published> published =
        api.publish(
            database,
            builder,
            List.of(
                replacing("t", "new")
                    .type("new")
                    .header("c", "d")
                    .expiresIn(Duration.ofHours(1))
                    .build()));

    long id = published.get(0).rowId().orElseThrow();
    assertThat(published.get(0).deduplicated()).isFalse();
    assertThat(row())
        .isEqualTo(
            "("
                + id
                + ",,q,t,new,,new,\"{\"\"c\"\": \"\"d\"\","
                + " \"\"content-type\"\": \"\"text/plain; charset=utf-8\"\"}\",0,,f,f,0,0,,,,t)");
  }

  @ParameterizedTest
  @MethodSource("ways")
  void aMessageThatIsBeingHandledKeepsItsLeaseAndItsId(PublishApi api, NotifyMode mode) {
    PostgresOutbox.PublisherBuilder builder =
        PostgresOutbox.publisher(database.table()).notify(mode);
    long first =
        api.publish(database, builder, List.of(replacing("t", "old").build()))
            .get(0)
            .rowId()
            .orElseThrow();
    lease();

    long second =
        api.publish(database, builder, List.of(replacing("t", "new").build()))
            .get(0)
            .rowId()
            .orElseThrow();

    assertThat(second).isGreaterThan(first);
    assertThat(row()).startsWith("(" + first + "," + second + ",q,t,,,new,");
    assertThat(row()).endsWith(",7,me,t,t,0,0,,,,f)");
  }

  @Test
  void aLeaseThatIsOverIsNobodysAnyMore() {
    PublishApi.JDBC.publish(database, replacing("t", "old").build());
    lease();
    database.update("update outbox set lease_until = now() - interval '1 ms'");
    long second =
        PublishApi.JDBC
            .publish(database, replacing("t", "new").build())
            .get(0)
            .rowId()
            .orElseThrow();
    assertThat(row()).startsWith("(" + second + ",,q,t,,,new,");
    assertThat(row()).endsWith(",0,,f,f,0,0,,,,f)");
  }

  @ParameterizedTest
  @EnumSource
  void aCallMayHoldAllKinds(PublishApi api) {
    List<Long> live =
        api
            .publish(
                database, replacing("kept", "live").build(), replacing("replaced", "live").build())
            .stream()
            .map(each -> each.rowId().orElseThrow())
            .toList();

    List<Published> published =
        api.publish(
            database,
            replacing("replaced", "first").build(),
            OutboxMessage.to("q").timerId("kept").body("dropped").build(),
            OutboxMessage.to("q").body("plain").build(),
            replacing("replaced", "last").build(),
            replacing("new", "new").build());

    assertThat(published)
        .extracting(Published::deduplicated)
        .containsExactly(true, true, false, false, false);
    assertThat(
            database.list(
                String.class, "select convert_from(payload, 'UTF8') from outbox order by 1"))
        .containsExactly("last", "live", "new", "plain");
    assertThat(database.one(Long.class, "select id from outbox where timer_id = 'kept'"))
        .isEqualTo(live.get(0));
    assertThat(database.one(Long.class, "select id from outbox where timer_id = 'replaced'"))
        .isEqualTo(published.get(3).rowId().orElseThrow());
  }

  @Test
  void whatIsRolledBackHasReplacedNothing() throws SQLException {
    PublishApi.JDBC.publish(database, replacing("t", "old").build());
    lease();
    String before = row();
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      PostgresOutbox.publisher(database.table())
          .build()
          .publish(connection, replacing("t", "new").build());
      connection.rollback();
    }
    assertThat(row()).isEqualTo(before);
  }

  @Test
  void whoeverRepublishesWhatIsBeingAckedWaitsForThatAckAndIsPublishedAnew() throws Exception {
    PublishApi.JDBC.publish(database, replacing("t", "old").build());
    lease();
    try (Connection ack = database.plain().getConnection();
        Statement statement = ack.createStatement()) {
      ack.setAutoCommit(false);
      statement.executeUpdate("delete from outbox");
      Future<List<Published>> published =
          threads.submit(() -> PublishApi.JDBC.publish(database, replacing("t", "new").build()));
      await()
          .until(
              () ->
                  database.one(
                          Long.class,
                          "select count(*) from pg_stat_activity"
                              + " where datname = current_database() and wait_event_type = 'Lock'")
                      == 1);
      ack.commit();
      assertThat(published.get(20, TimeUnit.SECONDS).get(0).deduplicated()).isFalse();
    }
    assertThat(row()).contains(",q,t,,,new,").endsWith(",0,,f,f,0,0,,,,f)");
  }

  /** Two calls in the opposite order. */
  @Test
  void callsOfTheSameIdsDoNotDeadlock() throws Exception {
    List<OutboxMessage> ids = List.of(replacing("a", "x").build(), replacing("b", "x").build());
    PublishApi.JDBC.publish(database, ids.get(0), ids.get(1));
    for (int round = 0; round < 50; round++) {
      Future<?> other =
          threads.submit(() -> PublishApi.JDBC.publish(database, ids.get(1), ids.get(0)));
      PublishApi.JDBC.publish(database, ids.get(0), ids.get(1));
      other.get(20, TimeUnit.SECONDS);
    }
    assertThat(database.count("outbox")).isEqualTo(2);
  }

  @ParameterizedTest
  @ValueSource(ints = {Connection.TRANSACTION_REPEATABLE_READ, Connection.TRANSACTION_SERIALIZABLE})
  void aboveReadCommittedARowThatHasChangedIsASerializationFailure(int isolation)
      throws SQLException {
    PublishApi.JDBC.publish(database, replacing("t", "old").build());
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement()) {
      connection.setAutoCommit(false);
      connection.setTransactionIsolation(isolation);
      statement.executeQuery("select 1 from outbox").close();
      lease();
      assertThatThrownBy(
              () ->
                  PostgresOutbox.publisher(database.table())
                      .build()
                      .publish(connection, replacing("t", "new").build()))
          .isInstanceOf(OutboxStoreException.class)
          .hasRootCauseInstanceOf(SQLException.class)
          .hasMessageContaining("40001");
      connection.rollback();
    }
  }

  @Test
  void theFunctionReplacesIfItIsToldSo() {
    database.one(Long.class, "select outbox_publish('q', 'old', timer_id => 't')");
    assertThat(database.list(Long.class, "select outbox_publish('q', 'n', timer_id => 't')"))
        .containsExactly((Long) null);
    Long replaced =
        database.one(
            Long.class,
            "select outbox_publish('q', 'new', timer_id => 't', type => 'new',"
                + " options => '{\"if_live\": \"replace\"}')");
    assertThat(row()).startsWith("(" + replaced + ",,q,t,new,,new,");
    lease();
    Long next =
        database.one(
            Long.class,
            "select outbox_publish('q', 'newer', timer_id => 't',"
                + " options => '{\"if_live\": \"replace\"}')");
    assertThat(row()).startsWith("(" + replaced + "," + next + ",q,t,,,newer,");
    assertThat(row()).endsWith(",7,me,t,t,0,0,,,,f)");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "timer_id => 't', options => '{\"if_live\": \"keep\"}'",
        "options => '{\"if_live\": \"replace\"}'"
      })
  void theFunctionRefusesWhatItDoesNotKnow(String arguments) {
    assertThatThrownBy(
            () -> database.one(Long.class, "select outbox_publish('q', '', " + arguments + ")"))
        .rootCause()
        .hasMessageContaining("if_live is");
  }
}
