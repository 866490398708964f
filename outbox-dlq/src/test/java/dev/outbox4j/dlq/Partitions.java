package dev.outbox4j.dlq;

import dev.outbox4j.migrations.DeadLetterMigrations;
import dev.outbox4j.migrations.PartitionInterval;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.SchemaFault;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import javax.sql.DataSource;

/** Dead-letter tables, plain and partitioned, made anew. */
final class Partitions {
  static final DeadLetterMigrations PLAIN = DeadLetterMigrations.of("public", "outbox_dlq");

  private final TestDatabase database;

  Partitions(TestDatabase database) {
    this.database = database;
  }

  /** The history of the migrations, too. */
  void drop() {
    database.update(
        "drop table if exists outbox_dlq, outbox_dlq_trips, outbox_dlq_audit, outbox_dlq_first,"
            + " outbox_dlq_default, outbox_dlq_schema_history cascade");
    database.update("drop function if exists outbox_dlq_until(timestamptz)");
    database.update("truncate outbox");
  }

  void plain() {
    drop();
    script(PLAIN.sql());
  }

  /** A transaction that has done something, and holds its locks until it ends. */
  Connection transaction(String sql) throws SQLException {
    Connection connection = database.plain().getConnection();
    connection.setAutoCommit(false);
    try (Statement statement = connection.createStatement()) {
      statement.execute(sql);
    }
    return connection;
  }

  /** How many sessions of this database wait for a lock. */
  long waiting() {
    return database.one(
        Long.class,
        "select count(*) from pg_stat_activity where datname = current_database()"
            + " and wait_event_type = 'Lock'");
  }

  /** The one of the time before has no letters and is gone, so that others can be made. */
  void by(PartitionInterval interval) {
    plain();
    script(PLAIN.partitionedBy(interval).partitionSql());
    database.update("drop table outbox_dlq_first");
  }

  void script(String sql) {
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(sql);
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  /** A partition of a month of 2020. */
  String month(int month) {
    String name = "outbox_dlq_p2020%02d01".formatted(month);
    database.update(
        "create table %s partition of outbox_dlq for values from ('2020-%02d-01Z') to ('2020-%02d-01Z')"
            .formatted(name, month, month + 1));
    return name;
  }

  /** Letters of a month of 2020, resolved at its end. */
  void resolved(int month, int first, int last) {
    letters(month, first, last, "timestamptz '2020-%02d-28Z'".formatted(month));
  }

  void unresolved(int month, int first, int last) {
    letters(month, first, last, "null");
  }

  private void letters(int month, int first, int last, String resolvedAt) {
    script(
        """
        insert into outbox_dlq (id, outbox, original_id, lease_token, queue, type, payload,
          deliveries_count, attempts_count, created_at, available_at, failed_at, failure_reason,
          resolved_at)
        select n, 'public.outbox', 1000 + n, 7, 'orders', 'type', 'body', 2, 1,
          timestamptz '2020-01-01Z', now(),
          timestamptz '2020-%02d-02Z' + n * interval '1 second', 'rejected', %s
        from generate_series(%d, %d) n
        """
            .formatted(month, resolvedAt, first, last));
  }

  /** Each letter was put back once before, and has a history. */
  void redriven() {
    database.update(
        "insert into outbox_dlq_trips (dead_letter, number, redriven_by, failed_at, failure_reason,"
            + " deliveries_count, attempts_count, created_at) select id, 1, 'ann', failed_at, 'x', 1,"
            + " 1, created_at from outbox_dlq");
  }

  /** A letter that fails at some time. */
  void letter(String failedAt) {
    script(letterSql(failedAt));
  }

  static String letterSql(String failedAt) {
    return "insert into outbox_dlq (outbox, original_id, lease_token, queue, payload,"
        + " deliveries_count, attempts_count, created_at, available_at, failed_at, failure_reason)"
        + " values ('public.outbox', 77, 1, 'orders', 'x', 1, 1, now(), now(), "
        + failedAt
        + ", 'rejected')";
  }

  /** It is so much later, as the constraint sees it that is there while a partition is attached. */
  void later(String interval) {
    script(
        """
        create or replace function outbox_dlq_until(timestamptz) returns boolean
          language sql immutable as 'select clock_timestamp() + interval ''%s'' >= $1'
        """
            .formatted(interval));
  }

  /** Whether that constraint was validated; empty if there is none, as is its function. */
  List<Boolean> constraints() {
    return database.list(
        Boolean.class,
        "select (select k.convalidated from pg_constraint k where k.conname = 'outbox_dlq_until')"
            + " from pg_proc p where p.proname = 'outbox_dlq_until'");
  }

  /** It was found without unresolved letters so long ago. */
  void closed(String partition) {
    database.update(
        "comment on table %s is 'outbox4j closed 2020-12-31T00:00:00Z'".formatted(partition));
  }

  String comment(String partition) {
    return database.one(
        String.class, "select obj_description('%s'::regclass, 'pg_class')".formatted(partition));
  }

  List<String> names() {
    return database.list(
        String.class,
        "select c.relname::text from pg_inherits i join pg_class c on c.oid = i.inhrelid"
            + " where i.inhparent = 'outbox_dlq'::regclass order by c.relname");
  }

  List<SchemaFault> faults() {
    return PostgresOutbox.on(database.plain(), database.table())
        .validator()
        .deadLetters("outbox_dlq")
        .checkGrants()
        .validateSchema()
        .faults();
  }

  DeadLetterRetention.Builder retention(DataSource dataSource) {
    return DeadLetterRetention.builder(
            PostgresOutbox.on(dataSource, database.table()), Letters.TABLE)
        .patience(new Patience(5, Duration.ofMillis(20)));
  }
}
