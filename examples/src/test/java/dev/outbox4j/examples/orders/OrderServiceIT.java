package dev.outbox4j.examples.orders;

import static dev.outbox4j.test.OutboxAssertions.assertThatOutbox;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.test.OutboxAssert;
import dev.outbox4j.test.OutboxPostgres;
import java.sql.SQLException;
import java.time.Duration;
import java.util.UUID;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(OutboxPostgres.class)
class OrderServiceIT {
  private static final Order ORDER =
      new Order(UUID.randomUUID(), "ann", "a book", 2, Duration.ofHours(1));

  private final DataSource dataSource;
  private final OutboxTable table;

  OrderServiceIT(DataSource dataSource, OutboxTable table) {
    this.dataSource = dataSource;
    this.table = table;
  }

  @BeforeAll
  static void migrate(DataSource dataSource) {
    OrderTables.migrate(dataSource);
  }

  @BeforeEach
  void empty() throws SQLException {
    OrderTables.empty(dataSource);
  }

  private OrderService service(CreditCheck creditCheck) {
    return new OrderService(
        dataSource,
        PostgresOutbox.publisher(table).codec(Jackson2Codec.standard()).build(),
        creditCheck);
  }

  private OutboxAssert outbox() {
    return assertThatOutbox(dataSource, table).codec(Jackson2Codec.standard());
  }

  @Test
  void publishesAnOrderThatIsPlacedForWhenItMayBeShipped() throws Exception {
    service(order -> {}).place(ORDER);

    outbox()
        .hasPublished(OrdersConfig.QUEUE, OrderPlaced.TYPE, OrderPlaced.of(ORDER))
        .isDrained(OrdersConfig.QUEUE); // it is due in an hour
    assertThat(outbox().published(OrdersConfig.QUEUE))
        .singleElement()
        .satisfies(row -> assertThat(row.correlationId()).contains(ORDER.id().toString()));
  }

  @Test
  void publishesNothingOfAnOrderThatIsRefusedAfterItWasPublished() {
    CreditCheck refusing =
        order -> {
          throw new CreditRefused();
        };

    assertThatThrownBy(() -> service(refusing).place(ORDER)).isInstanceOf(CreditRefused.class);

    outbox().hasPublishedNothing();
  }

  @Test
  void publishesARepeatedOrderOnce() throws Exception {
    service(order -> {}).place(ORDER);

    assertThatThrownBy(() -> service(order -> {}).place(ORDER)).isInstanceOf(OrderExists.class);

    outbox().hasPublishedExactly(OrdersConfig.QUEUE, 1);
  }
}
