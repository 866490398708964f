package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.BatchMessage;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Outcome;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.test.util.AopTestUtils;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionTemplate;

/** Methods that take several messages at once. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class BatchMethodsIT extends StarterFixture {

  BatchMethodsIT(TestDatabase database) {
    super(database);
  }

  @BeforeEach
  void table() {
    database.update("create schema " + schema);
    database.update("create table " + schema + ".sale (line text)");
  }

  static class Sales {
    final List<Integer> sizes = new CopyOnWriteArrayList<>();
    final JdbcTemplate jdbc;

    Sales(DataSource dataSource) {
      this.jdbc = new JdbcTemplate(dataSource);
    }

    /** All or nothing, as a batch should be written. */
    @Transactional
    @OutboxHandler(queue = "sales", type = "sold", batch = 50, linger = "${sales.linger:}")
    public void insert(List<BatchMessage<String>> lines) {
      sizes.add(lines.size());
      List<Object[]> rows = new ArrayList<>();
      for (BatchMessage<String> each : lines) {
        String text = each.body();
        if (text.equals("rejected")) {
          each.delivery().decide(Outcome.reject("no such product"));
        } else {
          rows.add(new Object[] {text});
        }
      }
      jdbc.batchUpdate("insert into sale values (?)", rows);
      if (rows.stream().anyMatch(row -> row[0].equals("poison"))) {
        throw new IllegalStateException("poison");
      }
    }
  }

  @Configuration(proxyBeanMethods = false)
  @EnableTransactionManagement(proxyTargetClass = true)
  static class Beans {
    @Bean
    Sales sales(DataSource dataSource) {
      return new Sales(dataSource);
    }
  }

  private ApplicationContextRunner sales() {
    return service()
        .withUserConfiguration(Beans.class)
        .withPropertyValues(
            "outbox4j.listen.enabled=false",
            "outbox4j.subscriber.workers=1",
            "outbox4j.subscriber.retry.attempts=2",
            "outbox4j.subscriber.retry.initial=20ms",
            "spring.datasource.hikari.schema=" + schema);
  }

  private static void publish(ApplicationContext context, List<String> lines) {
    publish(context, "sold", lines);
  }

  private static void publish(ApplicationContext context, String type, List<String> lines) {
    new TransactionTemplate(context.getBean(PlatformTransactionManager.class))
        .executeWithoutResult(
            status ->
                context
                    .getBean(OutboxTemplate.class)
                    .publish(
                        lines.stream()
                            .map(line -> OutboxMessage.to("sales").type(type).body(line).build())
                            .toList()));
  }

  private static List<String> lines(int count) {
    List<String> lines = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      lines.add("line " + i);
    }
    return lines;
  }

  private void awaitDrained() {
    await().atMost(Duration.ofSeconds(30)).until(() -> rows("outbox") == 0);
  }

  @Test
  void takesUpToSoManyAtOnce() {
    sales()
        .run(
            context -> {
              publish(context, lines(120));
              awaitDrained();
              assertThat(rows("sale")).isEqualTo(120);
              assertThat(sizes(context)).contains(50).allMatch(size -> size <= 50);
            });
  }

  @Test
  void waitsForMoreForAsLongAsItsLingerSays() {
    sales()
        .withPropertyValues("sales.linger=3s")
        .run(
            context -> {
              publish(context, List.of("one"));
              await().until(() -> leased() == 1);
              publish(context, List.of("two"));
              awaitDrained();
              assertThat(sizes(context)).containsExactly(2);
            });
  }

  @Test
  void aPoisonMessageAndARejectedOneAreDeadLetteredAndTheOthersWrittenOnce() {
    sales()
        .run(
            context -> {
              List<String> all = new ArrayList<>(lines(40));
              all.add(7, "poison");
              all.add(21, "rejected");
              publish(context, all);
              awaitDrained();
              assertThat(rows("sale")).isEqualTo(40);
            });
    assertThat(
            database.list(
                String.class,
                "select failure_reason::text from %s.outbox_dlq order by 1".formatted(schema)))
        .containsExactly("rejected", "retry_terminal");
  }

  static class Later {
    final CompletableFuture<Void> sent = new CompletableFuture<>();
    final List<List<String>> batches = new CopyOnWriteArrayList<>();

    @OutboxHandler(queue = "sales", type = "sold", batch = 50)
    CompletableFuture<Void> send(List<BatchMessage<String>> lines) {
      batches.add(lines.stream().map(BatchMessage::body).toList());
      return sent.thenRun(
          () -> {
            if (lines.stream().anyMatch(each -> each.body().equals("poison"))) {
              throw new IllegalStateException("poison");
            }
          });
    }

    @OutboxHandler(queue = "sales", type = "counted")
    void count(String line) {}
  }

  @Test
  void isDoneWhenWhatItReturnsCompletesAndAPoisonMessageIsFoundThen() {
    service()
        .withBean(Later.class)
        .withPropertyValues(
            "outbox4j.listen.enabled=false",
            "outbox4j.subscriber.workers=4", // each of the three may be taken by a worker of its
            // own
            "outbox4j.subscriber.poll-max=100ms",
            "outbox4j.subscriber.retry.attempts=1")
        .run(
            context -> {
              Later later = context.getBean(Later.class);
              publish(context, List.of("one", "poison", "two"));
              await().until(() -> !later.batches.isEmpty());
              // an ack of the batch that comes too early would be there no later than this one's
              publish(context, "counted", List.of("four"));
              await().until(() -> ofType("counted") == 0);
              assertThat(ofType("sold")).isEqualTo(3);
              later.sent.complete(null);
              awaitDrained();
              assertThat(later.batches).contains(List.of("poison"));
            });
    assertThat(
            database.list(
                String.class,
                "select convert_from(payload, 'UTF8') from %s.outbox_dlq".formatted(schema)))
        .containsExactly("poison");
  }

  private long ofType(String type) {
    return database.one(
        Long.class, "select count(*) from %s.outbox where type = '%s'".formatted(schema, type));
  }

  private long leased() {
    return database.one(
        Long.class, "select count(*) from %s.outbox where lease_until > now()".formatted(schema));
  }

  private static List<Integer> sizes(ApplicationContext context) {
    Sales target = AopTestUtils.getTargetObject(context.getBean(Sales.class)); // not its proxy
    return target.sizes;
  }
}
