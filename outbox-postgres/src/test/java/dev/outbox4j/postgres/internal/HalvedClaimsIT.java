package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.migrations.SlotMigrations;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimRequest.Range;
import dev.outbox4j.spi.ClaimResult;
import dev.outbox4j.spi.ScanBound;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Claims of queues in which a trigger refuses the leases of some rows, with any SQLSTATE. */
@ExtendWith(PostgresExtension.class)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class HalvedClaimsIT {
  private static final String PEEK = "select available_at, id";
  private static final String BY_ROW = "P0001";
  private static final String BY_STATE = "55000";
  private static final String ENDED = "57014";
  private static final String SHUT_DOWN = "57P01";

  private final TestDatabase database;
  private final AtomicLong clock = new AtomicLong();
  private HikariDataSource connections;
  private CountingDataSource pool;
  private PostgresStore store;

  HalvedClaimsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeAll
  void makeTrigger() {
    connections = database.pool(2);
    pool = new CountingDataSource(connections);
    SlotMigrations.of("public", "outbox").migrate(database.plain());
    database.update("create table refused (id bigint, state text)");
    database.update(
        """
        create function refuse() returns trigger language plpgsql as $$
        declare
          refusal text;
        begin
          if new.lease_token > old.lease_token then
            select r.state into refusal from refused r where r.id = new.id;
            if found then
              raise exception 'row % is refused', new.id using errcode = refusal;
            end if;
          end if;
          return new;
        end $$
        """);
    database.update(
        "create trigger refuse before update on outbox for each row execute function refuse()");
  }

  @BeforeEach
  void empty() {
    database.update("truncate outbox, outbox_sleepers, outbox_slots, refused");
    pool.beforeEach(text -> {});
    store = new JdbcStore(pool, database.table(), Duration.ofSeconds(15), clock::get);
  }

  @ParameterizedTest
  @ValueSource(strings = {BY_STATE, "42P01", "55P03"})
  void aStateThatIsNotOfRowsIsTakenForARowsByTheSecondClaimThatFails(String state) {
    List<Long> ids = rows(4);
    refuse(ids.get(1), state);

    assertThat(failure(claimOf(10)).sqlState()).contains(state);
    assertThat(leased()).isZero();
    ClaimResult second = store.claim(claimOf(10));

    assertThat(ids(second)).containsExactly(ids.get(0), ids.get(2), ids.get(3));
    assertThat(second.refused()).containsExactly(ids.get(1));
  }

  @ParameterizedTest
  @ValueSource(strings = {ENDED, SHUT_DOWN})
  void aClaimThatWasEndedOrLostItsAnswerIsNotHalvedHoweverOftenItFails(String state) {
    List<Long> ids = rows(4);
    refuse(ids.get(1), state);

    for (int i = 0; i < 3; i++) {
      assertThat(failure(claimOf(10)).sqlState()).contains(state);
    }

    assertThat(leased()).isZero();
  }

  @Test
  void whereEachRowFailsWithAStateThatIsNotOfRowsTheClaimFails() {
    rows(3).forEach(id -> refuse(id, BY_STATE));

    for (int i = 0; i < 3; i++) {
      assertThat(failure(claimOf(10)).sqlState()).contains(BY_STATE);
    }
  }

  @Test
  void aRowThatWasRefusedBesideOthersIsToldAlsoWhenItIsAlone() {
    List<Long> ids = rows(3);
    refuse(ids.get(0), BY_STATE);
    assertThat(failure(claimOf(10)).sqlState()).contains(BY_STATE);
    assertThat(ids(store.claim(claimOf(10)))).containsExactly(ids.get(1), ids.get(2));

    ClaimResult alone = store.claim(claimOf(10));

    assertThat(alone.rows()).isEmpty();
    assertThat(alone.refused()).containsExactly(ids.get(0));
  }

  @ParameterizedTest
  @ValueSource(strings = {ENDED, SHUT_DOWN})
  void whatWasLeasedBeforeAHalfWasEndedOrLostItsAnswerIsTold(String state) {
    List<Long> ids = rows(4);
    refuse(ids.get(0), BY_ROW);
    refuse(ids.get(3), state);

    ClaimResult result = store.claim(claimOf(10));

    assertThat(ids(result)).containsExactly(ids.get(1));
    assertThat(result.refused()).containsExactly(ids.get(0));
    assertThat(result.full()).as("full, since more is due").isTrue();
  }

  @Test
  void aHalfThatWasEndedBeforeAnythingWasLeasedFailsTheClaimAsATimeout() {
    List<Long> ids = rows(2);
    refuse(ids.get(0), BY_ROW);
    refuse(ids.get(1), ENDED);

    assertThat(failure(claimOf(10)).fault()).isEqualTo(Fault.TIMEOUT);
  }

  @Test
  void whatWasLeasedIsToldAlsoIfWhatComesNextCannotBeLearned() {
    List<Long> ids = rows(2);
    refuse(ids.get(0), BY_ROW);
    ClaimRequest request = Requests.claim("orders", 10, Idle.sleep(Duration.ofSeconds(10), null));
    database.update("alter table outbox_sleepers add constraint not_me check (subscriber <> 'me')");
    try {
      ClaimResult result = store.claim(request);
      assertThat(ids(result)).containsExactly(ids.get(1));
      assertThat(result.lookAhead()).isNull();

      assertThat(failure(request)).as("where nothing was leased").hasMessageContaining("not_me");
    } finally {
      database.update("alter table outbox_sleepers drop constraint not_me");
    }
  }

  @Test
  void aClaimByHalvesThatHasItsBytesToTheLastOneEndsThere() {
    for (int size : new int[] {0, 1_000, 1, 1}) {
      Rows.fill(database, "outbox", "orders", 1, size);
    }
    List<Long> ids = rows(0);
    refuse(ids.get(0), BY_ROW);

    ClaimResult result =
        store.claim(
            new ClaimRequest(
                "orders", Range.ALL, 10, 1_000, Requests.LEASE, "me", Idle.UNCHANGED, null));

    assertThat(ids(result)).containsExactly(ids.get(1));
    assertThat(result.full()).isTrue();
  }

  @Test
  void aClaimByHalvesThatLeftARowOutForItsBytesIsFull() {
    for (int size : new int[] {50, 50, 50, 50, 400, 700, 100, 100}) {
      Rows.fill(database, "outbox", "orders", 1, size);
    }
    List<Long> ids = rows(0);
    refuse(ids.get(0), BY_ROW);

    ClaimResult result =
        store.claim(
            new ClaimRequest(
                "orders", Range.ALL, 10, 1_000, Requests.LEASE, "me", Idle.UNCHANGED, null));

    assertThat(ids(result)).isEqualTo(ids.subList(1, 5));
    assertThat(result.full()).isTrue();
  }

  @Test
  void claimsOfAnotherQueueThatSucceedDoNotKeepAFailingOneFromBeingHalved() {
    List<Long> ids = rows(2);
    refuse(ids.get(0), BY_STATE);
    assertThat(failure(claimOf(10)).sqlState()).contains(BY_STATE);

    assertThat(store.claim(Requests.claim("others", 10, Idle.UNCHANGED)).rows()).isEmpty();

    assertThat(ids(store.claim(claimOf(10)))).containsExactly(ids.get(1));
  }

  @Test
  void claimsAboveASliceThatSucceedDoNotKeepTheFailingSliceFromBeingHalved() {
    List<Long> ids = rows(3);
    refuse(ids.get(0), BY_STATE);
    ScanBound second = place(ids.get(1));
    Range slice = new Range(null, second);
    Range above = new Range(second, null);
    assertThat(failure(claimOf(10, slice)).sqlState()).contains(BY_STATE);

    assertThat(ids(store.claim(claimOf(10, above)))).containsExactly(ids.get(2));

    assertThat(ids(store.claim(claimOf(10, slice)))).containsExactly(ids.get(1));
  }

  @Test
  void aClaimOfNothingDoesNotShowThatItWasNotARow() {
    List<Long> ids = rows(2);
    refuse(ids.get(0), BY_STATE);
    assertThat(failure(claimOf(10)).sqlState()).contains(BY_STATE);
    Range nowhere = new Range(place(ids.get(1)), null);
    assertThat(store.claim(claimOf(10, nowhere)).rows()).isEmpty();
    assertThat(ids(store.claim(claimOf(10)))).containsExactly(ids.get(1));
  }

  @Test
  void aSearchThatFoundNoRowAtFaultIsMadeAgainAfterTenTimesItsCost() {
    rows(20).forEach(id -> refuse(id, BY_STATE));
    pool.beforeEach(text -> pass(Duration.ofMillis(1)));
    assertThat(executionsOfAFailure()).isEqualTo(1);
    long search = executionsOfAFailure();
    assertThat(search).as("each row by itself").isGreaterThan(20);
    pool.beforeEach(text -> {});
    pass(Duration.ofMillis(10 * (search - 1)).minusNanos(1)); // but for the claim that failed
    assertThat(executionsOfAFailure()).isEqualTo(1);
    pass(Duration.ofNanos(1));
    assertThat(executionsOfAFailure()).isEqualTo(search);
  }

  @Test
  void thePauseAfterASearchThatFoundNothingEndsAfterHalfAMinute() {
    rows(20).forEach(id -> refuse(id, BY_STATE));
    pool.beforeEach(text -> pass(Duration.ofMillis(200)));
    assertThat(executionsOfAFailure()).isEqualTo(1);
    assertThat(executionsOfAFailure()).as("each row by itself").isGreaterThan(20);
    pool.beforeEach(text -> {});
    pass(Duration.ofSeconds(30).minusNanos(1));
    assertThat(executionsOfAFailure()).isEqualTo(1);
    pass(Duration.ofNanos(1));
    assertThat(executionsOfAFailure()).isGreaterThan(20);
  }

  @Test
  void aFailureOfFiveMinutesAgoSaysNothingOfTheNext() {
    rows(20).forEach(id -> refuse(id, BY_STATE));
    assertThat(executionsOfAFailure()).isEqualTo(1);
    pass(Duration.ofMinutes(5).plusNanos(1));
    assertThat(executionsOfAFailure()).isEqualTo(1);
    pass(Duration.ofMinutes(5));
    assertThat(executionsOfAFailure()).isGreaterThan(20);
  }

  @Test
  void aRowThatIsRefusedForLongKeepsTheOthersFromBeingClaimedOnlyOnce() {
    List<Long> ids = rows(5);
    refuse(ids.get(0), BY_STATE);
    assertThat(failure(claimOf(1)).sqlState()).contains(BY_STATE);
    for (long id : ids.subList(1, 5)) {
      pass(Duration.ofMinutes(4));
      assertThat(ids(store.claim(claimOf(1)))).containsExactly(id);
    }
  }

  private void pass(Duration time) {
    clock.addAndGet(time.toNanos());
  }

  private long executionsOfAFailure() {
    long before = pool.executions();
    assertThat(failure(claimOf(10)).sqlState()).contains(BY_STATE);
    return pool.executions() - before;
  }

  @Test
  void whatWasLeasedIsToldAlsoIfTheConnectionIsLostWhileMoreIsLookedFor() {
    List<Long> ids = rows(4);
    refuse(ids.get(0), BY_ROW);
    AtomicInteger peeks = new AtomicInteger();
    pool.beforeEach(
        text -> {
          if (text.contains(PEEK) && peeks.incrementAndGet() == 2) {
            database.list(
                Boolean.class,
                "select pg_terminate_backend(pid) from pg_stat_activity"
                    + " where datname = current_database() and pid <> pg_backend_pid()");
          }
        });

    ClaimResult result = store.claim(claimOf(2));
    connections.getHikariPoolMXBean().softEvictConnections(); // those that were ended while idle

    assertThat(peeks).hasValue(2);
    assertThat(ids(result)).containsExactly(ids.get(1));
    assertThat(result.full()).as("full, since more is due").isTrue();
  }

  private ScanBound place(long id) {
    return new ScanBound(
        database
            .one(OffsetDateTime.class, "select available_at from outbox where id = ?", id)
            .toInstant(),
        id);
  }

  private static ClaimRequest claimOf(int limit, Range range) {
    return new ClaimRequest(
        "orders", range, limit, 1 << 20, Requests.LEASE, "me", Idle.UNCHANGED, null);
  }

  @Test
  void aClaimEndsAtTheHundredthRowThatIsRefused() {
    List<Long> ids = rows(102);
    database.update("insert into refused select id, ? from outbox", BY_ROW);

    ClaimResult result = store.claim(claimOf(200));

    assertThat(result.refused()).containsExactlyInAnyOrderElementsOf(ids.subList(0, 100));
    assertThat(result.refusedUpTo().id()).isEqualTo(ids.get(99));
    assertThat(result.full()).isTrue();
  }

  @Test
  void aClaimByHalvesThatTookAllSlotsSaysSo() {
    List<Long> ids = rows(6);
    refuse(ids.get(0), BY_ROW);
    store.slots().orElseThrow().open("orders", 3);

    ClaimResult result = store.claim(claimInSlots(3));

    assertThat(ids(result)).isEqualTo(ids.subList(1, 4));
    assertThat(result.outOfSlots()).isTrue();
    assertThat(result.refused()).containsExactly(ids.get(0));
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 6}) // leased by one half, and by two
  void aClaimByHalvesThatLeftSlotsFreeSaysNothingOfThem(int count) {
    List<Long> ids = rows(count);
    refuse(ids.get(0), BY_ROW);
    store.slots().orElseThrow().open("orders", 9);

    ClaimResult result = store.claim(claimInSlots(9));

    assertThat(ids(result)).isEqualTo(ids.subList(1, count));
    assertThat(result.outOfSlots()).isFalse();
  }

  private static ClaimRequest claimInSlots(int slots) {
    return new ClaimRequest(
        "orders", Range.ALL, 10, 1 << 20, Requests.LEASE, "me", Idle.UNCHANGED, null, slots);
  }

  /** Adds rows that are due, and returns the ids of all, in the order of their due instants. */
  private List<Long> rows(int count) {
    Rows.fill(database, "outbox", "orders", count);
    return database.list(Long.class, "select id from outbox order by available_at, id");
  }

  private void refuse(long id, String state) {
    database.update("insert into refused values (?, ?)", id, state);
  }

  private OutboxStoreException failure(ClaimRequest request) {
    OutboxStoreException e =
        catchThrowableOfType(OutboxStoreException.class, () -> store.claim(request));
    assertThat(e).isNotNull();
    return e;
  }

  private long leased() {
    return database.one(Long.class, "select count(*) from outbox where lease_token > 0");
  }

  private static ClaimRequest claimOf(int limit) {
    return Requests.claim("orders", limit, Idle.UNCHANGED);
  }

  private static List<Long> ids(ClaimResult result) {
    return result.rows().stream().map(row -> row.lease().id()).toList();
  }
}
