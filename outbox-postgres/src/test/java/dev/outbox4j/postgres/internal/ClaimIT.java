package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.Range;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.ScanBound;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Claims against many rivals, odd names and odd rows. */
@ExtendWith(PostgresExtension.class)
@Tag("plans")
class ClaimIT {
  private static final Duration LEASE = Duration.ofSeconds(60);

  private final TestDatabase database;

  ClaimIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void empty() {
    database.update("truncate outbox");
  }

  @Test
  void rivalsShareTheRowsAndNoneTakesMoreThanItsLimit() throws Exception {
    Rows.fill(database, "outbox", "a", 10_000);
    Rows.fill(database, "outbox", "b", 10_000);
    PostgresStore store = PostgresOutbox.on(database.pool(8), database.table()).store();
    ExecutorService rivals = Executors.newFixedThreadPool(8);
    try {
      List<Callable<List<Long>>> claimers =
          IntStream.range(0, 8)
              .<Callable<List<Long>>>mapToObj(
                  i -> () -> drain(store, i % 2 == 0 ? "a" : "b", 70 + i))
              .toList();
      List<Long> all = new ArrayList<>();
      for (Future<List<Long>> claimed : rivals.invokeAll(claimers)) {
        all.addAll(claimed.get());
      }

      assertThat(all).doesNotHaveDuplicates().hasSize(20_000);
    } finally {
      rivals.shutdownNow();
    }
    assertThat(
            database.one(
                Long.class,
                "select count(*) from outbox where lease_token <> 1 or deliveries_count <> 1"))
        .isZero();
  }

  /** Claims until nothing is left; a claim may come back short while rivals hold rows. */
  private List<Long> drain(PostgresStore store, String queue, int limit) {
    List<Long> ids = new ArrayList<>();
    while (database.one(
        Boolean.class,
        "select exists (select from outbox where lease_until is null and queue = ?)",
        queue)) {
      List<LeaseRef> leases = Requests.leases(store, Requests.claim(queue, limit, Idle.UNCHANGED));
      assertThat(leases).hasSizeLessThanOrEqualTo(limit);
      leases.forEach(lease -> ids.add(lease.id()));
    }
    return ids;
  }

  /** Each apart, because renewals reuse the space of claims and would hide that those had none. */
  @ParameterizedTest
  @ValueSource(ints = {0, 20, 100, 256, 1_000})
  void claimsAndRenewalsAreHotUpdates(int payload) {
    Rows.fill(database, "outbox", "orders", 20_000, payload);
    database.update("vacuum outbox");
    // as long as the engine's own names get
    ClaimRequest request =
        Requests.claim("shippin/7276e02e", "orders", Range.ALL, 500, Idle.UNCHANGED);
    List<List<LeaseRef>> leases = new ArrayList<>();

    assertHot(
        0.95,
        store -> {
          for (int i = 0; i < 40; i++) {
            leases.add(store.claim(request).rows().stream().map(ClaimedRow::lease).toList());
          }
        });
    // next to no payload, and lease and owner are so much of a row that two claimed versions of
    // all rows do not fit
    assertHot(
        payload < 100 ? 0.8 : 0.95,
        store ->
            leases.forEach(batch -> assertThat(store.renew(batch, LEASE).done()).hasSize(500)));
  }

  /** Has each of the 20,000 rows updated once. */
  private void assertHot(double share, Consumer<PostgresStore> work) {
    long[] before = updates();
    try (HikariDataSource pool = database.pool(1)) {
      work.accept(PostgresOutbox.on(pool, database.table()).store());
    } // a session reports its statistics at the latest when it ends
    await().until(() -> updates()[0] - before[0] >= 20_000);

    long[] after = updates();
    assertThat((after[1] - before[1]) / (double) (after[0] - before[0]))
        .as("share of HOT updates")
        .isGreaterThanOrEqualTo(share);
  }

  private long[] updates() {
    String both =
        database.one(
            String.class,
            "select n_tup_upd || ' ' || n_tup_hot_upd from pg_stat_all_tables where relid = 'outbox'::regclass");
    return Arrays.stream(both.split(" ")).mapToLong(Long::parseLong).toArray();
  }

  @Test
  void aQueueOfSmallPayloadsIsMeasuredAgainOnceTheyGrow() {
    PostgresStore store = PostgresOutbox.on(database.pool(1), database.table()).store();
    ClaimRequest request =
        new ClaimRequest("orders", Range.ALL, 10, 100_000, LEASE, "me", Idle.UNCHANGED, null);
    Rows.fill(database, "outbox", "orders", 20, 100);
    assertThat(store.claim(request).rows()).hasSize(10);
    assertThat(store.claim(request).rows()).hasSize(10);
    Rows.fill(database, "outbox", "orders", 30, 40_000);

    store.claim(request); // may bring more, since it could not know

    assertThat(store.claim(request).rows()).hasSize(2);
  }

  @Test
  void aQueueWhosePayloadsAreKnownToBeSmallIsNotMeasured() {
    CountingDataSource counting = new CountingDataSource(database.pool(1));
    PostgresStore store = PostgresOutbox.on(counting, database.table()).store();
    Rows.fill(database, "outbox", "orders", 30, 100);

    for (int i = 0; i < 3; i++) {
      assertThat(Requests.claim(store, 10)).hasSize(10);
    }

    assertThat(counting.executions()).isEqualTo(3);
    assertThat(counting.executionsOf("octet_length(payload)"))
        .as("of the first, which knew nothing")
        .isEqualTo(1);
  }

  @Test
  void worksInASchemaOffTheSearchPathUnderAnOddName() {
    OutboxTable table = OutboxTable.named("Out box-1 ü").inSchema("My Schema");
    database.update("create schema \"My Schema\"");
    OutboxMigrations.of("My Schema", "Out box-1 ü")
        .deadLetters("My Schema", "Dead box")
        .migrate(database.plain());
    PostgresStore store = PostgresOutbox.on(database.pool(1), table).store();
    String quoted = "\"My Schema\".\"Out box-1 ü\"";
    String queue = "it's a \"queue\"?; drop table outbox --";
    Rows.fill(database, quoted, queue, 4);

    ClaimRequest request = Requests.claim("o'wner?", queue, Range.ALL, 4, Idle.sleep(LEASE, null));
    List<ClaimedRow> rows = store.claim(request).rows();
    List<LeaseRef> leases = rows.stream().map(ClaimedRow::lease).toList();

    assertThat(leases).hasSize(4).allMatch(lease -> lease.queue().equals(queue));
    assertThat(
            database.one(Long.class, "select count(*) from \"My Schema\".\"Out box-1 ü_sleepers\""))
        .isEqualTo(1);
    assertThat(store.release(leases.subList(0, 1)).done()).hasSize(1);
    assertThat(store.ack(leases.subList(1, 4)).done()).hasSize(3);
    store.pass(queue, "o'wner?");
    store.forget("o'wner?");
    assertThat(database.count(quoted)).isEqualTo(1);
  }

  @Test
  void oddRowsAreClaimedAlongWithTheOthers() {
    database.update(
        """
        insert into outbox (queue, payload, headers, created_at, available_at, first_attempt_at) values
          ('orders', '', '{}', '-infinity', '-infinity', '-infinity'),
          ('orders', '\\x00ff', '[1]', 'infinity', '0044-03-15 BC', 'infinity'),
          ('orders', '\\x80', 'null', '9999-12-31', '2000-01-01', null),
          ('orders', '', '"text"', '294000-01-01', '2001-01-01', null)
        """);
    database.update(
        "insert into outbox (queue, payload, available_at) values ('orders', '', 'infinity'), ('never', '', 'infinity')");
    PostgresStore store = PostgresOutbox.on(database.pool(1), database.table()).store();

    ClaimResult result = store.claim(Requests.claim("orders", 10, Idle.LOOK_AHEAD));

    assertThat(result.rows()).hasSize(4);
    assertThat(result.rows()).allMatch(row -> row.message().headers().isEmpty());
    assertThat(result.rows()).allMatch(row -> !row.history().age().isNegative());
    assertThat(result.lookAhead().nextDueIn()).as("the lease just taken").isPositive();
    ClaimRequest never = Requests.claim("never", 10, Idle.LOOK_AHEAD);
    assertThat(store.claim(never).lookAhead().nextDueIn())
        .as("due in a row of due time infinity")
        .isNull();
    assertThat(result.rows().get(1).message().payload().bytes()).containsExactly(0x00, 0xff);

    // their due instants are good for bounds, too
    List<LeaseRef> leases = result.rows().stream().map(ClaimedRow::lease).toList();
    store.release(leases);
    for (ClaimedRow row : result.rows()) {
      Range above = new Range(new ScanBound(row.message().availableAt(), row.lease().id()), null);
      List<LeaseRef> again =
          Requests.leases(store, Requests.claim("me", "orders", above, 10, Idle.UNCHANGED));
      assertThat(again.size()).isGreaterThanOrEqualTo(4 - 1 - result.rows().indexOf(row));
      store.release(again);
    }
  }

  @Test
  void headersAreReadAsTheServerWouldReadThem() throws SQLException {
    List<String> documents =
        List.of(
            "{\"a\": \"b\"}",
            "{\"\": \"\", \"a b\": \"c, d}\", \"e\\\"f\": \"\\\\g\\\\\\\"\"}",
            "{\"n\": 12, \"f\": 1.5, \"t\": true, \"z\": null}",
            "{\"o\": {}, \"l\": [], \"m\": [[\"],\"]], \"k\": \"v\"}",
            "{\"o\": {\"a\": \"} \\\"]\"}, \"after\": \"it\"}",
            "{\"control\": \"\\u0001\\b\\f\\n\\r\\t\\u001f\", \"unicode\": \"ü€😀\\u2028\\u00e9\"}",
            "{\"big\": 12345678901234567890123, \"huge\": 1e400, \"less\": -1.50, \"e\": 1e-7}",
            "{\"deep\": [{\"a\": \"}]\\\\\"}, [[], {}], \"\\\"\"], \"x\": \"y\", \"z\": [1, {\"b\": null}]}",
            "{\": \": \", \", \"\\\\u0041\": \"\\\\n\"}",
            "{}");
    for (String document : documents) {
      Map<String, String> headers = claimed(document);

      assertThat(headers).as(document).isEqualTo(byTheServer(document));
      assertThatThrownBy(() -> headers.put("x", "y"))
          .isInstanceOf(UnsupportedOperationException.class);
    }
  }

  private Map<String, String> claimed(String document) {
    database.update("truncate outbox");
    database.update(
        "insert into outbox (queue, payload, headers) values ('orders', '', ?::jsonb)", document);
    return PostgresOutbox.on(database.plain(), database.table())
        .store()
        .claim(Requests.claim("orders", 1, Idle.UNCHANGED))
        .rows()
        .get(0)
        .message()
        .headers();
  }

  /** The same document taken apart by PostgreSQL. */
  private Map<String, String> byTheServer(String document) throws SQLException {
    Map<String, String> headers = new HashMap<>();
    try (Connection connection = database.plain().getConnection();
        PreparedStatement statement =
            connection.prepareStatement(
                "select key, case when jsonb_typeof(value) = 'string' then value #>> '{}' else value::text end"
                    + " from jsonb_each(?::jsonb)")) {
      statement.setString(1, document);
      try (ResultSet rows = statement.executeQuery()) {
        while (rows.next()) {
          headers.put(rows.getString(1), rows.getString(2));
        }
      }
    }
    return headers;
  }
}
