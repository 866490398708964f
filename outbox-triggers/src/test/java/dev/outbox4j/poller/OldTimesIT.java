package dev.outbox4j.poller;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;
import org.postgresql.jdbc.PreferQueryMode;

/** Transactions whose {@code now()} is much older than they are. */
@ExtendWith(PostgresExtension.class)
class OldTimesIT {
  private final TestDatabase database;
  private final Set<String> seen = ConcurrentHashMap.newKeySet();

  OldTimesIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    TestPollers.setUp(database);
    if (database
        .list(String.class, "select rolname::text from pg_roles where rolname = 'blind'")
        .isEmpty()) {
      database.update("create role blind login password 'secret'");
    }
    for (String sql :
        List.of(
            "drop table if exists times",
            """
            create table times (
              id bigint generated always as identity primary key, label text not null,
              at timestamptz not null default now())
            """,
            "create index on times (at, id)",
            "drop table if exists slow cascade",
            "create table slow (id int)",
            """
            create or replace function slow_check() returns trigger language plpgsql as
            'begin perform pg_sleep(2); return null; end'
            """,
            """
            create constraint trigger slow_check after insert on slow
            deferrable initially deferred for each row execute function slow_check()
            """)) {
      database.update(sql);
    }
  }

  /** All statements of one message have the time at which it came. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void theSecondTransactionOfOneMessageLosesNothing(boolean seesTimes) throws Exception {
    losesNothing(
        seesTimes,
        """
        begin; select pg_sleep(2); commit;
        begin; insert into times (label) values ('late'); select pg_sleep(1); commit
        """);
  }

  /** A chained transaction has the time at which the commit before it was asked for. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aTransactionThatIsChainedToASlowCommitLosesNothing(boolean seesTimes) throws Exception {
    losesNothing(
        seesTimes,
        "begin",
        "insert into slow values (1)",
        "commit and chain",
        "insert into times (label) values ('late')",
        "select pg_sleep(1)",
        "commit");
  }

  /** Many sessions write, each without a pause but for its own answer. */
  @Test
  void busySessionsWhoseTimesMayNotBeSeenDelayAndDoNotStop() throws Exception {
    Pollers pollers = pollers(false);
    ExecutorService threads = Executors.newFixedThreadPool(4);
    AtomicBoolean ended = new AtomicBoolean();
    AtomicInteger number = new AtomicInteger();
    List<Future<?>> all = new ArrayList<>();
    try {
      for (int i = 0; i < 4; i++) {
        all.add(
            threads.submit(
                () -> {
                  try (Connection connection = database.plain().getConnection();
                      Statement statement = connection.createStatement()) {
                    while (!ended.get()) {
                      statement.execute(
                          "insert into times (label) values ('w" + number.incrementAndGet() + "')");
                    }
                  }
                  return null;
                }));
      }
      pollers.start();
      await().atMost(Duration.ofSeconds(60)).until(() -> seen.size() > 10);
      assertThat(pollers.health().pollers().get(0).warnings())
          .anyMatch(warning -> warning.contains("grant pg_read_all_stats"));
    } finally {
      ended.set(true);
      threads.shutdown();
      assertThat(threads.awaitTermination(30, TimeUnit.SECONDS)).isTrue();
    }
    for (Future<?> each : all) {
      each.get();
    }
    await().atMost(Duration.ofSeconds(60)).until(() -> seen.size() == number.get());
    pollers.stop();
  }

  private Pollers pollers(boolean seesTimes) {
    PGSimpleDataSource source = database.plain();
    if (!seesTimes) {
      database.update("grant select on times to blind");
      source.setUser("blind");
      source.setPassword("secret");
    }
    Poller times =
        Poller.of(
                "times",
                Source.table("public", "times"),
                Cursor.serverTime("at"),
                Deletes.ignored())
            .pollInterval(Duration.ofMillis(10));
    return Pollers.builder(PostgresOutbox.on(database.pool(5), database.table()), "tests")
        .source(source)
        .on(times, (rows, context) -> rows.forEach(row -> seen.add(row.get("label", String.class))))
        .build();
  }

  private void losesNothing(boolean seesTimes, String... messages) throws Exception {
    Pollers pollers = pollers(seesTimes);
    ExecutorService thread = Executors.newSingleThreadExecutor();
    try {
      Future<?> writer = thread.submit(() -> send(messages));
      int others = 0;
      while (!writer.isDone()) {
        others++;
        database.update("insert into times (label) values (?)", "other " + others);
        pollers.tick("times");
      }
      writer.get();
      int last = others;
      await()
          .untilAsserted(
              () -> {
                pollers.tick("times");
                assertThat(seen).contains("other " + last);
              });
      assertThat(seen).contains("late");
    } finally {
      thread.shutdownNow();
    }
  }

  private Void send(String... messages) throws SQLException {
    PGSimpleDataSource simple = database.plain();
    simple.setPreferQueryMode(PreferQueryMode.SIMPLE);
    try (Connection connection = simple.getConnection();
        Statement statement = connection.createStatement()) {
      for (String message : messages) {
        statement.execute(message);
      }
    }
    return null;
  }
}
