package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.util.Collections;
import java.util.Map;
import java.util.function.BiConsumer;
import javax.sql.DataSource;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.jdbc.datasource.lookup.AbstractRoutingDataSource;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.TransactionTemplate;

/** Publishing where the service's data source is a pool, or something of Spring's around one. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class TemplateOnWrappedPoolsIT extends StarterFixture {
  private static final OutboxMessage MESSAGE =
      OutboxMessage.to("orders").type("placed").body("o-1").build();

  TemplateOnWrappedPoolsIT(TestDatabase database) {
    super(database);
  }

  enum Wrapping {
    NONE,
    LAZY,
    AWARE,
    AWARE_OF_LAZY,
    LAZY_OF_AWARE,
    DELEGATING,
    ROUTING;

    DataSource around(DataSource pool) {
      return switch (this) {
        case NONE -> pool;
        case LAZY -> new LazyConnectionDataSourceProxy(pool);
        case AWARE -> new TransactionAwareDataSourceProxy(pool);
        case AWARE_OF_LAZY -> new TransactionAwareDataSourceProxy(LAZY.around(pool));
        case LAZY_OF_AWARE -> new LazyConnectionDataSourceProxy(AWARE.around(pool));
        case DELEGATING -> new DelegatingDataSource(pool);
        case ROUTING -> routing(pool);
      };
    }

    private static DataSource routing(DataSource pool) {
      AbstractRoutingDataSource routing =
          new AbstractRoutingDataSource() {
            @Override
            protected Object determineCurrentLookupKey() {
              return "shop";
            }
          };
      routing.setTargetDataSources(Map.of("shop", pool));
      routing.afterPropertiesSet();
      return routing;
    }
  }

  /** Runs with autocommit on and off, in transactions that have a timeout. */
  private void with(
      Wrapping wrapping,
      int connections,
      BiConsumer<OutboxTemplate, PlatformTransactionManager> test) {
    for (boolean autoCommit : new boolean[] {true, false}) {
      service()
          .withBean(
              BeanPostProcessor.class,
              () ->
                  new BeanPostProcessor() {
                    @Override
                    public Object postProcessAfterInitialization(Object bean, String name) {
                      return bean instanceof HikariDataSource pool ? wrapping.around(pool) : bean;
                    }
                  })
          .withPropertyValues(
              "spring.datasource.hikari.auto-commit=" + autoCommit,
              "spring.datasource.hikari.maximum-pool-size=" + connections,
              "spring.datasource.hikari.connection-timeout=5000")
          .run(
              context ->
                  test.accept(
                      context.getBean(OutboxTemplate.class),
                      context.getBean(PlatformTransactionManager.class)));
    }
  }

  private static TransactionTemplate timed(PlatformTransactionManager manager, int propagation) {
    TransactionTemplate transaction = new TransactionTemplate(manager);
    transaction.setPropagationBehavior(propagation);
    transaction.setTimeout(60);
    return transaction;
  }

  @ParameterizedTest
  @EnumSource(Wrapping.class)
  void publishesInTheInnermostTransaction(Wrapping wrapping) {
    with(
        wrapping,
        2,
        (outbox, manager) -> {
          long before = rows();
          timed(manager, TransactionDefinition.PROPAGATION_REQUIRED)
              .executeWithoutResult(
                  outer -> {
                    outbox.publish(MESSAGE);
                    outbox.publish(Collections.nCopies(500, MESSAGE));
                    timed(manager, TransactionDefinition.PROPAGATION_NESTED)
                        .executeWithoutResult(
                            nested -> {
                              outbox.publish(MESSAGE);
                              nested.setRollbackOnly();
                            });
                    timed(manager, TransactionDefinition.PROPAGATION_REQUIRES_NEW)
                        .executeWithoutResult(inner -> outbox.publish(MESSAGE));
                    assertThat(rows()).as("committed by itself").isEqualTo(before + 1);
                    outbox.publish(MESSAGE);
                  });
          assertThat(rows()).isEqualTo(before + 503);
          TransactionTemplate readOnly = timed(manager, TransactionDefinition.PROPAGATION_REQUIRED);
          readOnly.setReadOnly(true);
          assertThatThrownBy(() -> readOnly.executeWithoutResult(status -> outbox.publish(MESSAGE)))
              .isInstanceOf(OutboxException.class)
              .hasMessageContaining("the transaction is read-only");
        });
  }

  @ParameterizedTest
  @EnumSource(Wrapping.class)
  void keepsNoConnection(Wrapping wrapping) {
    with(
        wrapping,
        1,
        (outbox, manager) -> {
          long before = rows();
          TransactionTemplate transaction =
              timed(manager, TransactionDefinition.PROPAGATION_REQUIRED);
          for (int i = 0; i < 10; i++) {
            transaction.executeWithoutResult(status -> outbox.publish(MESSAGE));
            transaction.executeWithoutResult(
                status -> {
                  outbox.publish(MESSAGE);
                  status.setRollbackOnly();
                });
            assertThatThrownBy(
                    () ->
                        transaction.executeWithoutResult(
                            status -> {
                              outbox.publish(MESSAGE);
                              throw new IllegalStateException("of the service");
                            }))
                .isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> outbox.publish(MESSAGE)).isInstanceOf(OutboxException.class);
          }
          assertThat(rows()).isEqualTo(before + 10);
        });
  }

  private long rows() {
    return rows("outbox");
  }
}
