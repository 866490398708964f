package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxException;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.QueueScan;
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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Claims against many rivals, odd names and odd rows. */
@ExtendWith(PostgresExtension.class)
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
    PostgresStore store = PostgresOutbox.store(database.pool(8), database.table());
    List<List<QueueScan>> shapes =
        List.of(scans("a", "b"), scans("b", "a"), scans("a"), scans("b"));
    ExecutorService rivals = Executors.newFixedThreadPool(8);
    try {
      List<Callable<List<Long>>> claimers =
          IntStream.range(0, 8)
              .<Callable<List<Long>>>mapToObj(
                  i -> () -> drain(store, new ArrayList<>(shapes.get(i % 4)), 70 + i))
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
  private List<Long> drain(PostgresStore store, List<QueueScan> scans, int limit) {
    List<Long> ids = new ArrayList<>();
    while (database.one(
        Boolean.class,
        "select exists (select from outbox where lease_until is null and queue = any(string_to_array(?, ',')))",
        String.join(",", scans.stream().map(QueueScan::queue).toList()))) {
      ClaimResult result =
          store.claim(new ClaimRequest(scans, limit, LEASE, "rival", Idle.UNCHANGED));
      assertThat(result.rows()).hasSizeLessThanOrEqualTo(limit);
      result.rows().forEach(row -> ids.add(row.lease().id()));
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
        new ClaimRequest(scans("orders"), 500, LEASE, "shippin/7276e02e", Idle.UNCHANGED);
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
        store -> leases.forEach(batch -> assertThat(store.renew(batch, LEASE)).hasSize(500)));
  }

  /** Has each of the 20,000 rows updated once. */
  private void assertHot(double share, Consumer<PostgresStore> work) {
    long[] before = updates();
    try (HikariDataSource pool = database.pool(1)) {
      work.accept(PostgresOutbox.store(pool, database.table()));
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
  void worksInASchemaOffTheSearchPathUnderAnOddName() {
    OutboxTable table = OutboxTable.named("Out box-1 ü").inSchema("My Schema");
    database.update("create schema \"My Schema\"");
    OutboxMigrations.of("My Schema", "Out box-1 ü")
        .deadLetters("My Schema", "Dead box")
        .migrate(database.plain());
    PostgresStore store = PostgresOutbox.store(database.pool(1), table);
    String quoted = "\"My Schema\".\"Out box-1 ü\"";
    String queue = "it's a \"queue\"?; drop table outbox --";
    Rows.fill(database, quoted, queue, 4);

    ClaimRequest request =
        new ClaimRequest(scans(queue, "b"), 4, LEASE, "o'wner?", Idle.sleep(LEASE));
    List<ClaimedRow> rows = store.claim(request).rows();
    List<LeaseRef> leases = rows.stream().map(ClaimedRow::lease).toList();

    assertThat(leases).hasSize(4).allMatch(lease -> lease.queue().equals(queue));
    assertThat(
            database.one(Long.class, "select count(*) from \"My Schema\".\"Out box-1 ü_sleepers\""))
        .isEqualTo(2);
    assertThat(store.release(leases.subList(0, 1))).hasSize(1);
    assertThat(store.ack(leases.subList(1, 4))).hasSize(3);
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
    PostgresStore store = PostgresOutbox.store(database.pool(1), database.table());

    ClaimResult result =
        store.claim(new ClaimRequest(scans("orders"), 10, LEASE, "me", Idle.LOOK_AHEAD));

    assertThat(result.rows()).hasSize(4);
    assertThat(result.rows()).allMatch(row -> row.headers().isEmpty());
    assertThat(result.rows()).allMatch(row -> !row.age().isNegative());
    assertThat(result.lookAhead().nextDueIn()).as("the lease just taken").isPositive();
    ClaimRequest never = new ClaimRequest(scans("never"), 10, LEASE, "me", Idle.LOOK_AHEAD);
    assertThat(store.claim(never).lookAhead().nextDueIn())
        .as("due in a row of due time infinity")
        .isNull();
    assertThat(result.rows().get(1).payload().bytes()).containsExactly(0x00, 0xff);

    // their due instants are good for bounds, too
    List<LeaseRef> leases = result.rows().stream().map(ClaimedRow::lease).toList();
    store.release(leases);
    for (ClaimedRow row : result.rows()) {
      QueueScan above = new QueueScan("orders", new ScanBound(row.availableAt(), row.lease().id()));
      for (List<QueueScan> scans :
          List.of(List.of(above), List.of(above, new QueueScan("b", null)))) {
        ClaimResult again = store.claim(new ClaimRequest(scans, 10, LEASE, "me", Idle.UNCHANGED));
        assertThat(again.rows().size()).isGreaterThanOrEqualTo(4 - 1 - result.rows().indexOf(row));
        store.release(again.rows().stream().map(ClaimedRow::lease).toList());
      }
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
            "{}");
    for (String document : documents) {
      Map<String, String> headers = claimed(document);

      assertThat(headers).as(document).isEqualTo(byTheServer(document));
      assertThatThrownBy(() -> headers.put("x", "y"))
          .isInstanceOf(UnsupportedOperationException.class);
    }
  }

  @Test
  void numberThatJavaCannotExpressFailsItsReaderAndNotTheClaim() {
    for (String number : List.of("12345678901234567890123", "1e400")) {
      Map<String, String> headers = claimed("{\"secret\": \"x\", \"n\": " + number + "}");

      assertThatThrownBy(() -> headers.get("secret"))
          .isInstanceOf(OutboxException.class)
          .hasMessageContaining("publish it as text")
          .hasMessageNotContaining(number)
          .hasNoCause();
    }
  }

  private Map<String, String> claimed(String document) {
    database.update("truncate outbox");
    database.update(
        "insert into outbox (queue, payload, headers) values ('orders', '', ?::jsonb)", document);
    return PostgresOutbox.store(database.plain(), database.table())
        .claim(new ClaimRequest(scans("orders"), 1, LEASE, "me", Idle.UNCHANGED))
        .rows()
        .get(0)
        .headers();
  }

  /** The same document taken apart by PostgreSQL. */
  private Map<String, String> byTheServer(String document) throws SQLException {
    Map<String, String> headers = new HashMap<>();
    try (Connection connection = database.plain().getConnection();
        PreparedStatement statement =
            connection.prepareStatement(
                "select key, case when jsonb_typeof(value) = 'string' then value #>> '{}' else replace(value::text, ': ', ':') end"
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

  private static List<QueueScan> scans(String... queues) {
    return List.of(queues).stream().map(queue -> new QueueScan(queue, null)).toList();
  }
}
