package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.migrations.PollerMigrations;
import dev.outbox4j.poller.Audit;
import dev.outbox4j.poller.Cursor;
import dev.outbox4j.poller.Deletes;
import dev.outbox4j.poller.PollContext;
import dev.outbox4j.poller.Poller;
import dev.outbox4j.poller.PollerChange;
import dev.outbox4j.poller.PollerControl;
import dev.outbox4j.poller.PollerStatus;
import dev.outbox4j.poller.PollerVerb;
import dev.outbox4j.poller.Pollers;
import dev.outbox4j.poller.Position;
import dev.outbox4j.poller.QuarantinedRow;
import dev.outbox4j.poller.RowChange;
import dev.outbox4j.poller.RowOperation;
import dev.outbox4j.poller.Source;
import dev.outbox4j.poller.TickResult;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.triggers.metrics.MicrometerPollerMetrics;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The samples of {@code docs/table-pollers.md}. */
@ExtendWith(PostgresExtension.class)
class PollerSamplesIT {
  private static final Logger log = LoggerFactory.getLogger(PollerSamplesIT.class);

  private final TestDatabase database;
  private final HikariDataSource dataSource;
  private final OutboxTable table;
  private final DataSource crm;
  private final Index index = new Index();
  private final Map<Long, String> mirrored = new ConcurrentHashMap<>();

  PollerSamplesIT(TestDatabase database) {
    this.database = database;
    this.dataSource = database.pool(10);
    this.crm = dataSource;
    this.table = database.table();
  }

  @BeforeEach
  void setUp() {
    // tag::migrate
    PollerMigrations.of("public", "outbox").migrate(dataSource);
    // end::migrate
    database.update(
        "truncate outbox, outbox_poller, outbox_poller_history, outbox_poller_quarantine");
    for (String sql :
        List.of(
            "drop schema if exists crm cascade",
            "create schema crm",
            """
            create table crm.customers (
              id bigint generated always as identity primary key, name text not null,
              country text not null default 'DE', deleted_at timestamptz,
              updated_at timestamptz not null default now())
            """,
            "create index on crm.customers (updated_at, id)",
            "drop table if exists balances",
            "create table balances (id bigint primary key, name text)")) {
      database.update(sql);
    }
  }

  /** Another system. */
  private static final class Index {
    private final Map<String, Object> documents = new ConcurrentHashMap<>();

    void put(Object id, Map<String, ?> document) {
      documents.put(String.valueOf(id), document);
    }

    void remove(Object id) {
      documents.remove(String.valueOf(id));
    }
  }

  private static Poller customers() {
    return Poller.of(
            "customers",
            Source.table("crm", "customers"),
            Cursor.serverTime("updated_at"),
            Deletes.softDelete("deleted_at"))
        .pollInterval(Duration.ofMillis(50));
  }

  private void insertCustomers(int count) {
    database.update(
        "insert into crm.customers (name) select 'c' || i from generate_series(1, ?) i", count);
  }

  private static TickResult tickUntil(Pollers pollers, String poller, TickResult.Outcome outcome) {
    return await().until(() -> pollers.tick(poller), result -> result.outcome() == outcome);
  }

  @Test
  void aTableIsFollowedIntoAQueue() {
    // tag::first
    Poller customers =
        Poller.of(
            "customers",
            Source.table("crm", "customers"),
            Cursor.serverTime("updated_at"),
            Deletes.softDelete("deleted_at"));

    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    Pollers pollers =
        Pollers.builder(outbox, "shop")
            .source(crm) // where the table is; by default the outbox's database
            .publishTo(customers, "customers")
            .build();
    pollers.start();
    // end::first
    try (pollers) {
      insertCustomers(3);
      await().until(() -> database.count("outbox") == 3);
    }
    assertThat(database.list(String.class, "select type || ' ' || ordering_key from outbox"))
        .containsExactlyInAnyOrder("upsert 1", "upsert 2", "upsert 3");
  }

  @Test
  void aHandlerIsCalledWithBatches() {
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    // tag::handler
    Pollers pollers =
        Pollers.builder(outbox, "shop")
            .source(crm)
            .on(
                customers(),
                (rows, context) -> {
                  for (RowChange row : rows) {
                    if (row.operation() == RowOperation.DELETE) {
                      index.remove(row.key().get("id"));
                    } else {
                      index.put(row.key().get("id"), Map.of("name", row.get("name", String.class)));
                    }
                  }
                })
            .build();
    // end::handler
    insertCustomers(3);
    tickUntil(pollers, "customers", TickResult.Outcome.PROCESSED);
    assertThat(index.documents).hasSize(3);

    database.update("update crm.customers set deleted_at = now(), updated_at = now() where id = 2");
    tickUntil(pollers, "customers", TickResult.Outcome.PROCESSED);
    assertThat(index.documents).containsOnlyKeys("1", "3");
  }

  private static void upsert(Connection connection, RowChange row) throws SQLException {
    try (PreparedStatement upsert =
        connection.prepareStatement(
            "insert into balances values (?, ?) on conflict (id) do update set name = excluded.name")) {
      upsert.setLong(1, (Long) row.key().get("id"));
      upsert.setString(2, row.get("name", String.class));
      upsert.executeUpdate();
    }
  }

  @Test
  void aTransactionalHandlerWritesWithThePosition() {
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    // tag::transactional
    Pollers pollers =
        Pollers.builder(outbox, "shop")
            .source(crm)
            .transactional(
                customers(),
                (rows, context, connection) -> {
                  for (RowChange row : rows) {
                    upsert(connection, row); // your SQL, in the outbox's database
                  }
                })
            .build();
    // end::transactional
    insertCustomers(3);
    tickUntil(pollers, "customers", TickResult.Outcome.PROCESSED);
    assertThat(database.count("balances")).isEqualTo(3);
  }

  @Test
  void aMappingMakesMessagesOfRows() {
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    // tag::publish
    Pollers pollers =
        Pollers.builder(outbox, "shop")
            .source(crm)
            .publish(
                customers(),
                row ->
                    row.operation() == RowOperation.DELETE
                        ? Optional.empty()
                        : Optional.of(
                            OutboxMessage.to("mails")
                                .type("customer.changed")
                                .orderingKey("customer-" + row.key().get("id"))
                                .body(row.get("name", String.class))
                                .build()))
            .build();
    // end::publish
    insertCustomers(2);
    tickUntil(pollers, "customers", TickResult.Outcome.PROCESSED);
    assertThat(database.list(String.class, "select ordering_key from outbox order by id"))
        .containsExactly("customer-1", "customer-2");
  }

  @Test
  void aColumnOfTransactionIdsFollowsInsertsAndUpdates() throws IOException {
    database.update(DocumentedSql.of("table-pollers.md", "transaction-id"));
    // tag::transaction-id
    Poller customers =
        Poller.of(
            "customers",
            Source.table("crm", "customers"),
            Cursor.transactionId("changed_in"),
            Deletes.ignored());
    // end::transaction-id
    follows(customers);
  }

  @Test
  void aSequenceFollowsInsertsAndUpdates() throws IOException {
    database.update(DocumentedSql.of("table-pollers.md", "sequence"));
    // tag::sequence
    Poller customers =
        Poller.of(
            "customers",
            Source.table("crm", "customers"),
            Cursor.sequence("change"),
            Deletes.ignored());
    // end::sequence
    follows(customers);
  }

  @Test
  void aTimeThatATriggerKeepsFollowsInsertsAndUpdates() throws IOException {
    database.update(DocumentedSql.of("table-pollers.md", "server-time"));
    follows(customers());
  }

  @Test
  void aLocalTimeIsFollowedInItsOffset() {
    database.update(
        """
        create table crm.orders (
          id bigint generated always as identity primary key,
          updated_at timestamp not null default timezone('UTC', now()))
        """);
    database.update("create index on crm.orders (updated_at, id)");
    database.update("insert into crm.orders default values");
    // tag::local-time
    Poller orders =
        Poller.of(
            "orders",
            Source.table("crm", "orders"),
            Cursor.serverTime("updated_at").in(ZoneOffset.UTC),
            Deletes.ignored());
    // end::local-time
    Pollers pollers =
        Pollers.builder(PostgresOutbox.on(dataSource, table), "shop")
            .on(orders, (rows, context) -> {})
            .build();
    tickUntil(pollers, "orders", TickResult.Outcome.PROCESSED);
  }

  /** Nothing in the statements mentions the cursor. */
  private void follows(Poller poller) {
    List<String> seen = new CopyOnWriteArrayList<>();
    Pollers pollers =
        Pollers.builder(PostgresOutbox.on(dataSource, table), "shop")
            .on(poller, (rows, context) -> rows.forEach(row -> seen.add(name(row))))
            .build();
    database.update("insert into crm.customers (name) values ('a'), ('b')");
    tickUntil(pollers, "customers", TickResult.Outcome.PROCESSED);
    database.update("update crm.customers set name = 'c' where name = 'a'");
    tickUntil(pollers, "customers", TickResult.Outcome.PROCESSED);

    assertThat(seen).containsExactly("a", "b", "c");
    assertThat(pollers.health().pollers().get(0).warnings()).isEmpty();
  }

  private static String name(RowChange row) {
    return String.valueOf(row.get("name", String.class));
  }

  @Test
  void aTombstoneTableTellsOfDeletes() throws IOException {
    database.update(DocumentedSql.of("table-pollers.md", "sequence"));
    database.update(DocumentedSql.of("table-pollers.md", "tombstones"));
    // tag::tombstones
    Poller customers =
        Poller.of(
            "customers",
            Source.table("crm", "customers"),
            Cursor.sequence("change"),
            Deletes.tombstones(Source.table("crm", "deleted_customers")));
    // end::tombstones
    List<String> seen = new CopyOnWriteArrayList<>();
    Pollers pollers =
        Pollers.builder(PostgresOutbox.on(dataSource, table), "shop")
            .on(
                customers,
                (rows, context) ->
                    rows.forEach(row -> seen.add(row.operation() + " " + row.key().get("id"))))
            .build();
    insertCustomers(2);
    database.update("delete from crm.customers where id = 1");
    database.update("update crm.customers set name = 'x' where id = 2");
    tickUntil(pollers, "customers", TickResult.Outcome.PROCESSED);

    assertThat(seen).containsExactly("DELETE 1", "UPSERT 2");
  }

  @Test
  void aQueryWithAConditionIsFollowed() {
    database.update("create table crm.cities (id bigint primary key, city text)");
    database.update("insert into crm.cities select i, 'city ' || i from generate_series(1, 3) i");
    insertCustomers(3);
    // tag::query
    Source withCities =
        Source.query(
            "customers with cities",
            """
            select c.id, c.name, c.country, c.updated_at, t.city
            from crm.customers c join crm.cities t on t.id = c.id
            """,
            "id");
    Poller german =
        Poller.of(
                "german-customers", withCities, Cursor.serverTime("updated_at"), Deletes.ignored())
            .where("country = ? or country = ?", "DE", "DDR")
            .columns("name", "city")
            .batchSize(1_000)
            .pollInterval(Duration.ofSeconds(5))
            .startAt(Position.after(Instant.parse("2026-01-01T00:00:00Z")));
    // end::query
    List<String> cities = new CopyOnWriteArrayList<>();
    Pollers pollers =
        Pollers.builder(PostgresOutbox.on(dataSource, table), "shop")
            .on(
                german,
                (rows, context) ->
                    rows.forEach(row -> cities.add(String.valueOf(row.get("city", String.class)))))
            .build();
    tickUntil(pollers, "german-customers", TickResult.Outcome.PROCESSED);
    assertThat(cities).containsExactly("city 1", "city 2", "city 3");
  }

  private void mirror(List<RowChange> rows, PollContext context) {
    for (RowChange row : rows) {
      if (name(row).equals("c7")) {
        throw new IllegalArgumentException("c7 is nobody's name");
      }
      mirrored.put((Long) row.key().get("id"), name(row));
    }
  }

  @Test
  void aRowAtFaultGoesToQuarantineAndIsRedriven() {
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    // tag::isolate
    Poller isolating =
        customers()
            .retry(
                Duration.ofMillis(100), Duration.ofSeconds(30)) // the first wait, and the longest
            .isolateAfter(3); // attempts at the whole batch
    // end::isolate
    Pollers pollers = Pollers.builder(outbox, "shop").on(isolating, this::mirror).build();
    insertCustomers(10);
    await()
        .until(
            () -> {
              pollers.tick("customers");
              return mirrored.size() == 9;
            });

    PollerControl control = PollerControl.of(outbox, "shop");
    // tag::quarantine
    for (QuarantinedRow row : control.quarantine("customers", 100)) {
      log.warn("row {} failed {} times: {}", row.key(), row.attempts(), row.error());
      control.redrive("customers", row.id(), Audit.of("ada", "the handler takes it now"));
    }
    // end::quarantine
    assertThat(control.quarantine("customers", 100))
        .singleElement()
        .satisfies(row -> assertThat(row.redriven()).isTrue());
  }

  @Test
  void aBackfillIsAPollerOfItsOwn() throws Exception {
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    insertCustomers(5);
    PollerControl control = PollerControl.of(outbox, "shop");
    Pollers follower = Pollers.builder(outbox, "shop").publishTo(customers(), "customers").build();
    tickUntil(follower, "customers", TickResult.Outcome.PROCESSED);
    database.update("update crm.customers set updated_at = now() - interval '1 day' where id = 2");
    // tag::backfill
    Audit audit = Audit.of("ada", "rows were dated back by the import of 2026-11-29");
    control.pause("customers", audit);
    awaitQuiet(control, "customers"); // until status(...).holder() is empty

    Poller backfill =
        customers()
            .named("customers-backfill-2026-11-29")
            .startAt(Position.beginning()) // or after the time from which on rows are missing
            .untilNow()
            .rate(1_000); // rows in a second
    try (Pollers once =
        Pollers.builder(outbox, "shop").source(crm).publishTo(backfill, "customers").build()) {
      once.start();
      awaitFinished(control, backfill.name()); // until status(...).finishedAt() is there
    }
    control.resume("customers", audit);
    // end::backfill
    assertThat(database.list(String.class, "select ordering_key from outbox order by id"))
        .containsExactly("1", "2", "3", "4", "5", "2", "1", "3", "4", "5");
    assertThat(control.history(backfill.name(), 10))
        .extracting(PollerChange::verb)
        .containsExactly(PollerVerb.FINISH, PollerVerb.CREATE);
    assertThat(control.status(backfill.name()).orElseThrow().rows()).isEqualTo(5);
    follower.stop();
  }

  private static void awaitQuiet(PollerControl control, String poller) {
    await().until(() -> control.status(poller).flatMap(PollerStatus::holder).isEmpty());
  }

  private static void awaitFinished(PollerControl control, String poller) {
    await().until(() -> control.status(poller).flatMap(PollerStatus::finishedAt).isPresent());
  }

  @Test
  void isLookedAtAndControlled() {
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    Pollers pollers = Pollers.builder(outbox, "shop").on(customers(), this::mirror).build();
    insertCustomers(3);
    tickUntil(pollers, "customers", TickResult.Outcome.PROCESSED);
    // tag::control
    PollerControl control = PollerControl.of(outbox, "shop");
    PollerStatus status = control.status("customers").orElseThrow();
    log.info("{} is at {}", status.name(), status.position());
    status.lag().ifPresent(lag -> log.info("it has lag {}", lag)); // not before it has looked

    Audit audit =
        Audit.of("ada", "the rows of November are needed again").expecting(status.version());
    control.set("customers", Position.before(Instant.parse("2026-11-01T00:00:00Z")), audit);
    // end::control
    mirrored.clear();
    tickUntil(pollers, "customers", TickResult.Outcome.PROCESSED);
    assertThat(mirrored).hasSize(3);
    assertThat(control.history("customers", 1))
        .singleElement()
        .satisfies(
            change -> {
              assertThat(change.verb()).isEqualTo(PollerVerb.SET);
              assertThat(change.by()).isEqualTo("ada");
            });
  }

  @Test
  void aSmokeTestTicksBeforeTraffic() {
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    // tag::smoke
    Poller customers = customers().startPaused();
    try (Pollers pollers =
        Pollers.builder(outbox, "shop").source(crm).on(customers, this::mirror).build()) {
      TickResult dry = pollers.dryTick("customers"); // reads, and writes nothing
      dry.reason().ifPresent(reason -> log.error("the source cannot be followed: {}", reason));

      TickResult tick = pollers.tick("customers"); // puts it on record; it is paused
      log.info("{} {}", tick.outcome(), tick.totalProcessed()); // PAUSED 0
    }
    // end::smoke
    assertThat(PollerControl.of(outbox, "shop").status("customers").orElseThrow().pause())
        .isPresent();
  }

  @Test
  void metersAreInTheRegistry() {
    SimpleMeterRegistry meterRegistry = new SimpleMeterRegistry();
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    // tag::metrics
    Pollers pollers =
        Pollers.builder(outbox, "shop")
            .on(customers(), this::mirror)
            .events(MicrometerPollerMetrics.on(meterRegistry))
            .build();
    // end::metrics
    try (pollers) {
      pollers.start();
      assertThat(meterRegistry.find("outbox.poller.lag").gauges()).isNotEmpty();
    }
  }

  @Test
  void theQueryShowsWhoHoldsRowsBack() throws Exception {
    try (Connection open = dataSource.getConnection()) {
      open.setAutoCommit(false);
      open.prepareStatement("insert into crm.customers (name) values ('late')").executeUpdate();
      List<Integer> pids =
          database.list(Integer.class, DocumentedSql.of("table-pollers.md", "open-transactions"));
      assertThat(pids).hasSize(1);
      open.rollback();
    }
  }
}
