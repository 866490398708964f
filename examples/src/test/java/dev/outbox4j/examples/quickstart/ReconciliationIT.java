package dev.outbox4j.examples.quickstart;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.examples.orders.OrdersConfig;
import dev.outbox4j.examples.orders.OrdersDatabase;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** A reconciliation is worth no more than what it finds, so each kind of fault is planted. */
@ExtendWith(PostgresExtension.class)
class ReconciliationIT {
  private static final UUID PLAIN = new UUID(0, 1);
  private static final UUID ROLLED_BACK = new UUID(0, 2);
  private static final UUID REJECTED = new UUID(0, 3);
  private static final UUID FAILING = new UUID(0, 4);
  private static final UUID FLAKY = new UUID(0, 5);
  private static final UUID DELAYED = new UUID(0, 6);

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
    database.update("truncate orders, shipments, outbox, outbox_dlq");
    for (UUID id : List.of(PLAIN, REJECTED, FAILING, FLAKY, DELAYED)) {
      insertOrder(id);
    }
    ship(PLAIN, 1);
    ship(FLAKY, 3);
    ship(DELAYED, 1);
    deadLetter(REJECTED, "rejected", "no carrier takes this item");
    deadLetter(FAILING, "retry_terminal", "x: " + SimulatedWorld.CURSE + "\n\tat y");
  }

  @Test
  void findsNothingWhereNothingIsWrong() throws SQLException {
    Report report = reconcile();

    assertThat(report.lines()).allMatch(Report.Line::holds);
    assertThat(report.holds()).isTrue();
    assertThat(report.notes()).containsExactly("tester shipped 3");
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
            insertMessage, ROLLED_BACK, "rolled back: no message, no dead letter", "outbox: empty"),
        planted(insertMessage, PLAIN, "outbox: empty"),
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
    return new Reconciliation(dataSource).compare(entries);
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
