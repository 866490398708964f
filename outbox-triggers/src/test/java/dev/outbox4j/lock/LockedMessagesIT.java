package dev.outbox4j.lock;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.migrations.LockMigrations;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Messages whose handlers wait for a lock. */
@ExtendWith(PostgresExtension.class)
class LockedMessagesIT {
  private final TestDatabase database;
  private final Locks locks;
  private OutboxSubscriber subscriber;

  LockedMessagesIT(TestDatabase database) {
    this.database = database;
    this.locks =
        Locks.builder(PostgresOutbox.on(database.plain(), database.table()), "shop").build();
  }

  @BeforeEach
  void setUp() throws Exception {
    database.migrate(LockMigrations.of("public", "outbox"), LockMigrations::migrate);
    database.update("truncate outbox_lock, outbox");
    locks.start();
    OutboxPublisher publisher =
        PostgresOutbox.publisher(database.table()).allowAutoCommit().build();
    try (Connection connection = database.plain().getConnection()) {
      publisher.publish(connection, OutboxMessage.to("mail").type("t").body("a").build());
    }
  }

  @AfterEach
  void stop() {
    subscriber.stop();
    locks.stop();
  }

  @Test
  void aMessageWhoseHandlerWaitsWhenItsSubscriberStopsComesAgain() throws Exception {
    HeldLock held = locks.lock("mail").acquire();
    List<String> handled = new CopyOnWriteArrayList<>();
    subscriber =
        OutboxSubscriber.builder("mail")
            .store(PostgresOutbox.on(database.pool(12), database.table()).store())
            .deleteTerminalFailures()
            .on("t", String.class, locks.lock("mail").around((t, delivery, own) -> handled.add(t)))
            .build();
    subscriber.start();
    await().until(() -> locks.health().waiting() == 1);

    subscriber.stop();

    assertThat(handled).isEmpty();
    assertThat(database.count("outbox")).isEqualTo(1);
    assertThat(database.one(Integer.class, "select attempts_count from outbox")).isZero();
    held.close();
  }
}
