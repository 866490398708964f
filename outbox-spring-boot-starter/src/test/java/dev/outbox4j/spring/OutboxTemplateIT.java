package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.ConnectionHolder;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.TransactionTimedOutException;
import org.springframework.transaction.UnexpectedRollbackException;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;

/** What becomes of a message in each kind of transaction that Spring knows, on JDBC. */
@ExtendWith(PostgresExtension.class)
class OutboxTemplateIT extends StarterFixture {
  private static final OutboxMessage MESSAGE =
      OutboxMessage.to("orders").type("placed").body("o-1").build();

  OutboxTemplateIT(TestDatabase database) {
    super(database);
  }

  private record Service(
      OutboxTemplate outbox, PlatformTransactionManager transactions, DataSource dataSource) {
    TransactionTemplate transaction(int propagation) {
      TransactionTemplate template = new TransactionTemplate(transactions);
      template.setPropagationBehavior(propagation);
      return template;
    }

    TransactionTemplate transaction() {
      return transaction(TransactionDefinition.PROPAGATION_REQUIRED);
    }

    void publish() {
      assertThat(outbox.publish(MESSAGE).rowId()).isPresent();
    }
  }

  private void with(Consumer<Service> test, String... properties) {
    service()
        .withPropertyValues(properties)
        .run(
            context ->
                test.accept(
                    new Service(
                        context.getBean(OutboxTemplate.class),
                        context.getBean(PlatformTransactionManager.class),
                        context.getBean(DataSource.class))));
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void commitsAndRollsBackWithTheTransactionWhateverThePoolsAutocommit(boolean autoCommit) {
    with(
        service -> {
          service.transaction().executeWithoutResult(status -> service.publish());
          assertThat(rows("outbox")).isEqualTo(1);
          service
              .transaction()
              .executeWithoutResult(
                  status -> {
                    service.publish();
                    status.setRollbackOnly();
                  });
          assertThat(rows("outbox")).isEqualTo(1);
        },
        "spring.datasource.hikari.auto-commit=" + autoCommit);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void refusesToPublishOutsideATransactionWhateverThePoolsAutocommit(boolean autoCommit) {
    with(
        service -> {
          assertThatThrownBy(service::publish)
              .isInstanceOf(OutboxException.class)
              .hasMessageContaining("there is no transaction")
              .hasMessageContaining("@Transactional");
          assertThatThrownBy(() -> service.outbox().publish(List.of(MESSAGE)))
              .hasMessageContaining("there is no transaction");
          assertThatThrownBy(() -> service.outbox().cancelTimer("orders", "t"))
              .hasMessageContaining("cancelTimer refused: there is no transaction");
          // a scope with synchronization, and without a transaction
          assertThatThrownBy(
                  () ->
                      service
                          .transaction(TransactionDefinition.PROPAGATION_SUPPORTS)
                          .executeWithoutResult(status -> service.publish()))
              .hasMessageContaining("there is no transaction");
          assertThat(rows("outbox")).isZero();
        },
        "spring.datasource.hikari.auto-commit=" + autoCommit);
  }

  @Test
  void refusesToPublishInAReadOnlyTransaction() {
    with(
        service -> {
          TransactionTemplate readOnly = service.transaction();
          readOnly.setReadOnly(true);
          assertThatThrownBy(() -> readOnly.executeWithoutResult(status -> service.publish()))
              .isInstanceOf(OutboxException.class)
              .hasMessageContaining("the transaction is read-only");
        });
  }

  @Test
  void aStatementEndsWithTheTimeoutOfItsTransaction() {
    with(
        service -> {
          TransactionTemplate blocking = service.transaction();
          TransactionTemplate brief =
              service.transaction(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
          brief.setTimeout(2);
          JdbcTemplate jdbc = new JdbcTemplate(service.dataSource());
          blocking.executeWithoutResult(
              blocker -> {
                jdbc.execute("lock table " + schema + ".outbox in share mode");
                assertThatThrownBy(
                        () ->
                            brief.executeWithoutResult(
                                status -> {
                                  // far above the timeout: else it would wait for ever
                                  jdbc.execute("set local lock_timeout = '20s'");
                                  service.publish();
                                }))
                    .isInstanceOf(OutboxException.class)
                    .hasMessageContaining("57014");
              });
          service.transaction().executeWithoutResult(status -> service.publish());
          assertThat(rows("outbox")).isEqualTo(1);
        });
  }

  @Test
  void refusesToPublishOnceTheTransactionHasNoTimeLeft() {
    with(
        service -> {
          TransactionTemplate brief = service.transaction();
          brief.setTimeout(1);
          assertThatThrownBy(
                  () ->
                      brief.executeWithoutResult(
                          status -> {
                            Instant deadline = deadline(service.dataSource());
                            await().until(() -> Instant.now().isAfter(deadline));
                            service.publish();
                          }))
              .isInstanceOf(TransactionTimedOutException.class);
          assertThat(rows("outbox")).isZero();
        });
  }

  private static Instant deadline(DataSource dataSource) {
    ConnectionHolder holder =
        (ConnectionHolder) TransactionSynchronizationManager.getResource(dataSource);
    return holder.getDeadline().toInstant();
  }

  @Test
  void anInnerTransactionOfItsOwnCommitsByItself() {
    with(
        service -> {
          service
              .transaction()
              .executeWithoutResult(
                  outer -> {
                    service
                        .transaction(TransactionDefinition.PROPAGATION_REQUIRES_NEW)
                        .executeWithoutResult(inner -> service.publish());
                    outer.setRollbackOnly();
                  });
          assertThat(rows("outbox")).isEqualTo(1);
        });
  }

  @Test
  void aNestedTransactionThatRollsBackTakesItsMessageAlongAndNoOther() {
    with(
        service -> {
          service
              .transaction()
              .executeWithoutResult(
                  outer -> {
                    service.publish();
                    service
                        .transaction(TransactionDefinition.PROPAGATION_NESTED)
                        .executeWithoutResult(
                            nested -> {
                              service.publish();
                              nested.setRollbackOnly();
                            });
                  });
          assertThat(rows("outbox")).isEqualTo(1);
        });
  }

  @Test
  void publishesNothingInATransactionThatAParticipantDoomed() {
    with(
        service -> {
          assertThatThrownBy(
                  () ->
                      service
                          .transaction()
                          .executeWithoutResult(
                              outer -> {
                                service
                                    .transaction()
                                    .executeWithoutResult(inner -> inner.setRollbackOnly());
                                service.publish();
                              }))
              .isInstanceOf(UnexpectedRollbackException.class);
          assertThat(rows("outbox")).isZero();
        });
  }

  /** With autocommit off the pool would roll back what is written then, and nobody would know. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void refusesToPublishInCallbacksAfterTheEndOfATransaction(boolean autoCommit) {
    with(
        service -> {
          List<String> told = new ArrayList<>();
          service
              .transaction()
              .executeWithoutResult(
                  status ->
                      TransactionSynchronizationManager.registerSynchronization(
                          new TransactionSynchronization() {
                            @Override
                            public void beforeCommit(boolean readOnly) {
                              service.publish();
                            }

                            @Override
                            public void afterCommit() {
                              told.add(refusal(service));
                            }

                            @Override
                            public void afterCompletion(int completion) {
                              told.add(refusal(service));
                            }
                          }));
          assertThat(told)
              .hasSize(2)
              .allSatisfy(text -> assertThat(text).contains("the transaction has ended"));
          assertThat(rows("outbox")).isEqualTo(1);
        },
        "spring.datasource.hikari.auto-commit=" + autoCommit);
  }

  @Test
  void publishesInATransactionOfItsOwnThatBeginsAfterTheEndOfAnother() {
    with(
        service -> {
          service
              .transaction()
              .executeWithoutResult(
                  status ->
                      TransactionSynchronizationManager.registerSynchronization(
                          new TransactionSynchronization() {
                            @Override
                            public void afterCommit() {
                              service
                                  .transaction(TransactionDefinition.PROPAGATION_REQUIRES_NEW)
                                  .executeWithoutResult(inner -> service.publish());
                            }
                          }));
          assertThat(rows("outbox")).isEqualTo(1);
        });
  }

  private static String refusal(Service service) {
    try {
      service.publish();
      return "published";
    } catch (OutboxException refused) {
      return String.valueOf(refused.getMessage());
    }
  }

  @Test
  void joinsTheTransactionThatTheServicesOwnStatementsRunIn() {
    with(
        service -> {
          JdbcTemplate jdbc = new JdbcTemplate(service.dataSource());
          service
              .transaction()
              .executeWithoutResult(
                  status -> {
                    service.publish();
                    assertThat(
                            jdbc.queryForObject(
                                "select count(*) from " + schema + ".outbox", Long.class))
                        .isEqualTo(1);
                    assertThat(rows("outbox")).as("as others see it").isZero();
                  });
        });
  }

  @Test
  void publishesThroughSpringsProxiesOfADataSource() {
    with(
        service -> {
          OutboxTemplate aware =
              template(new TransactionAwareDataSourceProxy(service.dataSource()));
          service.transaction().executeWithoutResult(status -> aware.publish(MESSAGE));
          LazyConnectionDataSourceProxy lazy =
              new LazyConnectionDataSourceProxy(service.dataSource());
          OutboxTemplate onLazy = template(lazy);
          JdbcTransactionManager onLazyConnections = new JdbcTransactionManager(lazy);
          CurrentTransaction.observe(onLazyConnections);
          new TransactionTemplate(onLazyConnections)
              .executeWithoutResult(status -> onLazy.publish(MESSAGE));
          assertThat(rows("outbox")).isEqualTo(2);
        });
  }

  private OutboxTemplate template(DataSource dataSource) {
    return new OutboxTemplate(
        PostgresOutbox.publisher(OutboxTable.named("outbox").inSchema(schema)).build(), dataSource);
  }
}
