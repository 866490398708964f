package dev.outbox4j.poller;

import dev.outbox4j.migrations.PollerMigrations;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.util.List;

/** What tests of pollers have in common. */
final class TestPollers {
  static final Audit ANN = Audit.of("ann", "a test");

  private TestPollers() {}

  /** Sets up the tables of pollers, and empties them. */
  static void setUp(TestDatabase database) {
    database.migrate(PollerMigrations.of("public", "outbox"), PollerMigrations::migrate);
    database.update(
        "truncate outbox_poller, outbox_poller_history, outbox_poller_quarantine, outbox");
  }

  /** A table whose cursor is a sequence that also moves at updates. */
  static void createItems(TestDatabase database) {
    database.update("drop table if exists items cascade");
    database.update("drop sequence if exists items_version cascade");
    database.update("create sequence items_version");
    database.update(
        """
        create table items (
          id int primary key,
          name text,
          deleted boolean not null default false,
          version bigint not null default nextval('items_version'))
        """);
    database.update("create unique index on items (version, id)");
  }

  static void insert(TestDatabase database, int from, int to) {
    database.update(
        "insert into items (id, name) select i, 'n' || i from generate_series(?, ?) i order by i",
        from,
        to);
  }

  static Poller items() {
    return items("items");
  }

  static Poller items(String name) {
    return Poller.of(
            name, Source.table("public", "items"), Cursor.sequence("version"), Deletes.ignored())
        .pollInterval(Duration.ofMillis(10))
        .retry(Duration.ofMillis(1), Duration.ofMillis(1));
  }

  static List<Integer> ids(List<RowChange> rows) {
    return rows.stream().map(row -> (Integer) row.key().get("id")).toList();
  }
}
