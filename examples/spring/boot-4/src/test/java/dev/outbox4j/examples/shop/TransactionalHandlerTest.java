package dev.outbox4j.examples.shop;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.Delivery;
import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.examples.shop.PurchaseOrder.State;
import dev.outbox4j.spring.OutboxHandler;
import dev.outbox4j.spring.OutboxTemplate;
import dev.outbox4j.test.spring.OutboxTest;
import dev.outbox4j.test.spring.TestOutbox;
import jakarta.persistence.EntityManager;
import jakarta.persistence.LockModeType;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.annotation.Import;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.stereotype.Service;
import org.springframework.test.context.TestPropertySource;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.event.TransactionPhase;
import org.springframework.transaction.event.TransactionalEventListener;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;

/** Entities, statements and messages of a handler, in the transaction that acks its message. */
@OutboxTest
@TestPropertySource(properties = "outbox4j.queues.stock.retry.attempts=3")
class TransactionalHandlerTest {
  @Autowired TestOutbox outbox;
  @Autowired OutboxTemplate template;
  @Autowired PlatformTransactionManager transactions;
  @Autowired PurchaseOrders orders;
  @Autowired JdbcTemplate jdbc;
  @Autowired Handlers handlers;

  @TestConfiguration
  @Import({Shipping.class, Handlers.class})
  static class Beans {}

  @Service
  static class Shipping {
    private final PurchaseOrders orders;
    private final OutboxTemplate outbox;

    Shipping(PurchaseOrders orders, OutboxTemplate outbox) {
      this.orders = orders;
      this.outbox = outbox;
    }

    // tag::ship
    @OutboxHandler(queue = "orders", type = "order.paid", transactional = true)
    public void ship(OrderPlaced paid) {
      orders.findById(paid.id()).orElseThrow().ship();
      outbox.publish(
          OutboxMessage.to("parcels").type("parcel.due").body(paid).build());
    }
    // end::ship
  }

  /** Does what the test says. */
  @Service
  static class Handlers {
    record Saved(String id) {}

    final PurchaseOrders orders;
    final List<Integer> attempts = new ArrayList<>();
    Consumer<Delivery> work = delivery -> {};

    Handlers(PurchaseOrders orders) {
      this.orders = orders;
    }

    @OutboxHandler(queue = "stock", type = "t", transactional = true)
    public void handle(Delivery delivery) {
      attempts.add(delivery.attempt());
      work.accept(delivery);
    }

    @TransactionalEventListener(phase = TransactionPhase.BEFORE_COMMIT)
    public void saved(Saved event) {
      orders.save(new PurchaseOrder(event.id(), 1));
    }
  }

  @BeforeEach
  void empty() {
    jdbc.update("delete from purchase_order");
    handlers.attempts.clear();
  }

  private void publish(OutboxMessage.Builder message) {
    new TransactionTemplate(transactions)
        .executeWithoutResult(status -> template.publish(message.build()));
  }

  private TestOutbox handled(Consumer<Delivery> work) {
    handlers.work = work;
    publish(OutboxMessage.to("stock").type("t").body("x"));
    for (int i = 0; i < 4 && rows("stock") > 0; i++) {
      outbox.drain("stock");
      outbox.advance(Duration.ofHours(1)); // until a retry is due
    }
    assertThat(rows("stock")).isZero();
    return outbox;
  }

  private long rows(String queue) {
    return jdbc.queryForObject("select count(*) from outbox where queue = ?", Long.class, queue);
  }

  private List<String> saved() {
    return jdbc.queryForList("select id from purchase_order order by id", String.class);
  }

  private String lastException() {
    return jdbc.queryForObject("select last_exception from outbox_dlq", String.class);
  }

  @Test
  void commitsTheEntityAndTheNextMessageWithTheAck() {
    orders.save(new PurchaseOrder("o-1", 1250));
    publish(
        OutboxMessage.to("orders")
            .type("order.paid")
            .body(new OrderPlaced("o-1", 1250, Instant.now())));

    outbox.drain("orders").requireNoFailures();

    assertThat(orders.findById("o-1").orElseThrow().getState()).isEqualTo(State.SHIPPED);
    outbox.assertThatOutbox().hasPublished("parcels", "parcel.due");
  }

  /** The trigger does not let an order in once the message's row is gone. */
  @Test
  void writesWhatHibernateHoldsBackBeforeTheAck(@Autowired ApplicationEventPublisher events) {
    jdbc.execute(
        "create function row_is_there() returns trigger language plpgsql as $$ begin"
            + " if not exists (select from outbox where queue = 'stock') then"
            + " raise exception 'after the ack'; end if; return new; end $$");
    jdbc.execute(
        "create trigger row_is_there before insert on purchase_order for each row"
            + " execute function row_is_there()");
    try {
      handled(
          delivery -> {
            orders.save(new PurchaseOrder("held back", 1));
            events.publishEvent(new Handlers.Saved("by a listener before the commit"));
          });
    } finally {
      jdbc.execute("drop trigger row_is_there on purchase_order");
      jdbc.execute("drop function row_is_there");
    }
    assertThat(saved()).containsExactly("by a listener before the commit", "held back");
    assertThat(handlers.attempts).containsExactly(1);
  }

  @Test
  void anEntityThatIsRefusedAtItsFlushFailsTheAttemptAndNothingIsWritten() {
    handled(
            delivery -> {
              jdbc.update(
                  "insert into purchase_order (id, cents, state, version)"
                      + " values ('by JDBC', 1, 'PLACED', 0)");
              orders.save(new PurchaseOrder("o-1", -1));
            })
        .assertThatOutbox()
        .hasDeadLetter("stock", "t", FailureReason.RETRY_TERMINAL);
    assertThat(handlers.attempts).containsExactly(1, 2, 3);
    assertThat(lastException()).contains("purchase_order_cents_check");
    assertThat(saved()).isEmpty();
  }

  @Test
  void aConstraintThatFailsAtTheCommitFailsTheAttempt() {
    jdbc.execute("create table once (what text unique deferrable initially deferred)");
    try {
      handled(
          delivery -> {
            orders.save(new PurchaseOrder("o-1", 1));
            jdbc.update("insert into once values ('same'), ('same')");
          });
    } finally {
      jdbc.execute("drop table once");
    }
    assertThat(handlers.attempts).containsExactly(1, 2, 3);
    assertThat(lastException()).contains("23505");
    assertThat(saved()).isEmpty();
  }

  @Test
  void anEntityThatAnotherChangedMeanwhileIsReadAgainByTheNextAttempt() {
    orders.save(new PurchaseOrder("o-1", 1));
    TransactionTemplate other = new TransactionTemplate(transactions);
    other.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
    handled(
        delivery -> {
          PurchaseOrder order = orders.findById("o-1").orElseThrow();
          if (delivery.attempt() == 1) {
            other.executeWithoutResult(
                status ->
                    jdbc.update("update purchase_order set version = version + 1, cents = 7"));
          }
          order.ship();
        });
    assertThat(handlers.attempts).containsExactly(1, 2);
    PurchaseOrder shipped = orders.findById("o-1").orElseThrow();
    assertThat(shipped.getState()).isEqualTo(State.SHIPPED);
    assertThat(shipped.getCents()).isEqualTo(7);
  }

  @Test
  void aConnectionThatIsCutWhileTheHandlerRunsCostsNoAttempt(@Autowired EntityManager entities) {
    handled(
        delivery -> {
          orders.save(new PurchaseOrder("run " + handlers.attempts.size(), 1));
          if (handlers.attempts.size() == 1) {
            Object pid = entities.createNativeQuery("select pg_backend_pid()").getSingleResult();
            TransactionTemplate other = new TransactionTemplate(transactions);
            other.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
            other.executeWithoutResult(
                status ->
                    jdbc.queryForObject("select pg_terminate_backend(?)", Boolean.class, pid));
          }
        });
    assertThat(handlers.attempts).containsExactly(1, 1);
    assertThat(saved()).containsExactly("run 2");
  }

  @Test
  void aMethodThatJoinsAndFailsFailsTheAttemptAlsoIfTheFailureIsCaught() {
    handled(
        delivery -> {
          orders.save(new PurchaseOrder("o-1", 1));
          try {
            new TransactionTemplate(transactions)
                .executeWithoutResult(
                    status -> {
                      throw new IllegalStateException("inner");
                    });
          } catch (IllegalStateException caught) {
            orders.save(new PurchaseOrder("o-2", 1));
          }
        });
    assertThat(handlers.attempts).containsExactly(1, 2, 3);
    assertThat(lastException()).contains("rollback-only");
    assertThat(saved()).isEmpty();
  }

  @Test
  void aListenerBeforeTheCommitThatFailsFailsTheAttempt() {
    handled(
        delivery ->
            TransactionSynchronizationManager.registerSynchronization(
                new TransactionSynchronization() {
                  @Override
                  public void beforeCommit(boolean readOnly) {
                    throw new IllegalStateException("listener");
                  }
                }));
    assertThat(handlers.attempts).containsExactly(1, 2, 3);
    assertThat(lastException()).contains("listener");
  }

  /** Hibernate looks at the version when it commits, after the ack. */
  @Test
  void aVersionThatIsFoundChangedAtTheCommitFailsTheAttempt(@Autowired EntityManager entities) {
    orders.save(new PurchaseOrder("o-1", 1));
    TransactionTemplate other = new TransactionTemplate(transactions);
    other.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
    handled(
        delivery -> {
          entities.find(PurchaseOrder.class, "o-1", LockModeType.OPTIMISTIC);
          other.executeWithoutResult(
              status -> jdbc.update("update purchase_order set version = version + 1"));
        });
    assertThat(handlers.attempts).containsExactly(1, 2, 3);
  }

  @Test
  void aHandlerThatThrowsLeavesNoEntityAndNoMessage() {
    handled(
        delivery -> {
          orders.saveAndFlush(new PurchaseOrder("attempt " + delivery.attempt(), 1));
          template.publish(OutboxMessage.to("parcels").type("t").body("x").build());
          if (delivery.attempt() < 3) {
            throw new IllegalStateException("not yet");
          }
        });
    assertThat(saved()).containsExactly("attempt 3");
    assertThat(rows("parcels")).isEqualTo(1);
  }
}
