package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.util.function.BiConsumer;
import javax.sql.DataSource;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.jta.JtaTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** Publishing in transactions of JTA, on connections that are enlisted and on others. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class JtaTransactionsIT extends StarterFixture {
  private static final OutboxMessage MESSAGE =
      OutboxMessage.to("orders").type("placed").body("o-1").build();

  JtaTransactionsIT(TestDatabase database) {
    super(database);
  }

  private void with(BiConsumer<XaTransactions, TransactionTemplate> test, String... properties) {
    service()
        .withPropertyValues(properties)
        .run(
            context -> {
              XaTransactions xa = new XaTransactions(url(), database.server().user());
              JtaTransactionManager manager = new JtaTransactionManager(xa);
              manager.afterPropertiesSet();
              CurrentTransaction.observe(manager);
              pool = context.getBean(DataSource.class);
              test.accept(xa, new TransactionTemplate(manager));
            });
  }

  private DataSource pool = database.plain();

  /** XA of pgjdbc leaves autocommit on, so that the publisher has to allow it. */
  private OutboxTemplate on(DataSource dataSource) {
    return new OutboxTemplate(
        PostgresOutbox.publisher(OutboxTable.named("outbox").inSchema(schema))
            .allowAutoCommit()
            .build(),
        dataSource);
  }

  @Test
  void commitsAndRollsBackWithTheTransaction() {
    with(
        (xa, jta) -> {
          OutboxTemplate outbox = on(xa);
          jta.executeWithoutResult(
              status -> {
                outbox.publish(MESSAGE);
                outbox.publish(MESSAGE);
                assertThat(rows("outbox")).as("as others see it").isZero();
              });
          assertThat(rows("outbox")).isEqualTo(2);
          jta.executeWithoutResult(
              status -> {
                outbox.publish(MESSAGE);
                status.setRollbackOnly();
              });
          assertThat(rows("outbox")).isEqualTo(2);
        });
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void refusesAPoolThatTakesNoPart(boolean autoCommit) {
    with(
        (xa, jta) -> {
          refusesNonMember(jta, pool);
          refusesNonMember(jta, database.plain());
          assertThat(rows("outbox")).isZero();
        },
        "spring.datasource.hikari.auto-commit=" + autoCommit);
  }

  private void refusesNonMember(TransactionTemplate jta, DataSource dataSource) {
    OutboxTemplate outbox = on(dataSource);
    assertThatThrownBy(() -> jta.executeWithoutResult(status -> outbox.publish(MESSAGE)))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("takes no part in the JTA transaction");
  }

  @Test
  void refusesTheConnectionOfATransactionAroundIt() {
    with(
        (xa, jta) -> {
          OutboxTemplate outbox = on(pool);
          JdbcTransactionManager own = new JdbcTransactionManager(pool);
          CurrentTransaction.observe(own);
          new TransactionTemplate(own)
              .executeWithoutResult(
                  outer ->
                      assertThatThrownBy(
                              () -> jta.executeWithoutResult(inner -> outbox.publish(MESSAGE)))
                          .isInstanceOf(OutboxException.class)
                          .hasMessageContaining("not one of the outbox's data source"));
          assertThat(rows("outbox")).isZero();
        });
  }
}
