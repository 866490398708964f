package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.FailureReason;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.LeaseRef;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;

/** Dead letters of the outbox, written by plain SQL, and what breaks their way back. */
final class Letters {
  static final DeadLetterQueue TABLE = DeadLetterQueue.in("outbox_dlq");

  private final TestDatabase database;
  final DeadLetterWorklist worklist;

  Letters(TestDatabase database) {
    this.database = database;
    this.worklist =
        DeadLetterWorklist.of(PostgresOutbox.on(database.plain(), database.table()), TABLE);
  }

  void clear() {
    database.update("drop trigger if exists broken on outbox");
    database.update("drop trigger if exists broken on outbox_dlq");
    database.update("drop trigger if exists arrive on outbox");
    database.update("truncate outbox, outbox_dlq, outbox_dlq_trips, outbox_dlq_audit");
    database.update("create table if not exists gate (open boolean)");
    database.update("truncate gate");
  }

  /** Letters without keys, of messages of these ids and a thousand more. */
  void plain(String queue, int first, int last) {
    keyed(queue, first, last);
    database.update("update outbox_dlq set ordering_key = null");
  }

  /** The same, with key-1 for the odd ones and key-0 for the others. */
  void keyed(String queue, int first, int last) {
    database.update(
        """
        insert into outbox_dlq (id, outbox, original_id, lease_token, queue, type, ordering_key,
          payload, headers, deliveries_count, attempts_count, created_at, available_at, failed_at,
          failure_reason, last_exception)
        select n, 'public.outbox', 1000 + n, 7, ?, 'type', 'key-' || mod(n, 2),
          convert_to('body ' || n, 'UTF8'), '{"tenant": "t"}', 2, 1, now(), now(),
          timestamptz '2026-01-01 00:00:00Z' + n * interval '1 second', 'retry_terminal', 'no'
        from generate_series(?::int, ?::int) n
        """,
        queue,
        first,
        last);
  }

  /** A trigger before each insert into the outbox, or before each other write of a letter. */
  void trigger(String event, String table, String body) {
    database.update(
        "create or replace function broken() returns trigger language plpgsql as $$ begin "
            + body
            + " end $$");
    database.update(
        "create trigger broken before %s on %s for each row execute function broken()"
            .formatted(event, table));
  }

  /** What such a trigger says to stand still until {@link #open}. */
  static String standStill() {
    return "while not exists (select from gate) loop perform pg_sleep(0.005); end loop;";
  }

  void awaitStandstill() {
    await()
        .until(
            () ->
                database.one(
                        Long.class,
                        "select count(*) from pg_stat_activity where datname = current_database()"
                            + " and wait_event = 'PgSleep'")
                    > 0);
  }

  void open() {
    database.update("insert into gate values (true)");
  }

  /** A session that has a row locked, until it is closed. */
  interface Lock extends AutoCloseable {
    @Override
    void close() throws SQLException;
  }

  /** Another session locks a letter. */
  Lock lock(long id) throws SQLException {
    Connection stranger = database.plain().getConnection();
    stranger.setAutoCommit(false);
    try (Statement lock = stranger.createStatement()) {
      lock.execute("select from outbox_dlq where id = %d for update".formatted(id));
    }
    return () -> {
      try (stranger) {
        stranger.rollback(); // before it is gone: the server may learn of that later
      }
    };
  }

  /** A message of the outbox fails for good. */
  void fail(long id, FailureReason reason, String exception) {
    database.update(
        "update outbox set lease_until = now() + interval '1 minute', leased_by = 's',"
            + " lease_token = lease_token + 1 where id = ?",
        id);
    long token = database.one(Long.class, "select lease_token from outbox where id = " + id);
    String queue = database.one(String.class, "select queue from outbox where id = " + id);
    assertThat(
            TABLE
                .bind(PostgresOutbox.on(database.plain(), database.table()).store())
                .write(
                    List.of(
                        new DeadLetterEntry(new LeaseRef(queue, id, token), reason, 1, exception)))
                .done())
        .containsExactly(id);
  }

  /** From now on, what is inserted into the outbox is noted, in the order of that. */
  void noteArrivals() {
    database.update("drop table if exists arrivals");
    database.update("create table arrivals (n bigserial, id bigint, ordering_key text)");
    database.update(
        "create or replace function arrive() returns trigger language plpgsql as $$ begin"
            + " insert into arrivals (id, ordering_key) values (new.id, new.ordering_key);"
            + " return new; end $$");
    database.update(
        "create trigger arrive before insert on outbox for each row execute function arrive()");
  }

  List<Long> arrivals(String orderingKey) {
    return database.list(
        Long.class, "select id from arrivals where ordering_key = ? order by n", orderingKey);
  }

  List<Long> unresolved() {
    return database.list(
        Long.class, "select id from outbox_dlq where resolved_at is null order by id");
  }

  /** In the order in which they came. */
  List<Long> outbox() {
    return database.list(Long.class, "select id from outbox order by available_at, id");
  }

  static Redrive by(String who) {
    return Redrive.by(who).perSecond(100_000);
  }
}
