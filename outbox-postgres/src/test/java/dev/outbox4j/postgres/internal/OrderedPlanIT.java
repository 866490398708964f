package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.internal.Plans.Plan;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.BucketLease;
import dev.outbox4j.spi.BucketStore;
import dev.outbox4j.spi.BucketStore.DueRange;
import dev.outbox4j.spi.BucketStore.Join;
import dev.outbox4j.spi.BucketStore.KeyRange;
import dev.outbox4j.spi.BucketStore.Owned;
import dev.outbox4j.spi.BucketStore.Portion;
import dev.outbox4j.spi.BucketStore.Range;
import dev.outbox4j.spi.BucketStore.ReadRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.RetryUpdate;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Reads the plans of ordered queues that were executed, whatever statistics say of the table. */
@ExtendWith(PostgresExtension.class)
@Tag("plans")
class OrderedPlanIT {
  private static final String QUEUE = "orders";
  private static final OrderedMigrations ORDERED = OrderedMigrations.of("public", "outbox", QUEUE);
  private static final int LIMIT = 100;

  private final TestDatabase database;
  private Plans plans;
  private PostgresStore store;
  private BucketStore buckets;

  OrderedPlanIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void open() throws SQLException {
    database.update("truncate outbox");
    database.update("alter table outbox set (autovacuum_enabled = off)");
    ORDERED.migrate(database.plain());
    plans = new Plans(database);
    store = PostgresOutbox.on(plans, database.table()).store();
    buckets = store.buckets().orElseThrow();
    Rows.fill(database, "outbox", "others", 1_000);
    database.update("analyze outbox");
    Rows.fill(database, "outbox", QUEUE, 20_000);
    database.update("update outbox set ordering_key = (id % 1000)::text where queue = ?", QUEUE);
    database.update("vacuum outbox");
  }

  @AfterEach
  void close() throws SQLException {
    plans.close();
    database.update(ORDERED.dropQueuesSql());
  }

  private void looksAsIfItHad(int rows) {
    database.update("update pg_class set reltuples = ? where oid = 'outbox'::regclass", rows);
  }

  private List<Owned> owned() {
    return buckets.join(new Join(QUEUE, "me", Duration.ofMinutes(5), List.of(), 0)).owned();
  }

  private static ReadRequest request(
      List<Range> ranges,
      List<KeyRange> keys,
      List<Long> ids,
      List<Range> sweep,
      List<DueRange> due) {
    return request(ranges, keys, ids, sweep, due, 0);
  }

  /** Of which no payload needs to be added up. */
  private static ReadRequest ofRangesAlone(List<Range> ranges) {
    return request(ranges, List.of(), List.of(), List.of(), List.of(), 10_000);
  }

  private static ReadRequest request(
      List<Range> ranges,
      List<KeyRange> keys,
      List<Long> ids,
      List<Range> sweep,
      List<DueRange> due,
      long rowBytes) {
    return new ReadRequest(
        QUEUE,
        "me",
        ranges.stream()
            .map(range -> new Portion(range, Math.max(1, LIMIT / ranges.size())))
            .toList(),
        LIMIT,
        Set.of(),
        keys,
        LIMIT,
        ids,
        sweep,
        due,
        LIMIT,
        1 << 20,
        rowBytes,
        Idle.UNCHANGED,
        false,
        null,
        null);
  }

  /** What a read does on the outbox; the plan before it is the preamble's. */
  private Plan read(ReadRequest request, int atLeast) {
    plans.all();
    assertThat(buckets.read(request).rows()).hasSizeGreaterThanOrEqualTo(atLeast);
    return plans.all().stream()
        .filter(plan -> plan.text().contains("outbox"))
        .findFirst()
        .orElseThrow();
  }

  private static void isCheap(Plan plan) {
    assertThat(plan.types())
        .as("node types of %s", plan)
        .noneMatch(type -> type.equals("Seq Scan") || type.contains("Bitmap"));
    assertThat(plan.buffers()).as("buffers of %s", plan).isLessThan(25L * LIMIT);
  }

  private static String index(String kind) {
    return switch (kind) {
      case "bucket" -> Names.bucketIndex("outbox", QUEUE);
      case "key" -> Names.keyIndex("outbox", QUEUE);
      default -> Names.dueIndex("outbox", QUEUE);
    };
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 0, 1, 100, 1_000_000})
  void eachPartOfAReadWalksTheIndexThatIsMeantForIt(int rows) {
    if (rows >= 0) {
      looksAsIfItHad(rows);
    }
    int bucket = owned().get(0).bucket();
    List<Range> range = List.of(new Range(bucket, 0, Long.MAX_VALUE));
    List<KeyRange> key = List.of(new KeyRange("7", 0, Long.MAX_VALUE));
    List<Long> ids =
        database.list(Long.class, "select id from outbox where queue = ? limit 50", QUEUE);
    List<DueRange> due = List.of(new DueRange(bucket, null, Long.MAX_VALUE));
    List<List<Object>> parts =
        List.of(
            List.of(
                request(range, List.of(), List.of(), List.of(), List.of()), index("bucket"), 50),
            List.of(ofRangesAlone(range), index("bucket"), 50),
            List.of(request(List.of(), key, List.of(), List.of(), List.of()), index("key"), 20),
            List.of(request(List.of(), List.of(), ids, List.of(), List.of()), "outbox_pkey", 50),
            List.of(
                request(List.of(), List.of(), List.of(), range, List.of()), index("bucket"), 50),
            List.of(request(List.of(), List.of(), List.of(), List.of(), due), index("due"), 0));
    for (List<Object> part : parts) {
      Plan plan = read((ReadRequest) part.get(0), (Integer) part.get(2));
      isCheap(plan);
      assertThat(plan.scansOf((String) part.get(1))).as("%s", plan).isNotEmpty();
    }
  }

  @Test
  void aReadOfRangesAloneGivesWhatTheWholeReadGives() {
    database.update(
        "update outbox set payload = repeat('x', 20000)::bytea"
            + " where id = (select max(id) from outbox where queue = ?)",
        QUEUE);
    List<Range> ranges =
        owned().stream().map(each -> new Range(each.bucket(), 0, Long.MAX_VALUE)).toList();
    List<BucketStore.Row> whole =
        buckets.read(request(ranges, List.of(), List.of(), List.of(), List.of())).rows();
    List<BucketStore.Row> alone = buckets.read(ofRangesAlone(ranges)).rows();

    assertThat(alone)
        .hasSizeGreaterThan(LIMIT / 2)
        .usingRecursiveFieldByFieldElementComparatorIgnoringFields(
            "row.history.age", "row.history.sinceFirstAttempt")
        .isEqualTo(whole);
    assertThat(alone).allMatch(BucketStore.Row::loaded);
  }

  @Test
  void aReadOfRangesAloneGivesALargeRowWithoutItsPayload() {
    List<Long> large =
        database.list(
            Long.class,
            "update outbox set payload = repeat('x', 20000)::bytea where id in"
                + " (select id from outbox where queue = ? order by id limit 3) returning id",
            QUEUE);
    List<Range> ranges =
        owned().stream().map(each -> new Range(each.bucket(), 0, Long.MAX_VALUE)).toList();

    List<BucketStore.Row> alone = buckets.read(ofRangesAlone(ranges)).rows();

    assertThat(alone.stream().filter(row -> !row.loaded()))
        .extracting(row -> row.row().lease().id())
        .containsExactlyInAnyOrderElementsOf(large);
    assertThat(alone.subList(0, 3)).allMatch(row -> row.due().isZero());
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 0, 1, 100, 1_000_000})
  void aWriteFindsItsRowsByTheirIds(int rows) {
    if (rows >= 0) {
      looksAsIfItHad(rows);
    }
    Map<Integer, Long> epochs =
        owned().stream().collect(Collectors.toMap(Owned::bucket, Owned::epoch));
    List<Range> ranges =
        epochs.keySet().stream().map(each -> new Range(each, 0, Long.MAX_VALUE)).toList();
    List<LeaseRef> leases =
        buckets.read(request(ranges, List.of(), List.of(), List.of(), List.of())).rows().stream()
            .map(
                row ->
                    new LeaseRef(
                        QUEUE,
                        row.row().lease().id(),
                        row.row().lease().token(),
                        new BucketLease(row.bucket(), epochs.get(row.bucket()), false)))
            .toList();
    assertThat(leases).hasSizeGreaterThan(50);
    plans.writes();
    assertThat(buckets.count(leases.subList(0, 20)).done()).hasSize(20);
    assertThat(
            store
                .retry(
                    leases.subList(20, 40).stream()
                        .map(lease -> new RetryUpdate(lease, Duration.ZERO, "failed"))
                        .toList())
                .done())
        .hasSize(20);
    assertThat(store.ack(leases.subList(40, leases.size())).done()).hasSize(leases.size() - 40);

    List<Plan> written = plans.writes();
    assertThat(written).hasSize(3);
    for (Plan plan : written) {
      isCheap(plan);
      assertThat(plan.scansOf("outbox_pkey"))
          .as("%s", plan)
          .isNotEmpty()
          .allSatisfy(scan -> assertThat((String) scan.get("Index Cond")).contains("id ="));
    }
  }
}
