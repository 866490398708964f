package dev.outbox4j.examples.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** What a stopped subscriber must not have left is left. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class LeftoversIT {
  private static final String LISTENER = "listener_of_leftovers";

  private final TestDatabase database;
  private final HikariDataSource pool;

  LeftoversIT(TestDatabase database) {
    this.database = database;
    this.pool = database.pool(2);
  }

  @Test
  void countsAConnectionThatWasNotGivenBack() throws SQLException {
    assertThat(find().connections()).isZero();
    try (Connection borrowed = pool.getConnection()) {
      assertThat(borrowed.isClosed()).isFalse();
      assertThat(find().connections()).isEqualTo(1);
    }
    assertThat(find().connections()).isZero();
  }

  @Test
  void countsASessionThatStillListens() throws SQLException {
    database.update("create role " + LISTENER + " login password 'secret'");
    PGSimpleDataSource source = database.plain();
    source.setUser(LISTENER);
    source.setPassword("secret");
    try (Connection listening = source.getConnection()) {
      assertThat(listening.isClosed()).isFalse();
      assertThat(find().connections()).isEqualTo(1);
    } finally {
      database.update("drop role " + LISTENER);
    }
  }

  @Test
  void countsAThreadOfTheFrameworkAndNoWorker() {
    CountDownLatch end = new CountDownLatch(1);
    Thread fetcher = new Thread(() -> await(end), "outbox-leftovers-fetcher");
    fetcher.start();
    try {
      assertThat(find().threads()).isPositive();
    } finally {
      end.countDown();
    }
  }

  @Test
  void countsWhatItCannotAskFor() {
    HikariDataSource unreachable = database.pool(1);
    unreachable.close();

    assertThat(Leftovers.find(List.of(pool), unreachable, LISTENER, Duration.ZERO).connections())
        .isEqualTo(1);
  }

  @Test
  void isReadAsItIsWritten() {
    Leftovers left = new Leftovers(2, 13);

    assertThat(Leftovers.parse(left.toString())).isEqualTo(left);
  }

  private Leftovers find() {
    return Leftovers.find(List.of(pool), database.plain(), LISTENER, Duration.ZERO);
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
