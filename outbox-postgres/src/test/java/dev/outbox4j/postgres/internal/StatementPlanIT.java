package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.internal.Plans.Plan;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.Range;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.RescheduleUpdate;
import dev.outbox4j.spi.RetryUpdate;
import dev.outbox4j.spi.ScanBound;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Reads the plans that were executed, in every stage of the table's life. */
@ExtendWith(PostgresExtension.class)
@Tag("plans")
class StatementPlanIT {
  private static final int LIMIT = 100;
  private static final ScanBound BOUND = new ScanBound(Instant.parse("2020-01-01T00:00:00Z"), 7);
  private static final ScanBound LATER = new ScanBound(Instant.parse("2999-01-01T00:00:00Z"), 7);

  private final TestDatabase database;
  private Plans plans;
  private PostgresStore store;

  StatementPlanIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void open() throws SQLException {
    database.update("truncate outbox");
    // each stage is the test's: a vacuum between fill and claim adds pages of the visibility map
    database.update("alter table outbox set (autovacuum_enabled = off)");
    plans = new Plans(database);
    store = PostgresOutbox.on(plans, database.table()).store();
  }

  @AfterEach
  void close() throws SQLException {
    plans.close();
  }

  @Test
  void aClaimWalksTheClaimIndexAtEveryStage() {
    database.update("vacuum analyze outbox");
    for (int i = 0; i < 10; i++) {
      shapes().forEach(store::claim);
    }
    assertThat(prepared()).as("statements the server has prepared").isPositive();
    plans.writes();

    fill(200_000);
    shapes().forEach(this::assertWalksTheIndex);
    database.update("analyze outbox");
    shapes().forEach(this::assertWalksTheIndex);
    database.update("vacuum outbox");
    shapes().forEach(this::assertWalksTheIndex);
  }

  @Test
  void aClaimTouchesAsFewPagesOfABigTableAsOfASmallOne() {
    Map<Integer, List<Long>> buffers =
        Map.of(10_000, new ArrayList<>(), 200_000, new ArrayList<>());
    buffers.forEach(
        (size, touched) -> {
          for (ClaimRequest shape : shapes()) {
            database.update("truncate outbox");
            fill(size);
            store.claim(shape);
            touched.add(plans.write().buffers());
          }
        });

    List<Long> small = buffers.get(10_000);
    List<Long> big = buffers.get(200_000);
    for (int i = 0; i < small.size(); i++) {
      // a level more of the index, and its neighbours
      assertThat(big.get(i)).as("buffers of shape %d", i).isBetween(1L, small.get(i) + 10);
      assertThat(big.get(i)).isLessThan(6L * LIMIT);
    }
  }

  @Test
  void aClaimOfAPartOfTheQueueReadsNothingAboveThatPart() {
    database.update(
        "insert into outbox (queue, payload, available_at)"
            + " select 'orders', 'x', timestamptz '2026-01-01Z' + g * interval '1 ms'"
            + " from generate_series(1, 100000) g");
    Instant start = Instant.parse("2026-01-01T00:00:01Z");
    Range part =
        new Range(
            new ScanBound(start, Long.MAX_VALUE),
            new ScanBound(start.plusNanos(500_000), Long.MAX_VALUE));

    assertThat(store.claim(Requests.claim("me", "orders", part, LIMIT, Idle.UNCHANGED)).rows())
        .isEmpty();

    assertThat(plans.write().buffers()).isBetween(1L, 10L);
  }

  @Test
  void aWriteFindsItsRowsByTheirIdsAtEveryStage() {
    database.update("vacuum analyze outbox");
    for (int i = 0; i < 10; i++) {
      writes(List.of(new LeaseRef("orders", 1, 1)));
    }
    plans.writes();

    fill(200_000);
    assertWritesFindRowsByIds();
    database.update("analyze outbox");
    assertWritesFindRowsByIds();
    database.update("vacuum outbox");
    assertWritesFindRowsByIds();
  }

  @Test
  void anAckOfAQueueThatStatisticsDoNotKnowFindsItsRowsByTheirIds() {
    Rows.fill(database, "outbox", "others", 10_000);
    database.update("vacuum analyze outbox");
    Rows.fill(database, "outbox", "orders", 50_000);

    assertWritesFindRowsByIds();
  }

  /** As vacuum and analyze leave it after a drain, when the next burst comes. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 100})
  void noStatementWalksAWholeIndexOfATableThatLooksEmpty(int rows) {
    fill(20_000);
    database.update("analyze outbox");
    String looksEmpty = "update pg_class set reltuples = ? where oid = 'outbox'::regclass";
    database.update(looksEmpty, rows);
    shapes().forEach(this::assertWalksTheIndex);
    database.update(looksEmpty, rows);
    assertWritesFindRowsByIds();
  }

  /** As while a queue is switched over, and after it was switched back. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 100, 1_000_000})
  void theIndexesOfAnOrderedQueueServeNobodyElse(int rows) {
    OrderedMigrations ordered = OrderedMigrations.of("public", "outbox", "orders");
    ordered.migrate(database.plain());
    try {
      Rows.fill(database, "outbox", "others", 1_000);
      database.update("analyze outbox");
      fill(20_000);
      String looksSo = "update pg_class set reltuples = ? where oid = 'outbox'::regclass";
      database.update(looksSo, rows);
      shapes().forEach(this::assertWalksTheIndex);
      database.update(looksSo, rows);
      assertWritesFindRowsByIds();
    } finally {
      database.update(ordered.dropQueuesSql());
    }
  }

  @Test
  void anAckAmongManySmallQueuesFindsItsRowsByTheirIds() {
    for (int i = 0; i < 20; i++) {
      Rows.fill(database, "outbox", "queue " + i, 50);
    }
    database.update("update outbox set queue = 'queue ' || id");
    database.update("vacuum full outbox");
    database.update("analyze outbox");
    Rows.fill(database, "outbox", "orders", 50_000);

    assertWritesFindRowsByIds();
  }

  private void assertWalksTheIndex(ClaimRequest shape) {
    assertThat(store.claim(shape).rows()).hasSize(shape.limit());
    Plan plan = plans.write();
    assertNoDetour(plan);
    assertThat(plan.types()).contains("LockRows", "Limit", "Tid Scan");
    assertThat(plan.scansOf("outbox_claim_idx")).isNotEmpty();
    // lazily: never more rows than the limit, and what the claims before left leased
    long walked = plan.scansOf("outbox_claim_idx").stream().mapToLong(Plan::rows).sum();
    assertThat(walked).as("rows walked in %s", plan).isEqualTo(shape.limit());
  }

  private void assertWritesFindRowsByIds() {
    List<LeaseRef> leases =
        store.claim(shapes().get(0)).rows().stream().map(ClaimedRow::lease).toList();
    plans.writes();
    writes(leases);
    List<Plan> written = plans.writes();
    assertThat(written).hasSize(5);
    for (Plan plan : written) {
      assertNoDetour(plan);
      assertThat(plan.scansOf("outbox_pkey"))
          .isNotEmpty()
          .allSatisfy(scan -> assertThat((String) scan.get("Index Cond")).contains("id ="));
      assertThat(plan.scansOf("outbox_claim_idx")).isEmpty();
      assertThat(plan.buffers()).as("buffers of %s", plan).isLessThan(25L * LIMIT);
    }
  }

  /** All writes of the store; each changes all rows, or none if the leases are not held. */
  private void writes(List<LeaseRef> leases) {
    int expected = leases.size() == 1 ? 0 : leases.size();
    assertThat(store.renew(leases, Duration.ofSeconds(60)).done()).hasSize(expected);
    int third = leases.size() / 4;
    store.release(leases.subList(0, Math.max(1, third)));
    store.retry(
        leases.subList(third, Math.max(1, 2 * third)).stream()
            .map(lease -> new RetryUpdate(lease, Duration.ofDays(1), "failed"))
            .toList());
    store.reschedule(
        leases.subList(2 * third, Math.max(1, 3 * third)).stream()
            .map(lease -> new RescheduleUpdate(lease, Duration.ofDays(1)))
            .toList());
    store.ack(leases.subList(3 * third, leases.size()));
  }

  /** Before version 18 a disabled node costs 1e10, and on later ones the plan says it. */
  @Test
  void noPlanHasANodeThatIsDisabled() {
    fill(1_000);
    for (int i = 0; i < 7; i++) {
      for (Idle.Mode mode : Idle.Mode.values()) {
        store.claim(
            Requests.claim("orders", 2, new Idle(mode, Duration.ofSeconds(9), Idle.NEW_MARK)));
      }
      List<LeaseRef> leases = Requests.claim(store, 20);
      writes(leases.subList(0, 20));
      store.pass("orders", "me");
      store.forget("me");
    }

    List<Plan> all = plans.all();
    assertThat(all).hasSizeGreaterThan(100);
    assertThat(all)
        .allSatisfy(
            plan ->
                assertThat(plan.nodes())
                    .noneMatch(node -> Boolean.TRUE.equals(node.get("Disabled")))
                    .allMatch(node -> ((Number) node.get("Total Cost")).doubleValue() < 1e9));
  }

  @Test
  void aWriteThatPassesLockedRowsByFindsItsRowsByTheirIds() throws SQLException {
    fill(200_000);
    long locked = database.one(Long.class, "select min(id) from outbox");
    try (Connection stranger = database.plain().getConnection();
        Statement statement = stranger.createStatement()) {
      List<LeaseRef> leases = Requests.claim(store, LIMIT);
      stranger.setAutoCommit(false);
      statement.execute("select 1 from outbox where id = " + locked + " for update");
      assertThat(store.ack(leases.subList(0, 1)).busy()).containsExactly(locked);
      plans.writes();

      assertWritesFindRowsByIds();

      stranger.rollback();
    }
  }

  private static void assertNoDetour(Plan plan) {
    assertThat(plan.types())
        .as("node types of %s", plan)
        .noneMatch(
            type ->
                type.contains("Sort")
                    || type.equals("Seq Scan")
                    || type.contains("Bitmap")
                    || type.equals("Hash Join")
                    || type.equals("Merge Join"));
  }

  /** The ways to claim: a whole queue, above a bound, below one, between two; then looking on. */
  private static List<ClaimRequest> shapes() {
    return Stream.of(
            Range.ALL, new Range(BOUND, null), new Range(null, LATER), new Range(BOUND, LATER))
        .map(range -> Requests.claim("me", "orders", range, LIMIT, Idle.LOOK_AHEAD))
        .toList();
  }

  private void fill(int rows) {
    Rows.fill(database, "outbox", "orders", rows * 9 / 10);
    Rows.fill(database, "outbox", "orders", rows / 10);
    database.update(
        "update outbox set available_at = available_at + interval '1 day' where id > (select max(id) - ? from outbox)",
        rows / 10);
  }

  private long prepared() {
    try (var connection = plans.getConnection();
        var statement = connection.createStatement();
        var rows = statement.executeQuery("select count(*) from pg_prepared_statements")) {
      rows.next();
      return rows.getLong(1);
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }
}
