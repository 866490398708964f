package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.InitializingBean;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.DefaultTransactionStatus;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;

/** A message goes with a transaction of the outbox's data source, whoever else has one. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class TransactionManagersIT extends StarterFixture {
  private static final OutboxMessage MESSAGE =
      OutboxMessage.to("orders").type("placed").body("o-1").build();

  TransactionManagersIT(TestDatabase database) {
    super(database);
  }

  /** Lets something run inside the commit, as Hibernate's event listeners do. */
  private static final class Hooked extends JdbcTransactionManager {
    private static final long serialVersionUID = 1;
    private transient Runnable beforeCommit = () -> {};
    private transient Runnable afterCommit = () -> {};

    Hooked(DataSource dataSource) {
      super(dataSource);
    }

    @Override
    protected void doCommit(DefaultTransactionStatus status) {
      beforeCommit.run();
      super.doCommit(status);
      afterCommit.run();
    }
  }

  private record Service(OutboxTemplate outbox, DataSource dataSource, Hooked own, Hooked foreign) {
    static Service of(ApplicationContext context) {
      return new Service(
          context.getBean(OutboxTemplate.class),
          context.getBean(DataSource.class),
          context.getBean("own", Hooked.class),
          context.getBean("foreign", Hooked.class));
    }

    void inOwn(Runnable action) {
      in(own, action);
    }

    void inForeign(Runnable action) {
      in(foreign, action);
    }

    void publish() {
      outbox.publish(MESSAGE);
    }

    void write() {
      new JdbcTemplate(dataSource).execute("create temporary table written () on commit drop");
    }

    @Nullable String refusal() {
      try {
        publish();
        return null;
      } catch (OutboxException refused) {
        return refused.getMessage();
      }
    }
  }

  private static void in(PlatformTransactionManager transactions, Runnable action) {
    TransactionTemplate template = new TransactionTemplate(transactions);
    template.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
    template.executeWithoutResult(status -> action.run());
  }

  @Configuration(proxyBeanMethods = false)
  static class OwnManager {
    @Bean
    Hooked own(DataSource dataSource) {
      return new Hooked(dataSource);
    }
  }

  private ApplicationContextRunner twoManagers(boolean autoCommit) {
    return service()
        .withUserConfiguration(OwnManager.class)
        .withBean("foreign", Hooked.class, () -> new Hooked(database.plain()))
        .withPropertyValues("spring.datasource.hikari.auto-commit=" + autoCommit);
  }

  private void with(boolean autoCommit, Consumer<Service> test) {
    twoManagers(autoCommit).run(context -> test.accept(Service.of(context)));
  }

  @Test
  void refusesATransactionOfAnotherDataSource() {
    with(
        true,
        service -> {
          service.inForeign(
              () -> assertThat(service.refusal()).contains("not one of the outbox's data source"));
          assertThat(rows("outbox")).isZero();
        });
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void refusesAForeignTransactionInsideOneOfTheOutboxes(boolean autoCommit) {
    with(
        autoCommit,
        service -> {
          service.inOwn(
              () -> {
                service.inForeign(
                    () ->
                        assertThat(service.refusal())
                            .contains("not one of the outbox's data source"));
                service.publish();
              });
          assertThat(rows("outbox")).as("the outer transaction's own").isEqualTo(1);
        });
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void refusesAForeignTransactionThatBeginsAfterTheCommitOfOneOfTheOutboxes(boolean autoCommit) {
    with(
        autoCommit,
        service -> {
          List<@Nullable String> told = new ArrayList<>();
          service.inOwn(
              () ->
                  TransactionSynchronizationManager.registerSynchronization(
                      new TransactionSynchronization() {
                        @Override
                        public void afterCommit() {
                          service.inForeign(() -> told.add(service.refusal()));
                        }

                        @Override
                        public void afterCompletion(int status) {
                          service.inForeign(() -> told.add(service.refusal()));
                        }
                      }));
          assertThat(told)
              .hasSize(2)
              .allSatisfy(text -> assertThat(text).contains("not one of the outbox's data source"));
          assertThat(rows("outbox")).isZero();
        });
  }

  /** JdbcTemplate binds a connection for the time of the foreign transaction. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void refusesAConnectionThatIsBoundWithoutATransactionOfItsOwn(boolean autoCommit) {
    with(
        autoCommit,
        service -> {
          service.inForeign(
              () -> {
                new JdbcTemplate(service.dataSource()).queryForObject("select 1", Integer.class);
                assertThat(TransactionSynchronizationManager.hasResource(service.dataSource()))
                    .isTrue();
                assertThat(service.refusal()).contains("not one of the outbox's data source");
              });
          assertThat(rows("outbox")).isZero();
        });
  }

  @Test
  void publishesInATransactionOfTheOutboxesInsideAForeignOne() {
    with(
        true,
        service -> {
          service.inForeign(
              () -> {
                service.inOwn(service::publish);
                assertThat(service.refusal()).contains("not one of the outbox's data source");
              });
          assertThat(rows("outbox")).isEqualTo(1);
        });
  }

  @Test
  void publishesAgainInATransactionThatAForeignOneInterrupted() {
    with(
        true,
        service -> {
          service.inOwn(
              () -> {
                service.publish();
                assertThatThrownBy(
                        () ->
                            service.inForeign(
                                () -> {
                                  throw new IllegalStateException("rolls the inner one back");
                                }))
                    .isInstanceOf(IllegalStateException.class);
                service.publish();
              });
          assertThat(rows("outbox")).isEqualTo(2);
        });
  }

  @Test
  void refusesATransactionWhoseManagerIsNoBean() {
    with(
        true,
        service -> {
          in(
              new JdbcTransactionManager(service.dataSource()),
              () ->
                  assertThat(service.refusal())
                      .contains("it is not known who began the transaction")
                      .contains("as a bean"));
          assertThat(rows("outbox")).isZero();
        });
  }

  /** As the entity listeners of JPA may, when the commit flushes. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void publishesWhileTheCommitIsPreparedInATransactionThatHasWritten(boolean autoCommit) {
    with(
        autoCommit,
        service -> {
          service.own().beforeCommit = service::publish;
          service.inOwn(service::write);
          assertThat(rows("outbox")).isEqualTo(1);
        });
  }

  /** With autocommit off the pool would roll it back later, and nobody would know. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void refusesToPublishOnceTheCommitIsThroughThoughSpringDoesNotKnow(boolean autoCommit) {
    with(
        autoCommit,
        service -> {
          List<@Nullable String> told = new ArrayList<>();
          service.own().afterCommit = () -> told.add(service.refusal());
          service.inOwn(service::write);
          assertThat(told)
              .singleElement()
              .satisfies(text -> assertThat(text).contains("is being committed"));
          assertThat(rows("outbox")).isZero();
        });
  }

  @Test
  void knowsTransactionsThatBeginWhileTheContextStarts() {
    twoManagers(true)
        .withBean("early", Early.class)
        .run(
            context -> {
              assertThat(context).hasNotFailed();
              assertThat(rows("outbox")).isEqualTo(1);
            });
  }

  /** Publishes when it is made. */
  static final class Early implements InitializingBean {
    private final OutboxTemplate outbox;
    private final Hooked own;

    Early(OutboxTemplate outbox, @Qualifier("own") Hooked own) {
      this.outbox = outbox;
      this.own = own;
    }

    @Override
    public void afterPropertiesSet() {
      in(own, () -> outbox.publish(MESSAGE));
    }
  }

  @Test
  void knowsTheManagersOfAParentContext() {
    try (GenericApplicationContext parent = new GenericApplicationContext()) {
      Hooked own = new Hooked(database.plain());
      parent.registerBean("own", Hooked.class, () -> own);
      parent.registerBean(DataSource.class, own::getDataSource);
      parent.refresh();
      service()
          .withParent(parent)
          .withPropertyValues("outbox4j.listen.enabled=false")
          .run(
              context -> {
                OutboxTemplate outbox = context.getBean(OutboxTemplate.class);
                in(own, () -> outbox.publish(MESSAGE));
                assertThat(rows("outbox")).isEqualTo(1);
              });
    }
  }
}
