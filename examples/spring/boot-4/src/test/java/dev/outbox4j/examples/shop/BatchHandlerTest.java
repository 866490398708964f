package dev.outbox4j.examples.shop;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.BatchMessage;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.spring.OutboxHandler;
import dev.outbox4j.spring.OutboxTemplate;
import dev.outbox4j.test.spring.OutboxTest;
import dev.outbox4j.test.spring.TestOutbox;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.context.annotation.Import;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionTemplate;

@OutboxTest
class BatchHandlerTest {
  @Autowired TestOutbox outbox;
  @Autowired OutboxTemplate template;
  @Autowired TransactionTemplate transaction;
  @Autowired PurchaseOrders orders;
  @Autowired JdbcTemplate jdbc;

  @TestConfiguration
  @Import(Imports.class)
  static class Beans {}

  @Service
  static class Imports {
    private final PurchaseOrders orders;

    Imports(PurchaseOrders orders) {
      this.orders = orders;
    }

    // tag::batch
    @Transactional
    @OutboxHandler(queue = "imports", type = "order.imported", batch = 100, linger = "20ms")
    public void save(List<BatchMessage<OrderPlaced>> imported) {
      List<PurchaseOrder> all = new ArrayList<>();
      for (BatchMessage<OrderPlaced> each : imported) {
        all.add(new PurchaseOrder(each.body().id(), each.body().cents()));
      }
      orders.saveAll(all);
    }
    // end::batch
  }

  @BeforeEach
  void empty() {
    jdbc.update("delete from purchase_order");
  }

  private void publish(int from, int to, long cents) {
    List<OutboxMessage> messages = new ArrayList<>();
    for (int i = from; i < to; i++) {
      messages.add(
          OutboxMessage.to("imports")
              .type("order.imported")
              .body(new OrderPlaced("o-" + i, cents, Instant.now()))
              .build());
    }
    transaction.executeWithoutResult(status -> template.publish(messages));
  }

  @Test
  void savesThemAllInFewTransactions() {
    publish(0, 250, 7);
    outbox.drain("imports").requireNoFailures();
    assertThat(orders.count()).isEqualTo(250);
    assertThat(
            jdbc.queryForObject(
                "select count(distinct xmin::text) from purchase_order", Integer.class))
        .isLessThan(250);
  }

  @Test
  void anOrderThatTheDatabaseRefusesKeepsNoOtherFromBeingSaved() {
    publish(0, 20, 7);
    publish(20, 21, -1);
    publish(21, 40, 7);
    assertThat(outbox.drain("imports").retried()).isEqualTo(1);
    assertThat(orders.count()).isEqualTo(39);
  }
}
