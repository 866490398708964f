package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.util.function.BiConsumer;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.jta.JtaTransactionManager;
import org.springframework.transaction.support.AbstractPlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** Under which transaction manager transactional methods run. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class HandlerTransactionManagerIT extends StarterFixture {

  HandlerTransactionManagerIT(TestDatabase database) {
    super(database);
  }

  @BeforeEach
  void table() {
    database.update("create schema " + schema);
    database.update("create table " + schema + ".shipped (what text)");
  }

  static final class Shop {
    final JdbcTemplate jdbc;

    Shop(DataSource dataSource) {
      this.jdbc = new JdbcTemplate(dataSource);
    }

    @OutboxHandler(queue = "orders", type = "placed", transactional = true)
    void ship(String body) {
      jdbc.update("insert into shipped values (?)", body);
    }
  }

  private ApplicationContextRunner shop(
      BiConsumer<GenericApplicationContext, DataSource> managers) {
    return service()
        .withBean(Shop.class)
        .withPropertyValues(
            "outbox4j.listen.enabled=false", "spring.datasource.hikari.schema=" + schema)
        .withInitializer(
            context -> managers.accept((GenericApplicationContext) context, database.plain()));
  }

  /** A manager of the service's own pool; Boot makes none then. */
  private static void own(GenericApplicationContext context, String name, boolean primary) {
    context.registerBean(
        name,
        JdbcTransactionManager.class,
        () -> new JdbcTransactionManager(context.getBean(DataSource.class)),
        definition -> definition.setPrimary(primary));
  }

  private static void foreign(
      GenericApplicationContext context, DataSource elsewhere, boolean primary) {
    context.registerBean(
        "foreign",
        JdbcTransactionManager.class,
        () -> new JdbcTransactionManager(elsewhere),
        definition -> definition.setPrimary(primary));
  }

  private static void refuses(ApplicationContextRunner shop, String... texts) {
    shop.run(
        context ->
            assertThat(context)
                .getFailure()
                .isInstanceOf(OutboxException.class)
                .message()
                .contains("Shop.ship is transactional, and there")
                .contains(texts));
  }

  private void handles(ApplicationContextRunner shop, String manager) {
    shop.run(
        context -> {
          assertThat(context).hasNotFailed();
          publish(context, manager);
          await().untilAsserted(() -> assertThat(database.count(schema + ".shipped")).isEqualTo(1));
          await().untilAsserted(() -> assertThat(rows("outbox")).isZero());
        });
  }

  private static void publish(ApplicationContext context, String manager) {
    new TransactionTemplate(context.getBean(manager, PlatformTransactionManager.class))
        .executeWithoutResult(
            status ->
                context
                    .getBean(OutboxTemplate.class)
                    .publish(OutboxMessage.to("orders").type("placed").body("o-1").build()));
  }

  @Test
  void refusesToStartWithOneOfAnotherDataSource() {
    refuses(
        shop((context, elsewhere) -> foreign(context, elsewhere, false)),
        "there is no transaction manager for it ('foreign' has transactions of another data source)",
        "; declare a JdbcTransactionManager or a JpaTransactionManager");
  }

  @Test
  void refusesToStartWithJtas() {
    refuses(
        shop(
            (context, elsewhere) ->
                context.registerBean(
                    "jta",
                    JtaTransactionManager.class,
                    () ->
                        new JtaTransactionManager(
                            new XaTransactions(url(), database.server().user())))),
        "'jta' has transactions that are not of one connection");
  }

  @Test
  void refusesToStartWithOneThatTellsNobodyOfTheEnd() {
    refuses(
        shop(
            (context, elsewhere) ->
                context.registerBean(
                    "silent",
                    JdbcTransactionManager.class,
                    () -> {
                      JdbcTransactionManager manager =
                          new JdbcTransactionManager(context.getBean(DataSource.class));
                      manager.setTransactionSynchronization(
                          AbstractPlatformTransactionManager.SYNCHRONIZATION_NEVER);
                      return manager;
                    })),
        "'silent' has SYNCHRONIZATION_NEVER set");
  }

  @Test
  void refusesToStartIfItCannotTellWhichOfTwo() {
    refuses(
        shop(
            (context, elsewhere) -> {
              own(context, "one", false);
              own(context, "two", false);
            }),
        "there are several transaction managers of the outbox's data source, [one, two]; mark one");
  }

  @Test
  void takesThePrimaryOfTwo() {
    handles(
        shop(
            (context, elsewhere) -> {
              own(context, "one", false);
              own(context, "two", true);
            }),
        "one");
  }

  @Test
  void takesTheOneOfTheOutboxesDataSourceAlsoIfAnotherIsPrimary() {
    handles(
        shop(
            (context, elsewhere) -> {
              own(context, "own", false);
              foreign(context, elsewhere, true);
            }),
        "own");
  }

  @Test
  void refusesToStartWithAPoolThatHasNoConnectionForEachWorker() {
    shop((context, elsewhere) -> own(context, "own", false))
        .withPropertyValues("outbox4j.subscriber.workers=9")
        .run(
            context ->
                assertThat(context)
                    .getFailure()
                    .rootCause()
                    .hasMessageContaining("The pool has 10 connection(s)")
                    .hasMessageContaining("transactional handler, 9 in all"));
  }

  @Test
  void asksWhoBuildsASubscriberHimselfForOneOfItsDataSource() {
    assertThatThrownBy(
            () ->
                SpringTransactions.of(
                    new JdbcTransactionManager(database.plain()), database.plain()))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("JdbcTransactionManager, which has transactions of another");
  }
}
