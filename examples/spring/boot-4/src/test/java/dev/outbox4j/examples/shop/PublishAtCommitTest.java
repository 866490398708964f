package dev.outbox4j.examples.shop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.spring.OutboxTemplate;
import dev.outbox4j.test.spring.AutoConfigureOutboxTest;
import jakarta.persistence.EntityManager;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.hibernate.Session;
import org.hibernate.SessionEventListener;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.TestPropertySource;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** Publishing from what JPA and Hibernate call while they commit, and after they have. */
@SpringBootTest(webEnvironment = SpringBootTest.WebEnvironment.NONE)
@AutoConfigureOutboxTest
@DirtiesContext // closed while the server still runs
class PublishAtCommitTest {
  @Autowired PlatformTransactionManager transactions;
  @Autowired OutboxTemplate outbox;
  @Autowired EntityManager entities;
  @Autowired JdbcTemplate jdbc;

  @BeforeEach
  void empty() {
    inTransaction( // a pool may have autocommit off
        manager -> {
          jdbc.execute("create table if not exists parcel (id text primary key, place text not null)");
          jdbc.update("delete from parcel");
          jdbc.update("delete from outbox");
        });
  }

  private int messages() {
    return jdbc.queryForObject("select count(*)::int from outbox", Integer.class);
  }

  private void inTransaction(Consumer<EntityManager> action) {
    new TransactionTemplate(transactions).executeWithoutResult(status -> action.accept(entities));
  }

  @Test
  void anEntityListenerPublishesWhileTheCommitFlushes() {
    inTransaction(manager -> manager.persist(new Parcel("p-1", "here")));
    assertThat(messages()).isEqualTo(1);
    inTransaction(manager -> manager.find(Parcel.class, "p-1").moveTo("there"));
    assertThat(messages()).as("before and after the update").isEqualTo(3);
  }

  @Test
  void theMessageOfAnEntityListenerIsRolledBackWithTheFlushThatFails() {
    inTransaction(manager -> manager.persist(new Parcel("p-1", "here")));
    assertThatThrownBy(
            () -> inTransaction(manager -> manager.find(Parcel.class, "p-1").moveTo(null)))
        .hasMessageContaining("place");
    assertThat(messages()).as("of the insert").isEqualTo(1);
  }

  @Test
  void aListenerOfHibernateCannotPublishAfterTheCommit() {
    List<String> told = new ArrayList<>();
    inTransaction(
        manager -> {
          manager.unwrap(Session.class).addEventListeners(publishAfterCommit(told));
          manager.persist(new Parcel("p-1", "here"));
        });
    assertThat(told).singleElement().satisfies(text -> assertThat(text).contains("publish refused", "ended"));
    assertThat(messages()).as("of the entity listener").isEqualTo(1);
  }

  SessionEventListener publishAfterCommit(List<String> told) {
    return new SessionEventListener() {
      @Override
      public void transactionCompletion(boolean successful) {
        try {
          outbox.publish(OutboxMessage.to("nobody").type("late").body("x").build());
          told.add("published");
        } catch (OutboxException refused) {
          told.add(refused.getMessage());
        }
      }
    };
  }

  /** As many Hibernate services have it. */
  @Nested
  @TestPropertySource(
      properties = {
        "spring.datasource.hikari.auto-commit=false",
        "spring.jpa.properties.hibernate.connection.provider_disables_autocommit=true"
      })
  @DirtiesContext
  class InAPoolWithoutAutocommit {
    @Autowired OutboxTemplate ofThisPool;
    @Autowired PlatformTransactionManager transactionsOfThisPool;
    @Autowired EntityManager entitiesOfThisPool;
    @Autowired JdbcTemplate jdbcOfThisPool;

    @BeforeEach
    void take() {
      jdbc = jdbcOfThisPool;
      outbox = ofThisPool;
      transactions = transactionsOfThisPool;
      entities = entitiesOfThisPool;
      empty();
    }

    @Test
    void anEntityListenerPublishesWhileTheCommitFlushes() {
      PublishAtCommitTest.this.anEntityListenerPublishesWhileTheCommitFlushes();
    }

    @Test
    void aListenerOfHibernateCannotPublishAfterTheCommit() {
      PublishAtCommitTest.this.aListenerOfHibernateCannotPublishAfterTheCommit();
    }
  }
}
