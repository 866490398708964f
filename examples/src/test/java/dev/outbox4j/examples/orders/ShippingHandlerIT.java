package dev.outbox4j.examples.orders;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.Outcome;
import dev.outbox4j.test.OutboxPostgres;
import dev.outbox4j.test.TestDelivery;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.UUID;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(OutboxPostgres.class)
class ShippingHandlerIT {
  private final DataSource dataSource;
  private final Parcels parcels = new Parcels();
  private final ShippingHandler handler;
  private final TestDelivery<OrderPlaced> delivery =
      TestDelivery.of(new OrderPlaced(UUID.randomUUID(), "a book", 1)).type(OrderPlaced.TYPE);

  ShippingHandlerIT(DataSource dataSource) {
    this.dataSource = dataSource;
    this.handler = new ShippingHandler("shipping-1", dataSource, parcels);
  }

  @BeforeAll
  static void migrate(DataSource dataSource) {
    OrderTables.migrate(dataSource);
  }

  @BeforeEach
  void empty() throws SQLException {
    OrderTables.empty(dataSource);
  }

  @Test
  void recordsTheAttemptThatShipped() throws Exception {
    assertThat(handler.handle(delivery.body(), delivery.attempt(2))).isEqualTo(Outcome.ack());

    assertThat(shipments()).isEqualTo("shipping-1 2 1");
  }

  @Test
  void shipsOnceWhatIsDeliveredTwice() throws Exception {
    assertThat(handler.handle(delivery.body(), delivery)).isEqualTo(Outcome.ack());
    assertThat(handler.handle(delivery.body(), delivery.deliveries(2))).isEqualTo(Outcome.ack());

    assertThat(shipments()).isEqualTo("shipping-1 1 2");
  }

  @Test
  void rejectsWhatNoCarrierTakes() throws Exception {
    parcels.taken = false;

    assertThat(handler.handle(delivery.body(), delivery))
        .isEqualTo(Outcome.reject("no carrier takes this item"));
    assertThat(shipments()).isNull();
  }

  @Test
  void failsWhileTheCarrierIsAway() throws Exception {
    parcels.away = true;

    assertThatThrownBy(() -> handler.handle(delivery.body(), delivery))
        .isInstanceOf(CarrierUnavailable.class);
    assertThat(shipments()).isNull();
  }

  private String shipments() throws SQLException {
    try (Connection connection = dataSource.getConnection();
        Statement statement = connection.createStatement();
        ResultSet row =
            statement.executeQuery(
                "select string_agg(shipped_by || ' ' || attempt || ' ' || deliveries, ',') from shipments")) {
      row.next();
      return row.getString(1);
    }
  }

  private static final class Parcels implements Carrier {
    private boolean taken = true;
    private boolean away;

    @Override
    public boolean takes(String item) {
      return taken;
    }

    @Override
    public void book(OrderPlaced order) throws CarrierUnavailable {
      if (away) {
        throw new CarrierUnavailable("away");
      }
    }
  }
}
