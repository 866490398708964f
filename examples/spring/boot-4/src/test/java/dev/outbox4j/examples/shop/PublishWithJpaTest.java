package dev.outbox4j.examples.shop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.OutboxPublisher;
import dev.outbox4j.spring.OutboxTemplate;
import dev.outbox4j.test.spring.AutoConfigureOutboxTest;
import jakarta.persistence.EntityManager;
import org.hibernate.Session;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.context.annotation.Import;
import org.springframework.dao.OptimisticLockingFailureException;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.test.context.TestPropertySource;
import org.springframework.transaction.NestedTransactionNotSupportedException;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionTemplate;

/** What becomes of a message and an entity in each kind of transaction that JPA users write. */
@SpringBootTest(webEnvironment = SpringBootTest.WebEnvironment.NONE)
@AutoConfigureOutboxTest
@Import(PublishWithJpaTest.Desk.class)
class PublishWithJpaTest {
  @Autowired PlatformTransactionManager transactions;
  @Autowired OutboxTemplate outbox;
  @Autowired OutboxPublisher publisher;
  @Autowired PurchaseOrders orders;
  @Autowired EntityManager entities;
  @Autowired JdbcTemplate jdbc;
  @Autowired Desk desk;

  /** A bean as services write it: its annotations are all that it says of transactions. */
  static class Desk {
    private final PurchaseOrders orders;
    private final OutboxTemplate outbox;

    Desk(PurchaseOrders orders, OutboxTemplate outbox) {
      this.orders = orders;
      this.outbox = outbox;
    }

    @Transactional
    public void place(long cents) {
      orders.save(new PurchaseOrder("o-1", cents));
      outbox.publish(OutboxMessage.to("nobody").type("t").body("x").build());
    }

    @Transactional(readOnly = true)
    public void placeWhileReading() {
      place(1);
    }
  }

  @BeforeEach
  void empty() {
    jdbc.update("delete from outbox");
    jdbc.update("delete from purchase_order");
  }

  TransactionTemplate transaction(int propagation) {
    TransactionTemplate template = new TransactionTemplate(transactions);
    template.setPropagationBehavior(propagation);
    return template;
  }

  TransactionTemplate transaction() {
    return transaction(TransactionDefinition.PROPAGATION_REQUIRED);
  }

  void publish() {
    outbox.publish(OutboxMessage.to("nobody").type("t").body("x").build());
  }

  private void assertMessagesAndOrders(int messages, int rows) {
    assertThat(jdbc.queryForObject("select count(*) from outbox", Integer.class))
        .isEqualTo(messages);
    assertThat(jdbc.queryForObject("select count(*) from purchase_order", Integer.class))
        .isEqualTo(rows);
  }

  @Test
  void commitsTheMessageWithTheEntity() {
    transaction()
        .executeWithoutResult(
            status -> {
              orders.save(new PurchaseOrder("o-1", 1));
              publish();
            });
    assertMessagesAndOrders(1, 1);
  }

  @Test
  void rollsTheMessageBackIfTheEntityIsRefusedAtItsFlush() {
    assertThatThrownBy(
            () ->
                transaction()
                    .executeWithoutResult(
                        status -> {
                          orders.save(new PurchaseOrder("o-1", -1)); // written at the commit
                          publish();
                        }))
        .hasMessageContaining("purchase_order_cents_check");
    assertMessagesAndOrders(0, 0);
  }

  @Test
  void publishesAfterAFlushInTheSameTransaction() {
    transaction()
        .executeWithoutResult(
            status -> {
              orders.saveAndFlush(new PurchaseOrder("o-1", 1));
              publish();
              entities.clear();
              assertThat(orders.findById("o-1")).isPresent();
            });
    assertMessagesAndOrders(1, 1);
  }

  @Test
  void publishesOnTheConnectionThatHibernateHolds() {
    OutboxMessage message = OutboxMessage.to("nobody").type("t").body("x").build();
    transaction()
        .executeWithoutResult(
            status -> {
              orders.save(new PurchaseOrder("o-1", 1));
              // tag::doWork
              Session session = entities.unwrap(Session.class);
              session.doWork(connection -> publisher.publish(connection, message));
              // end::doWork
            });
    assertMessagesAndOrders(1, 1);
  }

  @Test
  void rollsBackTheMessageOfAnEntityThatAnotherChangedMeanwhile() {
    orders.save(new PurchaseOrder("o-1", 1));
    assertThatThrownBy(
            () ->
                transaction()
                    .executeWithoutResult(
                        status -> {
                          orders.findById("o-1").orElseThrow().ship();
                          transaction(TransactionDefinition.PROPAGATION_REQUIRES_NEW)
                              .executeWithoutResult(
                                  other -> orders.findById("o-1").orElseThrow().ship());
                          publish();
                        }))
        .isInstanceOf(OptimisticLockingFailureException.class);
    assertMessagesAndOrders(0, 1);
  }

  @Test
  void refusesToPublishOutsideATransactionAndInOneThatIsReadOnly() {
    assertThatThrownBy(this::publish)
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("there is no transaction");
    TransactionTemplate readOnly = transaction();
    readOnly.setReadOnly(true);
    assertThatThrownBy(() -> readOnly.executeWithoutResult(status -> publish()))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("read-only");
    assertMessagesAndOrders(0, 0);
  }

  @Test
  void anAnnotatedMethodCommitsBothOrNeither() {
    assertThatThrownBy(() -> desk.place(-1)).hasMessageContaining("purchase_order_cents_check");
    assertMessagesAndOrders(0, 0);
    desk.place(1);
    assertMessagesAndOrders(1, 1);
  }

  @Test
  void anAnnotatedReadOnlyMethodThatPublishesFailsAndSaysWhy() {
    assertThatThrownBy(desk::placeWhileReading)
        .isInstanceOf(OutboxException.class)
        .hasMessage(
            "publish refused: the transaction is read-only; publish in one without"
                + " readOnly = true");
    assertMessagesAndOrders(0, 0);
  }

  @Test
  void refusesANestedTransactionAndPublishesNothingOfIt() {
    transaction()
        .executeWithoutResult(
            outer -> {
              orders.save(new PurchaseOrder("o-1", 1));
              assertThatThrownBy(
                      () ->
                          transaction(TransactionDefinition.PROPAGATION_NESTED)
                              .executeWithoutResult(inner -> publish()))
                  .isInstanceOf(NestedTransactionNotSupportedException.class);
            });
    assertMessagesAndOrders(0, 1);
  }

  @Test
  void publishesInTheOuterTransactionAfterANestedOneWasRefused() {
    transaction()
        .executeWithoutResult(
            outer -> {
              assertThatThrownBy(
                      () ->
                          transaction(TransactionDefinition.PROPAGATION_NESTED)
                              .executeWithoutResult(inner -> {}))
                  .isInstanceOf(NestedTransactionNotSupportedException.class);
              publish();
            });
    assertMessagesAndOrders(1, 0);
  }

  @Test
  void anInnerTransactionOfItsOwnCommitsByItself() {
    transaction()
        .executeWithoutResult(
            outer -> {
              orders.save(new PurchaseOrder("o-1", 1));
              transaction(TransactionDefinition.PROPAGATION_REQUIRES_NEW)
                  .executeWithoutResult(inner -> publish());
              outer.setRollbackOnly();
            });
    assertMessagesAndOrders(1, 0);
  }

  @Test
  void rollsBackWhatIsPublishedAfterTheTransactionWasDoomed() {
    transaction()
        .executeWithoutResult(
            status -> {
              status.setRollbackOnly();
              publish();
            });
    assertMessagesAndOrders(0, 0);
  }

  @Test
  void aStatementEndsWithTheTimeoutOfItsTransaction() {
    TransactionTemplate brief = transaction(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
    brief.setTimeout(2);
    transaction()
        .executeWithoutResult(
            blocker -> {
              jdbc.execute("lock table outbox in share mode");
              assertThatThrownBy(
                      () ->
                          brief.executeWithoutResult(
                              status -> {
                                // far above the timeout: else it would wait for ever
                                jdbc.execute("set local lock_timeout = '20s'");
                                orders.save(new PurchaseOrder("o-1", 1));
                                publish();
                              }))
                  .isInstanceOf(OutboxException.class)
                  .hasMessageContaining("57014");
            });
    assertMessagesAndOrders(0, 0);
  }

  /** As many Hibernate services have it. */
  @Nested
  @TestPropertySource(
      properties = {
        "spring.datasource.hikari.auto-commit=false",
        "spring.jpa.properties.hibernate.connection.provider_disables_autocommit=true"
      })
  class InAPoolWithoutAutocommit {
    @Autowired OutboxTemplate ofThisPool;
    @Autowired PlatformTransactionManager transactionsOfThisPool;
    @Autowired JdbcTemplate jdbcOfThisPool;

    @BeforeEach
    void take() {
      jdbc = jdbcOfThisPool;
    }

    @Test
    void commitsAndRefusesAsElsewhere() {
      OutboxMessage message = OutboxMessage.to("nobody").type("t").body("x").build();
      assertThatThrownBy(() -> ofThisPool.publish(message))
          .isInstanceOf(OutboxException.class)
          .hasMessageContaining("there is no transaction");
      new TransactionTemplate(transactionsOfThisPool)
          .executeWithoutResult(status -> ofThisPool.publish(message));
      new TransactionTemplate(transactionsOfThisPool)
          .executeWithoutResult(
              status -> {
                ofThisPool.publish(message);
                status.setRollbackOnly();
              });
      assertMessagesAndOrders(1, 0);
    }
  }
}
