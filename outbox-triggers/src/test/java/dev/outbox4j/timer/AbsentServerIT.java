package dev.outbox4j.timer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.lock.HeldLock;
import dev.outbox4j.lock.Locks;
import dev.outbox4j.migrations.LockMigrations;
import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TcpProxy;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.testing.CapturedLogs;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** What is started while the server cannot be reached, and works once it can. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class AbsentServerIT {
  private static final Duration SOON = Duration.ofSeconds(60);
  private static final Timer DAILY = Timer.of("daily", Schedule.every(Duration.ofDays(1)));

  private final TestDatabase database;
  private final TcpProxy network;
  private final PGSimpleDataSource behind;

  AbsentServerIT(TestDatabase database) {
    this.database = database;
    this.behind = database.plain();
    this.network = new TcpProxy(behind.getServerNames()[0], behind.getPortNumbers()[0]);
    behind.setServerNames(new String[] {network.host()});
    behind.setPortNumbers(new int[] {network.port()});
  }

  @BeforeEach
  void setUp() {
    database.migrate(TimerMigrations.of("public", "outbox"), TimerMigrations::migrate);
    database.migrate(LockMigrations.of("public", "outbox"), LockMigrations::migrate);
    network.cut();
  }

  @AfterEach
  void close() {
    network.close();
  }

  @Test
  void timersAreThereOnceTheServerIs() throws Exception {
    BlockingQueue<TimerRun> handled = new LinkedBlockingQueue<>();
    try (Timers timers =
        Timers.builder(PostgresOutbox.on(behind, database.table()), "shop")
            .listen(PgjdbcListen.on(behind))
            .on(DAILY, handled::add)
            .build()) {
      timers.start();
      await().atMost(SOON).until(() -> timers.health().failing());
      assertThat(database.count("outbox_timer")).isZero();

      network.resume();

      await().atMost(SOON).until(() -> timers.health().healthy());
      assertThat(database.list(String.class, "select name from outbox_timer"))
          .containsExactly("daily");
      TimerControl control =
          TimerControl.of(PostgresOutbox.on(database.plain(), database.table()), "shop");
      assertThat(control.trigger("daily", "x")).isTrue();
      assertThat(handled.poll(60, TimeUnit.SECONDS)).isNotNull();
    }
  }

  @Test
  void aLockIsWaitedForUntilTheServerIsThere() throws Exception {
    ExecutorService waiting = Executors.newSingleThreadExecutor();
    try (CapturedLogs logs = new CapturedLogs();
        Locks locks =
            Locks.builder(PostgresOutbox.on(behind, database.table()), "shop")
                .listen(PgjdbcListen.on(behind))
                .build()) {
      locks.start();
      Future<HeldLock> held = waiting.submit(() -> locks.lock("one").acquire());
      logs.awaitLine(line -> line.contains("lock one: it could not be asked for, trying again"));
      assertThat(locks.health().connected()).isFalse();

      network.resume();

      try (HeldLock lock = held.get(60, TimeUnit.SECONDS)) {
        assertThat(lock.isHeld()).isTrue();
      }
      await().atMost(SOON).until(() -> locks.health().healthy());
    } finally {
      waiting.shutdownNow();
    }
  }
}
