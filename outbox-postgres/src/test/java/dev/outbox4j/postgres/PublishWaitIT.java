package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.DedupWindow;
import dev.outbox4j.IfLive;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.migrations.DedupMigrations;
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
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A publish that waits for another transaction has its id already; readers must see that it writes.
 */
@ExtendWith(PostgresExtension.class)
class PublishWaitIT {
  private static final String WAITING =
      " from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";

  private final TestDatabase database;
  private final ExecutorService threads = Executors.newSingleThreadExecutor();

  PublishWaitIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void empty() {
    DedupMigrations.of("public", "outbox").migrate(database.plain());
    database.update("truncate outbox, outbox_dedup");
  }

  @AfterEach
  void endThreads() throws InterruptedException {
    threads.shutdownNow();
    assertThat(threads.awaitTermination(20, TimeUnit.SECONDS)).isTrue();
  }

  enum Way {
    TIMER {
      @Override
      void publish(Connection transaction, OutboxPublisher publisher) {
        publisher.publish(transaction, message().timerId("x").build());
      }
    },
    REPLACING {
      @Override
      void publish(Connection transaction, OutboxPublisher publisher) {
        publisher.publish(transaction, message().timerId("x", IfLive.REPLACE).build());
      }
    },
    TIMERS {
      @Override
      void publish(Connection transaction, OutboxPublisher publisher) {
        publisher.publish(transaction, List.of(message().build(), message().timerId("x").build()));
      }
    },
    DEDUP_KEY {
      @Override
      void publish(Connection transaction, OutboxPublisher publisher) {
        publisher.publish(
            transaction, message().dedupKey("x", DedupWindow.of(Duration.ofHours(1))).build());
      }
    },
    SQL {
      @Override
      void publish(Connection transaction, OutboxPublisher publisher) throws SQLException {
        try (Statement statement = transaction.createStatement()) {
          statement.execute("select outbox_publish('q', '', timer_id => 'x')");
        }
      }
    };

    private static OutboxMessage.Builder message() {
      return OutboxMessage.to("q").body("m");
    }

    abstract void publish(Connection transaction, OutboxPublisher publisher) throws SQLException;
  }

  @ParameterizedTest
  @EnumSource
  void whoWaitsForAnotherIsATransactionThatWrites(Way way) throws Exception {
    OutboxPublisher publisher = PostgresOutbox.publisher(database.table()).build();
    try (Connection first = database.plain().getConnection();
        Connection second = database.plain().getConnection()) {
      first.setAutoCommit(false);
      second.setAutoCommit(false);
      way.publish(first, publisher);
      Future<?> waiting =
          threads.submit(
              () -> {
                way.publish(second, publisher);
                return null;
              });
      await().until(() -> database.one(Long.class, "select count(*)" + WAITING) == 1);

      assertThat(database.one(Boolean.class, "select backend_xid is not null" + WAITING)).isTrue();
      first.rollback();
      waiting.get(20, TimeUnit.SECONDS);
      second.rollback();
    }
  }
}
