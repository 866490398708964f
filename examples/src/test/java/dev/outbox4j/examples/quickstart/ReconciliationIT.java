package dev.outbox4j.examples.quickstart;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import dev.outbox4j.examples.orders.OrdersConfig;
import dev.outbox4j.examples.orders.OrdersDatabase;
import dev.outbox4j.examples.run.Report;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.SQLException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** A reconciliation is worth no more than what it finds, so each kind of fault is planted. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class ReconciliationIT {
  private static final UUID PLAIN = new UUID(0, 1);
  private static final UUID ROLLED_BACK = new UUID(0, 2);
  private static final UUID REJECTED = new UUID(0, 3);
  private static final UUID FAILING = new UUID(0, 4);
  private static final UUID FLAKY = new UUID(0, 5);
  private static final UUID DELAYED = new UUID(0, 6);

  /** The heartbeat is registered at an even second within it, so that six instants are due. */
  private static final Period PERIOD =
      new Period(Instant.parse("2026-01-01T11:59:59Z"), Instant.parse("2026-01-01T12:00:12Z"));

  private static final String RUNS = "heartbeat: one run that succeeded every 2 s, by the clock";
  private static final String EFFECTS = "heartbeat: one effect every 2 s, by the clock";

  private final DataSource dataSource;
  private final TestDatabase database;

  ReconciliationIT(TestDatabase database) {
    this.database = database;
    this.dataSource = database.plain();
    OrdersConfig config =
        new OrdersConfig(
            "jdbc:postgresql://%s:%d/%s"
                .formatted(database.server().host(), database.server().port(), database.name()),
            database.server().user(),
            database.server().password(),
            "public",
            0);
    new OrdersDatabase(config).migrate(dataSource);
  }

  @BeforeEach
  void allIsAsItShouldBe() {
    database.update(
        "truncate orders, shipments, heartbeats, outbox, outbox_dlq, outbox_timer, outbox_timer_run");
    for (UUID id : List.of(PLAIN, REJECTED, FAILING, FLAKY, DELAYED)) {
      insertOrder(id);
    }
    ship(PLAIN, 1);
    ship(FLAKY, 3);
    ship(DELAYED, 1);
    deadLetter(REJECTED, "rejected", "no carrier takes this item");
    deadLetter(FAILING, "retry_terminal", "x: " + SimulatedWorld.CURSE + "\n\tat y");
    registerHeartbeat();
    for (int second = 2; second <= 12; second += 2) {
      beat(second);
    }
  }

  @Test
  void findsNothingWhereNothingIsWrong() throws SQLException {
    Report report = reconcile();

    assertThat(report.lines()).allMatch(Report.Line::holds);
    assertThat(report.holds()).isTrue();
    assertThat(report.notes()).containsExactly("tester shipped 3");
    assertThat(report.lines())
        .filteredOn(line -> line.what().equals(RUNS) || line.what().equals(EFFECTS))
        .extracting(Report.Line::checked)
        .containsExactly(6L, 6L);
  }

  @Test
  void aHeartbeatBeforeThePeriodOrAfterItIsNotCounted() throws SQLException {
    beat(-4);
    beat(14);

    assertThat(reconcile().holds()).isTrue();
  }

  @Test
  void findsThatTheHeartbeatNeverBegan() throws SQLException {
    database.update("truncate heartbeats, outbox_timer, outbox_timer_run");

    Report report = reconcile();

    assertThat(report.lines().stream().filter(line -> !line.holds()))
        .extracting(Report.Line::what, Report.Line::checked, Report.Line::wrong)
        .containsExactly(tuple(RUNS, 7L, 7L), tuple(EFFECTS, 7L, 7L));
  }

  @ParameterizedTest
  @MethodSource
  void findsWhatIsWrongWithTheHeartbeatAndNamesTheInstant(
      String plant, int second, List<String> wrong) throws SQLException {
    assertThat(database.update(plant.replace("$instant", instant(second)))).isEqualTo(1);

    Report report = reconcile();

    List<Report.Line> lines = report.lines().stream().filter(line -> !line.holds()).toList();
    assertThat(lines).extracting(Report.Line::what).containsExactlyElementsOf(wrong);
    assertThat(lines).allSatisfy(line -> assertThat(line.wrong()).isEqualTo(1));
    assertThat(lines)
        .allSatisfy(
            line ->
                assertThat(line.examples())
                    .containsExactly("2026-01-01 12:00:%02d UTC".formatted(second)));
  }

  static Stream<Arguments> findsWhatIsWrongWithTheHeartbeatAndNamesTheInstant() {
    String insertRun =
        """
        insert into outbox_timer_run (application, name, instant, cause, status, ended_at)
        values ('orders', 'heartbeat', $instant, 'catch_up', 'succeeded', now())
        """;
    String insertEffect = "insert into heartbeats (instant) values ($instant)";
    String deleteRun = "delete from outbox_timer_run where instant = $instant";
    String deleteEffect = "delete from heartbeats where instant = $instant";
    return Stream.of(
        beatPlanted(deleteRun, 2, RUNS), // the first that is due
        beatPlanted(deleteRun, 6, RUNS),
        beatPlanted(deleteRun, 12, RUNS), // the last
        beatPlanted(
            "update outbox_timer_run set status = 'failed' where instant = $instant", 6, RUNS),
        beatPlanted("update outbox_timer_run set name = 'x' where instant = $instant", 6, RUNS),
        beatPlanted(insertRun, 6, RUNS), // a second one
        beatPlanted(insertRun, 7, RUNS),
        beatPlanted(insertRun, 0, RUNS), // when it was registered, so not due
        beatPlanted(deleteEffect, 2, EFFECTS),
        beatPlanted(deleteEffect, 12, EFFECTS),
        beatPlanted(insertEffect, 6, EFFECTS), // a second one
        beatPlanted(insertEffect, 7, EFFECTS),
        beatPlanted(insertEffect, 0, EFFECTS));
  }

  private static Arguments beatPlanted(String sql, int second, String... wrong) {
    return Arguments.of(sql, second, List.of(wrong));
  }

  private static String instant(int second) {
    return "timestamptz '2026-01-01 12:00:00Z' + interval '%d seconds'".formatted(second);
  }

  @ParameterizedTest
  @MethodSource
  void findsWhatIsWrongAndNamesTheOrder(String plant, UUID order, List<String> wrong)
      throws SQLException {
    assertThat(database.update(plant.replace("$id", "'" + order + "'"))).isEqualTo(1);

    Report report = reconcile();

    assertThat(report.holds()).isFalse();
    List<Report.Line> lines = report.lines().stream().filter(line -> !line.holds()).toList();
    assertThat(lines).extracting(Report.Line::what).containsExactlyElementsOf(wrong);
    assertThat(lines).allSatisfy(line -> assertThat(line.wrong()).isEqualTo(1));
    assertThat(lines)
        .allSatisfy(line -> assertThat(line.examples()).containsExactly(order.toString()));
  }

  static Stream<Arguments> findsWhatIsWrongAndNamesTheOrder() {
    String insertDead =
        """
        insert into outbox_dlq (outbox, original_id, lease_token, queue, payload, headers,
                                deliveries_count, attempts_count, created_at, available_at,
                                failure_reason, last_exception)
        values ('public.outbox', 9, 1, 'orders', '', jsonb_build_object('correlation-id', $id),
                1, 0, now(), now(), 'rejected', 'no carrier takes this item')
        """;
    String insertMessage =
        """
        insert into outbox (queue, payload, headers)
        values ('orders', '', jsonb_build_object('correlation-id', $id))
        """;
    String insertShipment =
        "insert into shipments (order_id, shipped_by, attempt) values ($id, 'tester', 1)";
    String rejectedOnce = "rejected: one dead letter 'rejected', with the reason";
    String failingOnce = "always failing: one dead letter 'retry_terminal', with the exception";
    return Stream.of(
        planted("delete from orders where id = $id", PLAIN, "committed: its row is there"),
        planted(
            "delete from shipments where order_id = $id", PLAIN, "committed, not poison: shipped"),
        planted(insertDead, PLAIN, "committed, not poison: no dead letter"),
        planted(
            "insert into orders (id, customer, item, quantity, not_before) values ($id, 'c', 'i', 1, now())",
            ROLLED_BACK,
            "rolled back: no row"),
        planted(insertShipment, ROLLED_BACK, "rolled back: not shipped"),
        planted(insertDead, ROLLED_BACK, "rolled back: no message, no dead letter"),
        planted(
            insertMessage,
            ROLLED_BACK,
            "rolled back: no message, no dead letter",
            "outbox: no order left"),
        planted(insertMessage, PLAIN, "outbox: no order left"),
        planted(deleteDead(), REJECTED, rejectedOnce),
        planted(insertDead, REJECTED, rejectedOnce),
        planted(
            "update outbox_dlq set failure_reason = 'expired' where headers ->> 'correlation-id' = $id",
            REJECTED,
            rejectedOnce),
        planted(deleteDead(), FAILING, failingOnce),
        planted(
            "update outbox_dlq set last_exception = null where headers ->> 'correlation-id' = $id",
            FAILING,
            failingOnce),
        planted(insertShipment, FAILING, "poison: not shipped"),
        planted(
            "update shipments set attempt = 1 where order_id = $id",
            FLAKY,
            "failing twice: shipped at the third attempt"),
        planted(
            "update orders set not_before = clock_timestamp() + interval '1 minute' where id = $id",
            DELAYED,
            "delayed: shipped, and not early"));
  }

  private static String deleteDead() {
    return "delete from outbox_dlq where headers ->> 'correlation-id' = $id";
  }

  private static Arguments planted(String sql, UUID order, String... wrong) {
    return Arguments.of(sql, order, List.of(wrong));
  }

  private Report reconcile() throws SQLException {
    List<Ledger.Entry> entries = new ArrayList<>();
    entries.add(new Ledger.Entry(PLAIN, OrderKind.PLAIN, true));
    entries.add(new Ledger.Entry(ROLLED_BACK, OrderKind.ROLLED_BACK, false));
    entries.add(new Ledger.Entry(REJECTED, OrderKind.REJECTED, true));
    entries.add(new Ledger.Entry(FAILING, OrderKind.ALWAYS_FAILING, true));
    entries.add(new Ledger.Entry(FLAKY, OrderKind.FAILS_TWICE, true));
    entries.add(new Ledger.Entry(DELAYED, OrderKind.DELAYED, true));
    return new Reconciliation(dataSource).compare(entries, PERIOD);
  }

  private void insertOrder(UUID id) {
    database.update(
        "insert into orders (id, customer, item, quantity, not_before) values (?, 'c', 'i', 1, now())",
        id);
  }

  private void ship(UUID id, int attempt) {
    database.update(
        "insert into shipments (order_id, shipped_by, attempt) values (?, 'tester', ?)",
        id,
        attempt);
  }

  private void registerHeartbeat() {
    database.update(
        """
        insert into outbox_timer (application, name, schedule, registered_at, decided_up_to)
        values ('orders', 'heartbeat', 'every PT2S', %1$s, %1$s)
        """
            .formatted(instant(0)));
  }

  private void beat(int second) {
    database.update(
        """
        insert into outbox_timer_run (application, name, instant, cause, status, ended_at)
        values ('orders', 'heartbeat', %s, 'scheduled', 'succeeded', now())
        """
            .formatted(instant(second)));
    database.update("insert into heartbeats (instant) values (%s)".formatted(instant(second)));
  }

  private void deadLetter(UUID id, String reason, String exception) {
    database.update(
        """
        insert into outbox_dlq (outbox, original_id, lease_token, queue, payload, headers,
                                deliveries_count, attempts_count, created_at, available_at,
                                failure_reason, last_exception)
        values ('public.outbox', 1, 1, 'orders', '',
                jsonb_build_object('correlation-id', ?::text), 1, 1, now(), now(), ?, ?)
        """,
        id.toString(),
        reason,
        exception);
  }
}
