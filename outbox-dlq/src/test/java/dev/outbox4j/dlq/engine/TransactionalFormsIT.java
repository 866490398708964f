package dev.outbox4j.dlq.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.migrations.InboxMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.testing.CompiledSample;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Compiles what users may write as a handler in a transaction, and looks at what becomes of its
 * message and of what it wrote.
 */
@ExtendWith(PostgresExtension.class)
class TransactionalFormsIT {
  private static final AtomicInteger QUEUES = new AtomicInteger();
  private static final String SOURCE =
      """
      import dev.outbox4j.*;
      import dev.outbox4j.postgres.*;
      import dev.outbox4j.postgres.jooq.JooqTransactions;
      import java.sql.*;
      import java.util.concurrent.*;
      import java.util.function.BiConsumer;
      import javax.sql.DataSource;
      import org.jooq.*;
      import org.jooq.impl.DSL;

      public class Sample implements BiConsumer<OutboxSubscriber.Builder, DataSource> {
        static void write(String text, Delivery delivery, CONNECTION tx) throws Exception {
          STATEMENT
        }
        static Outcome ack(String text, Delivery delivery, CONNECTION tx) throws Exception {
          write(text, delivery, tx);
          return Outcome.ack();
        }
        static Outcome reject(String text, Delivery delivery, CONNECTION tx) throws Exception {
          write(text, delivery, tx);
          return Outcome.reject("no");
        }
        static CompletableFuture<Void> send(String text, Delivery delivery, CONNECTION tx)
            throws Exception {
          write(text, delivery, tx);
          return CompletableFuture.completedFuture(null);
        }

        @Override
        public void accept(OutboxSubscriber.Builder builder, DataSource pool) {
          PostgresOutbox outbox = PostgresOutbox.on(pool, OutboxTable.named("outbox"));
          JooqTransactions jooq =
              JooqTransactions.of(
                  outbox.transactions(), DSL.using(SQLDialect.POSTGRES).configuration());
          Inbox inbox = Inbox.in("inbox");
          builder.on("t", String.class, CALL);
        }
      }
      """;

  @TempDir Path classes;

  private final TestDatabase database;
  private EngineFixture engine;
  private String queue;
  private Effects effects;

  TransactionalFormsIT(TestDatabase database) {
    this.database = database;
    InboxMigrations.of("public", "inbox").migrate(database.plain());
  }

  @BeforeEach
  void setUp() {
    engine = new EngineFixture(database, 6);
  }

  @AfterEach
  void tearDown() {
    engine.close();
  }

  private static List<String> calls(String handler) {
    return List.of(
        "outbox.transactional(" + handler + ")",
        "jooq.transactional(" + handler + ")",
        "inbox.once(pool, " + handler + ")",
        "inbox.once(pool, (text, delivery) -> \"\" + delivery.id(), " + handler + ")");
  }

  private List<String> errors(String call) {
    boolean jooq = call.startsWith("jooq");
    return new CompiledSample(classes)
        .errors(
            SOURCE
                .replace("CALL", call)
                .replace("CONNECTION", jooq ? "Configuration" : "Connection")
                .replace(
                    "STATEMENT",
                    jooq
                        ? "tx.dsl().execute(\"insert into effect values (?, ?)\", delivery.queue(),"
                            + " text);"
                        : """
                        try (PreparedStatement insert =
                            tx.prepareStatement("insert into effect values (?, ?)")) {
                          insert.setString(1, delivery.queue());
                          insert.setString(2, text);
                          insert.executeUpdate();
                        }
                        """));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "(text, delivery, tx) -> write(text, delivery, tx)",
        "(text, delivery, tx) -> reject(text, delivery, tx)",
        "(text, delivery, tx) -> send(text, delivery, tx)"
      })
  void compilerRefusesWhatDoesNotSayWhetherTheResultMatters(String handler) {
    for (String call : calls(handler)) {
      String method = call.substring(call.indexOf('.') + 1, call.indexOf('('));
      assertThat(errors(call))
          .as(call)
          .anyMatch(error -> error.contains("reference to " + method + " is ambiguous"));
    }
  }

  /** One attempt: what failed is a dead letter, and so is what was rejected. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "(text, delivery, tx) -> { write(text, delivery, tx); }          | acked  | 1",
        "(text, delivery, tx) -> { send(text, delivery, tx); }           | acked  | 1",
        "(text, delivery, tx) -> { return ack(text, delivery, tx); }     | acked  | 1",
        "(text, delivery, tx) -> { return reject(text, delivery, tx); }  | rejected | 0",
        "(text, delivery, tx) -> { return send(text, delivery, tx); }    | failed | 0",
        "(String text, Delivery delivery, CONNECTION tx) -> write(text, delivery, tx)  | acked | 1",
        "(String text, Delivery delivery, CONNECTION tx) -> reject(text, delivery, tx) | rejected | 0",
        "(String text, Delivery delivery, CONNECTION tx) -> send(text, delivery, tx)   | failed | 0",
        "Sample::write  | acked    | 1",
        "Sample::ack    | acked    | 1",
        "Sample::reject | rejected | 0",
        "Sample::send   | failed   | 0",
      })
  void noFormThatCompilesDropsAResultUnlessBracesSaySo(String handler, String end, int written)
      throws Exception {
    for (String call : calls(handler)) {
      assertThat(errors(call)).as(call).isEmpty();
      assertThat(endOfAMessage()).as(call).isEqualTo(end);
      assertThat(effects.all()).as(call).hasSize(written);
    }
  }

  private String endOfAMessage() throws Exception {
    queue = "forms-" + QUEUES.incrementAndGet();
    effects = new Effects(database, queue);
    return new CompiledSample(classes)
        .use(
            sample -> {
              OutboxSubscriber.Builder builder = engine.subscriber(queue).retry(RetryPolicy.none());
              sample(sample).accept(builder, engine.pool);
              engine.publish(queue, "t", "one");
              try (OutboxSubscriber subscriber = engine.start(builder)) {
                await().until(() -> rows() == 0);
              }
              return end();
            });
  }

  private int rows() {
    return database.list(Long.class, "select id from outbox where queue = ?", queue).size();
  }

  private String end() {
    List<String> dead =
        database.list(String.class, "select failure_reason from outbox_dlq where queue = ?", queue);
    return dead.isEmpty() ? "acked" : dead.get(0).equals("rejected") ? "rejected" : "failed";
  }

  @SuppressWarnings("unchecked")
  private static BiConsumer<OutboxSubscriber.Builder, DataSource> sample(Object sample) {
    return (BiConsumer<OutboxSubscriber.Builder, DataSource>) sample;
  }
}
