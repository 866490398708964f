package dev.outbox4j.examples.shop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.verify;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.spring.OutboxTemplate;
import org.junit.jupiter.api.Test;
import org.mockito.ArgumentCaptor;

class OrderServiceTest {
  @Test
  void publishesAnOrderThatIsPlaced() {
    PurchaseOrders orders = mock(PurchaseOrders.class);
    // tag::mock
    OutboxTemplate outbox = mock(OutboxTemplate.class);
    new OrderService(orders, outbox).place("o-1", 1250);

    ArgumentCaptor<OutboxMessage> message = ArgumentCaptor.forClass(OutboxMessage.class);
    verify(outbox).publish(message.capture());
    assertThat(message.getValue().queue()).isEqualTo("orders");
    assertThat(message.getValue().type()).contains("order.placed");
    // end::mock
    verify(orders).save(any(PurchaseOrder.class));
  }
}
