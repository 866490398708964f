package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Outcome;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ApplicationContext;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.AbstractDataSource;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;

/** What a transactional method writes is there together with its message's end, or not at all. */
@ExtendWith({PostgresExtension.class, OutputCaptureExtension.class})
@Tag("once")
class TransactionalMethodsIT extends StarterFixture {
  private final Events events = new Events();
  private final AtomicInteger runs = new AtomicInteger();
  private final List<Integer> attempts = new CopyOnWriteArrayList<>();

  TransactionalMethodsIT(TestDatabase database) {
    super(database);
  }

  @BeforeEach
  void table() {
    database.update("create schema " + schema);
    database.update("create table " + schema + ".effect (what text)");
    database.update(
        "create table %s.once (what text unique deferrable initially deferred)".formatted(schema));
  }

  private static final class Events implements SubscriberEvents {
    final AtomicInteger acked = new AtomicInteger();
    final AtomicInteger retried = new AtomicInteger();
    final AtomicInteger timedOut = new AtomicInteger();
    final List<Phase> leaseLost = new CopyOnWriteArrayList<>();
    final List<Phase> outcomeUnknown = new CopyOnWriteArrayList<>();
    final List<String> storeFailed = new CopyOnWriteArrayList<>();

    @Override
    public void acked(String subscriber, Delivery delivery) {
      acked.incrementAndGet();
    }

    @Override
    public void retried(String subscriber, Delivery delivery, Duration delay) {
      retried.incrementAndGet();
    }

    @Override
    public void handlerTimedOut(String subscriber, Delivery delivery) {
      timedOut.incrementAndGet();
    }

    @Override
    public void leaseLost(String subscriber, Delivery delivery, Phase phase) {
      leaseLost.add(phase);
    }

    @Override
    public void outcomeUnknown(String subscriber, Delivery delivery, Phase phase) {
      outcomeUnknown.add(phase);
    }

    @Override
    public void storeFailed(String subscriber, String operation, Throwable cause) {
      storeFailed.add(operation);
    }
  }

  /** What a test has its handler do. */
  interface Work {
    @Nullable Outcome on(Shop shop, String text, Delivery delivery) throws Exception;
  }

  /** The bean with the handler. */
  static final class Shop {
    final Work work;
    final JdbcTemplate jdbc;
    final OutboxTemplate outbox;
    final PlatformTransactionManager manager;
    final String schema;

    Shop(
        Work work,
        DataSource dataSource,
        OutboxTemplate outbox,
        PlatformTransactionManager manager,
        String schema) {
      this.work = work;
      this.jdbc = new JdbcTemplate(dataSource);
      this.outbox = outbox;
      this.manager = manager;
      this.schema = schema;
    }

    @OutboxHandler(queue = "work", type = "t", transactional = true)
    Outcome handle(String text, Delivery delivery) throws Exception {
      Outcome outcome = work.on(this, text, delivery);
      return outcome == null ? Outcome.ack() : outcome;
    }

    void write(String what) {
      jdbc.update("insert into " + schema + ".effect values (?)", what);
    }

    String setting(String name) {
      return jdbc.queryForObject("select current_setting(?)", String.class, name);
    }

    /** As a method with {@code @Transactional} does. */
    void inner(int propagation, Runnable action) {
      TransactionTemplate template = new TransactionTemplate(manager);
      template.setPropagationBehavior(propagation);
      template.executeWithoutResult(status -> action.run());
    }
  }

  private ApplicationContextRunner shop(Work work) {
    return service()
        .withBean(SubscriberEvents.class, () -> events)
        .withBean(Shop.class, work, schema)
        .withPropertyValues(
            "outbox4j.listen.enabled=false",
            "outbox4j.subscriber.workers=2",
            "outbox4j.subscriber.retry.attempts=3",
            "outbox4j.subscriber.retry.initial=20ms");
  }

  /** The service on connections of the test's making. */
  private ApplicationContextRunner shop(Borrow borrow, Work work) {
    DataSource source =
        new AbstractDataSource() {
          @Override
          public Connection getConnection() throws SQLException {
            return borrow.get();
          }

          @Override
          public Connection getConnection(String user, String password) throws SQLException {
            return borrow.get();
          }
        };
    return shop(work).withBean(DataSource.class, () -> source);
  }

  private void publish(ApplicationContext context, String body) {
    context
        .getBean(Shop.class)
        .inner(
            TransactionDefinition.PROPAGATION_REQUIRED,
            () ->
                context
                    .getBean(OutboxTemplate.class)
                    .publish(OutboxMessage.to("work").type("t").body(body).build()));
  }

  private void awaitAcked(int messages) {
    await()
        .atMost(Duration.ofSeconds(30))
        .untilAsserted(() -> assertThat(events.acked).hasValue(messages));
  }

  private void handlesOne(ApplicationContextRunner shop) {
    shop.run(
        context -> {
          assertThat(context).hasNotFailed();
          publish(context, "one");
          awaitAcked(1);
        });
    assertThat(rows("outbox")).isZero();
  }

  /** Fails three times, and nothing of it is there. */
  private void fails(ApplicationContextRunner shop, String inItsLastException) {
    shop.run(
        context -> {
          publish(context, "one");
          await().atMost(Duration.ofSeconds(30)).until(() -> rows("outbox_dlq") == 1);
        });
    assertThat(deadLetter("attempts_count")).isEqualTo("3");
    assertThat(deadLetter("last_exception")).contains(inItsLastException);
    assertThat(effects()).isEmpty();
    assertThat(events.storeFailed).isEmpty();
  }

  private String deadLetter(String column) {
    return database.one(
        String.class, "select %s::text from %s.outbox_dlq".formatted(column, schema));
  }

  private List<String> effects() {
    return database.list(String.class, "select what from " + schema + ".effect");
  }

  @Test
  void whatItWritesCommitsWithTheAck() {
    handlesOne(
        shop(
            (shop, text, delivery) -> {
              shop.write(text);
              assertThat(effects()).as("seen by others before the commit").isEmpty();
              runs.incrementAndGet();
              return null;
            }));
    assertThat(effects()).containsExactly("one");
    assertThat(runs).hasValue(1);
  }

  @ParameterizedTest
  @ValueSource(classes = {IOException.class, IllegalStateException.class, AssertionError.class})
  void whateverItThrowsRollsBackAndIsRetriedByThePolicy(Class<? extends Throwable> thrown) {
    handlesOne(
        shop(
            (shop, text, delivery) -> {
              shop.write("attempt " + delivery.attempt());
              if (delivery.attempt() < 3) {
                Throwable failure = thrown.getDeclaredConstructor().newInstance();
                if (failure instanceof Error error) {
                  throw error;
                }
                throw (Exception) failure;
              }
              return null;
            }));
    assertThat(effects()).containsExactly("attempt 3");
    assertThat(events.retried).hasValue(2);
  }

  @Test
  void itsOutcomeSaysWhetherItCommits() {
    handlesOne(
        shop(
            (shop, text, delivery) -> {
              shop.write("run " + runs.incrementAndGet());
              return switch (runs.get()) {
                case 1 -> Outcome.retry();
                case 2 -> Outcome.reschedule(Duration.ofMillis(20));
                default -> Outcome.ack();
              };
            }));
    assertThat(effects()).containsExactlyInAnyOrder("run 2", "run 3");
  }

  @Test
  void whatARejectedMessageWroteIsRolledBack() {
    shop((shop, text, delivery) -> {
          shop.write(text);
          return Outcome.reject("bad");
        })
        .run(
            context -> {
              publish(context, "one");
              await().until(() -> rows("outbox_dlq") == 1);
            });
    assertThat(deadLetter("failure_reason")).isEqualTo("rejected");
    assertThat(effects()).isEmpty();
  }

  @Test
  void ifTheLeaseWasLostEverythingIsRolledBack() {
    handlesOne(
        shop(
            (shop, text, delivery) -> {
              shop.write("run " + runs.incrementAndGet());
              if (runs.get() == 1) { // as if another owner had claimed it
                database.update(
                    "update %s.outbox set lease_token = lease_token + 1, lease_until = now()"
                            .formatted(schema)
                        + " where id = ?",
                    delivery.id());
              }
              return null;
            }));
    assertThat(effects()).containsExactly("run 2");
    assertThat(events.leaseLost).containsExactly(SubscriberEvents.Phase.ACK);
  }

  static final class Next {
    final AtomicInteger arrived = new AtomicInteger();
    final OutboxTemplate outbox;
    final JdbcTemplate jdbc;
    final String schema;

    Next(OutboxTemplate outbox, DataSource dataSource, String schema) {
      this.outbox = outbox;
      this.jdbc = new JdbcTemplate(dataSource);
      this.schema = schema;
    }

    @OutboxHandler(queue = "second", transactional = true)
    void handle(Delivery delivery) {
      outbox.publish(OutboxMessage.to("third").type("t").body("x").build());
      if (delivery.attempt() == 1) {
        throw new IllegalStateException("after it had published");
      }
    }

    @OutboxHandler(queue = "third", type = "t", transactional = true)
    void last(String text) {
      jdbc.update("insert into " + schema + ".effect values ('third')");
      arrived.incrementAndGet();
    }
  }

  @Test
  void aChainOfQueuesLosesNothingAndDoublesNothing() {
    shop((shop, text, delivery) -> {
          shop.outbox.publish(OutboxMessage.to("second").body(text).build());
          if (delivery.attempt() == 1) {
            throw new IllegalStateException("after it had published");
          }
          return null;
        })
        .withBean(Next.class, schema)
        .withPropertyValues("spring.datasource.hikari.maximum-pool-size=12")
        .run(
            context -> {
              for (int i = 0; i < 10; i++) {
                publish(context, "m-" + i);
              }
              awaitAcked(30);
              assertThat(context.getBean(Next.class).arrived).hasValue(10);
            });
    assertThat(rows("outbox")).isZero();
    assertThat(effects()).hasSize(10);
  }

  @Test
  void aMethodThatJoinsAndFailsRollsAllBackAlsoIfTheFailureIsCaught() {
    fails(
        shop(
            (shop, text, delivery) -> {
              shop.write(text);
              assertThat(
                      catchThrowable(
                          () ->
                              shop.inner(
                                  TransactionDefinition.PROPAGATION_REQUIRED,
                                  () -> {
                                    throw new IllegalStateException("inner");
                                  })))
                  .isInstanceOf(IllegalStateException.class);
              return null;
            }),
        "rollback-only");
  }

  @Test
  void aMethodWithATransactionOfItsOwnCommitsByItself() {
    handlesOne(
        shop(
            (shop, text, delivery) -> {
              int attempt = delivery.attempt();
              shop.write("outer " + attempt);
              shop.inner(
                  TransactionDefinition.PROPAGATION_REQUIRES_NEW,
                  () -> shop.write("inner " + attempt));
              shop.inner(
                  TransactionDefinition.PROPAGATION_REQUIRED,
                  () -> shop.write("joined " + attempt));
              if (attempt == 1) {
                throw new IllegalStateException("fails");
              }
              return null;
            }));
    assertThat(effects()).containsExactlyInAnyOrder("inner 1", "outer 2", "inner 2", "joined 2");
  }

  private static void onEnd(TransactionSynchronization callbacks) {
    TransactionSynchronizationManager.registerSynchronization(callbacks);
  }

  @Test
  void callbacksBeforeTheCommitWriteInTheTransactionBeforeTheAck() {
    handlesOne(
        shop(
            (shop, text, delivery) -> {
              onEnd(
                  new TransactionSynchronization() {
                    @Override
                    public void beforeCommit(boolean readOnly) {
                      shop.write(
                          "own rows: "
                              + shop.jdbc.queryForObject(
                                  "select count(*) from " + shop.schema + ".outbox",
                                  Integer.class));
                      if (delivery.attempt() == 1) {
                        throw new IllegalStateException("fails");
                      }
                    }
                  });
              return null;
            }));
    assertThat(effects()).containsExactly("own rows: 1");
    assertThat(events.retried).hasValue(1);
    assertThat(events.storeFailed).isEmpty();
  }

  @Test
  void aCallbackThatFailsAfterTheCommitUndoesNothing(CapturedOutput output) {
    handlesOne(
        shop(
            (shop, text, delivery) -> {
              shop.write(text);
              onEnd(
                  new TransactionSynchronization() {
                    @Override
                    public void afterCommit() {
                      throw new IllegalStateException("mail is down");
                    }
                  });
              return null;
            }));
    assertThat(effects()).containsExactly("one");
    assertThat(events.retried).hasValue(0);
    assertThat(output.getAll()).contains("A callback after the commit", "mail is down");
  }

  /** Spring only logs that such a callback failed, and goes on to the commit. */
  @Test
  void aStatementThatFailsBetweenTheAckAndTheCommitIsAFailureOfTheMessage() {
    fails(
        shop(
            (shop, text, delivery) -> {
              shop.write(text);
              onEnd(
                  new TransactionSynchronization() {
                    @Override
                    public void beforeCompletion() {
                      shop.setting("no.such.thing");
                    }
                  });
              return null;
            }),
        "25P02");
  }

  @Test
  void aCallbackAfterTheCommitMayAskTheConnectionWhichThePoolGetsBack() {
    Set<Integer> connections = ConcurrentHashMap.newKeySet();
    shop((shop, text, delivery) -> {
          onEnd(
              new TransactionSynchronization() {
                @Override
                public void afterCommit() {
                  connections.add(
                      shop.jdbc.queryForObject("select pg_backend_pid()", Integer.class));
                }
              });
          return null;
        })
        .run(
            context -> {
              for (int i = 0; i < 30; i++) {
                publish(context, "m-" + i);
              }
              awaitAcked(30);
              int most = context.getBean(HikariDataSource.class).getMaximumPoolSize();
              assertThat(connections).hasSizeLessThanOrEqualTo(most);
            });
  }

  enum Manager {
    TRANSLATES(JdbcTransactionManager.class),
    DOES_NOT(DataSourceTransactionManager.class);

    final Class<? extends DataSourceTransactionManager> type;

    Manager(Class<? extends DataSourceTransactionManager> type) {
      this.type = type;
    }

    /** The two treat a commit that fails in different ways. */
    ApplicationContextRunner of(ApplicationContextRunner shop) {
      return shop.withPropertyValues(
              "spring.dao.exceptiontranslation.enabled=" + (this == TRANSLATES))
          .withInitializer(
              context ->
                  context
                      .getBeanFactory()
                      .addBeanPostProcessor(
                          new org.springframework.beans.factory.config.BeanPostProcessor() {
                            @Override
                            public Object postProcessAfterInitialization(Object bean, String name) {
                              if (bean instanceof PlatformTransactionManager) {
                                assertThat(bean).isExactlyInstanceOf(type);
                              }
                              return bean;
                            }
                          }));
    }
  }

  @ParameterizedTest
  @EnumSource
  void aConstraintThatFailsAtTheCommitIsAFailureOfTheMessage(Manager manager) {
    fails(
        manager.of(
            shop(
                (shop, text, delivery) -> {
                  shop.write(text);
                  shop.jdbc.update(
                      "insert into " + shop.schema + ".once values ('same'), ('same')");
                  return null;
                })),
        "23505");
  }

  @Test
  void aMethodThatGoesOnAfterAFailedStatementHasFailed() {
    fails(
        shop(
            (shop, text, delivery) -> {
              shop.write(text);
              assertThat(catchThrowable(() -> shop.setting("no.such.thing")))
                  .isInstanceOf(DataAccessException.class);
              return null;
            }),
        "25P02");
  }

  @Test
  void aMethodThatMakesItsTransactionReadOnlyHasFailed() {
    fails(
        shop(
            (shop, text, delivery) -> {
              shop.jdbc.execute("set transaction read only");
              return null;
            }),
        "25006");
  }

  @Test
  void aConnectionThatIsCutWhileItRunsCostsNoAttempt() {
    handlesOne(
        shop(
            (shop, text, delivery) -> {
              attempts.add(delivery.attempt());
              shop.write("run " + runs.incrementAndGet());
              if (runs.get() == 1) {
                cut(shop);
              }
              if (runs.get() == 2) {
                cut(shop);
                throw new IllegalStateException("of its own");
              }
              return null;
            }));
    assertThat(effects()).containsExactly("run 3");
    assertThat(attempts).containsExactly(1, 1, 1);
    assertThat(events.storeFailed).contains("transaction");
  }

  private void cut(Shop shop) {
    int pid = shop.jdbc.queryForObject("select pg_backend_pid()", Integer.class);
    database.one(Boolean.class, "select pg_terminate_backend(?)", pid);
    await()
        .until(
            () ->
                database.one(Long.class, "select count(*) from pg_stat_activity where pid = ?", pid)
                    == 0);
  }

  @ParameterizedTest
  @EnumSource
  void aCommitWhoseAnswerIsLostIsNotRepeatedIfItTookEffect(Manager manager) {
    AtomicInteger commits = new AtomicInteger();
    manager
        .of(
            shop(
                committing(
                    connection -> {
                      connection.commit();
                      if (commits.incrementAndGet() == 1) {
                        connection.abort(Runnable::run);
                        throw new SQLException("the answer was lost", "08006");
                      }
                    }),
                this::writeText))
        .run(
            context -> {
              publish(context, "one");
              await().untilAsserted(() -> assertThat(events.outcomeUnknown).hasSize(1));
              publish(context, "two");
              awaitAcked(1);
            });
    assertThat(effects()).containsExactly("one", "two");
    assertThat(runs).hasValue(2);
    assertThat(rows("outbox")).isZero();
  }

  @ParameterizedTest
  @EnumSource
  void aCommitThatNeverReachedTheServerIsRepeatedWithItsMethod(Manager manager) {
    AtomicInteger commits = new AtomicInteger();
    handlesOne(
        manager.of(
            shop(
                committing(
                    connection -> {
                      if (commits.incrementAndGet() == 1) {
                        connection.abort(Runnable::run);
                        throw new SQLException("the connection was lost", "08006");
                      }
                      connection.commit();
                    }),
                this::writeText)));
    assertThat(effects()).containsExactly("one");
    assertThat(attempts).containsExactly(1, 1);
  }

  /** Spring would set autocommit on after it, which commits. */
  @Test
  void ifTheRollbackItselfBreaksNothingOfTheFailedRunIsCommitted() {
    AtomicInteger rollbacks = new AtomicInteger();
    handlesOne(
        shop(
            () ->
                calling(
                    "rollback",
                    connection -> {
                      if (runs.get() == 1 && isWorker()) {
                        rollbacks.incrementAndGet();
                        throw new OutOfMemoryError("Java heap space");
                      }
                      connection.rollback();
                    }),
            (shop, text, delivery) -> {
              shop.write("run " + runs.incrementAndGet());
              if (runs.get() == 1) {
                throw new IllegalStateException("it failed");
              }
              return null;
            }));
    assertThat(rollbacks.get()).isPositive();
    assertThat(effects()).containsExactly("run 2");
    assertThat(events.retried).hasValue(1);
  }

  @Test
  void withoutAConnectionNoMethodIsCalledAndNoAttemptCounted() {
    AtomicInteger refused = new AtomicInteger();
    handlesOne(
        shop(
            () -> {
              boolean ofHandler = isWorker();
              if (ofHandler && refused.incrementAndGet() <= 2) {
                throw new SQLException("there is none", "08001");
              }
              return database.plain().getConnection();
            },
            this::writeText));
    assertThat(refused.get()).isGreaterThan(2);
    assertThat(attempts).containsExactly(1);
    assertThat(effects()).containsExactly("one");
  }

  @Test
  void aLazyConnectionThatCannotBeHadKeepsTheMethodFromBeingCalled() {
    AtomicInteger refusals = new AtomicInteger();
    DataSource source =
        new AbstractDataSource() {
          @Override
          public Connection getConnection() throws SQLException {
            if (isWorker() && refusals.getAndDecrement() > 0) {
              throw new SQLException("there is none", "08001");
            }
            return database.plain().getConnection();
          }

          @Override
          public Connection getConnection(String user, String password) throws SQLException {
            return getConnection();
          }
        };
    shop(this::writeText)
        .withBean(DataSource.class, () -> new LazyConnectionDataSourceProxy(source))
        .run(
            context -> {
              publish(context, "one");
              awaitAcked(1);
              refusals.set(2);
              publish(context, "two");
              awaitAcked(2);
            });
    assertThat(refusals.get()).isLessThanOrEqualTo(0);
    assertThat(attempts).containsExactly(1, 1);
  }

  @Test
  void aStatementThatRunsPastTheTimeoutIsBrokenOffAndRolledBack() {
    handlesOne(
        shop((shop, text, delivery) -> {
              shop.write("run " + runs.incrementAndGet());
              if (runs.get() == 1) {
                shop.jdbc.execute("select pg_sleep(60)");
              }
              return null;
            })
            .withPropertyValues("outbox4j.subscriber.handler-timeout=300ms"));
    assertThat(effects()).containsExactly("run 2");
    assertThat(events.timedOut).hasValue(1);
    assertThat(
            database.one(
                Long.class,
                "select count(*) from pg_stat_activity where query like '%pg_sleep(60)%'"
                    + " and state = 'active' and pid <> pg_backend_pid()"))
        .as("statements that go on without a client")
        .isZero();
  }

  @Test
  void aMethodThatRunsForManyLeasesKeepsItsRow() {
    handlesOne(
        shop((shop, text, delivery) -> {
              writeText(shop, text, delivery);
              shop.jdbc.execute("select pg_sleep(3)");
              return null;
            })
            .withPropertyValues("outbox4j.subscriber.lease=1s"));
    assertThat(runs).hasValue(1);
    assertThat(effects()).containsExactly("one");
  }

  @Test
  void aStopRollsBackWhatGoesOnPastItsTimeout() {
    CountDownLatch running = new CountDownLatch(1);
    shop((shop, text, delivery) -> {
          shop.write(text);
          running.countDown();
          new CountDownLatch(1).await();
          return null;
        })
        .withPropertyValues("outbox4j.subscriber.graceful-timeout=200ms")
        .run(
            context -> {
              publish(context, "one");
              running.await();
            });
    assertThat(effects()).isEmpty();
    assertThat(rows("outbox")).isEqualTo(1);
    assertThat(events.acked).hasValue(0);
  }

  @Test
  void inADatabaseOfAnotherIsolationItRunsAtReadCommitted() {
    PGSimpleDataSource plain = database.plain();
    plain.setOptions("-c default_transaction_isolation=serializable");
    List<String> seen = new CopyOnWriteArrayList<>();
    handlesOne(
        shop(
                plain::getConnection,
                (shop, text, delivery) -> {
                  seen.add(shop.setting("transaction_isolation"));
                  shop.write(text);
                  shop.jdbc.execute("select pg_sleep(2)"); // and its lease is renewed meanwhile
                  return null;
                })
            .withPropertyValues("outbox4j.subscriber.lease=1s"));
    assertThat(seen).containsExactly("read committed");
  }

  @Test
  void theAckFindsItsTableOnWhateverSearchPathAndNoSettingOfTheLibraryIsInForce() {
    List<String> seen = new CopyOnWriteArrayList<>();
    handlesOne(
        shop(
            (shop, text, delivery) -> {
              seen.add(
                  shop.setting("enable_seqscan")
                      + shop.setting("statement_timeout")
                      + shop.setting("lock_timeout"));
              shop.jdbc.execute("set local search_path to pg_catalog");
              return null;
            }));
    assertThat(seen).containsExactly("on00");
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aPoolGetsItsConnectionsBackAsTheyWere(boolean autoCommit) {
    shop(this::writeText)
        .withPropertyValues("spring.datasource.hikari.auto-commit=" + autoCommit)
        .run(
            context -> {
              for (int i = 0; i < 20; i++) {
                publish(context, "m-" + i);
              }
              awaitAcked(20);
              HikariDataSource pool = context.getBean(HikariDataSource.class);
              await().until(() -> pool.getHikariPoolMXBean().getActiveConnections() <= 1);
              try (Connection connection = pool.getConnection()) {
                assertThat(connection.getAutoCommit()).isEqualTo(autoCommit);
                assertThat(connection.getNetworkTimeout()).isZero();
              }
            });
    assertThat(effects()).hasSize(20);
  }

  private @Nullable Outcome writeText(Shop shop, String text, Delivery delivery) {
    attempts.add(delivery.attempt());
    runs.incrementAndGet();
    shop.write(text);
    return null;
  }

  private static boolean isWorker() {
    return Thread.currentThread().getName().contains("worker");
  }

  private interface Call {
    void on(Connection connection) throws SQLException;
  }

  private interface Borrow {
    Connection get() throws SQLException;
  }

  /** Connections whose commit is another one, where a handler has written. */
  private Borrow committing(Call commit) {
    return () ->
        calling(
            "commit",
            connection -> {
              if (isWorker()) {
                commit.on(connection);
              } else {
                connection.commit();
              }
            });
  }

  private Connection calling(String name, Call call) throws SQLException {
    Connection connection = database.plain().getConnection();
    return (Connection)
        Proxy.newProxyInstance(
            getClass().getClassLoader(),
            new Class<?>[] {Connection.class},
            (proxy, method, args) -> {
              if (method.getName().equals(name) && args == null) {
                call.on(connection);
                return null;
              }
              return invoke(connection, method, args);
            });
  }

  private static Object invoke(Object target, Method method, Object[] args) throws Throwable {
    try {
      return method.invoke(target, args);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }
}
