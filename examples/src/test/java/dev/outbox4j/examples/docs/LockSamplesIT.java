package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.lock.LockControl;
import dev.outbox4j.lock.LockStatus;
import dev.outbox4j.lock.Locks;
import dev.outbox4j.lock.SingletonListener;
import dev.outbox4j.lock.SingletonLock;
import dev.outbox4j.migrations.LockMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** The samples of {@code docs/locks.md}. */
@ExtendWith(PostgresExtension.class)
class LockSamplesIT {
  private static final AtomicInteger importers = new AtomicInteger();

  private final TestDatabase database;
  private final HikariDataSource dataSource;
  private final OutboxTable table;
  private final AtomicInteger closed = new AtomicInteger();
  private final List<String> booked = new CopyOnWriteArrayList<>();

  LockSamplesIT(TestDatabase database) {
    this.database = database;
    this.dataSource = database.pool(10);
    this.table = database.table();
  }

  @BeforeEach
  void setUp() {
    // tag::migrate
    LockMigrations.of("public", "outbox").migrate(dataSource);
    // end::migrate
    database.update("truncate outbox, outbox_dlq, outbox_lock");
    database.update("create table if not exists closed_months (month text)");
    database.update("truncate closed_months");
  }

  private void closeMonth() {
    closed.incrementAndGet();
  }

  private void closeMonth(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.executeUpdate("insert into closed_months values ('2026-11')");
    }
  }

  private void book(String account) {
    booked.add(account);
  }

  /** Something that runs until it is closed. */
  private static final class Importer implements AutoCloseable {
    void start() {
      importers.incrementAndGet();
    }

    @Override
    public void close() {
      importers.decrementAndGet();
    }
  }

  private Locks started() {
    Locks locks = Locks.builder(PostgresOutbox.on(dataSource, table), "shop").build();
    locks.start();
    return locks;
  }

  @Test
  void whatIsDoneUnderALockIsDoneAndTheLockIsFreeBehindIt() throws Exception {
    PGSimpleDataSource unpooled = database.plain();
    // tag::run
    Locks locks =
        Locks.builder(PostgresOutbox.on(dataSource, table), "shop")
            .listen(PgjdbcListen.on(unpooled))
            .build();
    locks.start();

    SingletonLock ledger = locks.lock("ledger").period(Duration.ofSeconds(30));
    ledger.run(held -> closeMonth());
    // end::run
    try (locks) {
      assertThat(closed).hasValue(1);
      // tag::guard
      ledger.run(
          held -> {
            try (Connection connection = dataSource.getConnection()) {
              connection.setAutoCommit(false);
              held.guard(connection); // throws if the lock is not held
              closeMonth(connection);
              connection.commit();
            }
          });
      // end::guard
      assertThat(database.count("closed_months")).isEqualTo(1);
      assertThat(LockControl.of(PostgresOutbox.on(dataSource, table), "shop").locks())
          .singleElement()
          .extracting(LockStatus::holder)
          .isEqualTo(Optional.empty());
    }
  }

  @Test
  void messagesAreHandledUnderALockOfTheirAccount() throws Exception {
    DeadLetterQueue deadLetters = DeadLetterQueue.in("outbox_dlq");
    try (Connection connection = dataSource.getConnection()) {
      PostgresOutbox.publisher(table)
          .allowAutoCommit()
          .build()
          .publish(connection, OutboxMessage.to("bookings").type("booked").body("a-17").build());
    }
    try (Locks locks = started()) {
      // tag::around
      SingletonLock accounts = locks.lock("account").acquisitionTimeout(Duration.ofSeconds(30));
      OutboxSubscriber subscriber =
          OutboxSubscriber.builder("bookings")
              .store(PostgresOutbox.on(dataSource, table).store())
              .deadLetters(deadLetters)
              .on(
                  "booked",
                  String.class,
                  accounts.around(
                      (account, delivery) -> account, (account, delivery, held) -> book(account)))
              .build();
      // end::around
      try (subscriber) {
        subscriber.start();
        await().untilAsserted(() -> assertThat(booked).containsExactly("a-17"));
      }
      assertThat(LockControl.of(PostgresOutbox.on(dataSource, table), "shop").locks())
          .extracting(LockStatus::name)
          .containsExactly("account/a-17");
    }
  }

  @Test
  void aListenerDoesItsWorkUntilItStops() {
    try (Locks locks = started()) {
      // tag::listener
      SingletonListener importer =
          locks.listener(
              "importer",
              held -> {
                Importer started = new Importer();
                started.start();
                return started; // closed when the listener stops, or the lock is lost
              });
      importer.start();
      // end::listener
      await().untilAsserted(() -> assertThat(importers).hasValue(1));
      importer.stop();
      assertThat(importers).hasValue(0);
    }
  }
}
