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
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
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
  @Test
  void theSecondTransactionOfOneMessageLosesNothing() throws Exception {
    losesNothing(
        """
        begin; select pg_sleep(2); commit;
        begin; insert into times (label) values ('late'); select pg_sleep(1); commit
        """);
  }

  /** A chained transaction has the time at which the commit before it was asked for. */
  @Test
  void aTransactionThatIsChainedToASlowCommitLosesNothing() throws Exception {
    losesNothing(
        "begin",
        "insert into slow values (1)",
        "commit and chain",
        "insert into times (label) values ('late')",
        "select pg_sleep(1)",
        "commit");
  }

  private void losesNothing(String... messages) throws Exception {
    Poller times =
        Poller.of(
                "times",
                Source.table("public", "times"),
                Cursor.serverTime("at"),
                Deletes.ignored())
            .pollInterval(Duration.ofMillis(10));
    Pollers pollers =
        Pollers.builder(PostgresOutbox.on(database.pool(5), database.table()), "tests")
            .on(
                times,
                (rows, context) -> rows.forEach(row -> seen.add(row.get("label", String.class))))
            .build();
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
