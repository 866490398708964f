package dev.outbox4j.benchmarks.spring;

import dev.outbox4j.benchmarks.spi.BatchLoad;
import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Sink;
import io.namastack.outbox.Outbox;
import io.namastack.outbox.handler.OutboxRecordMetadata;
import io.namastack.outbox.handler.OutboxTypedHandler;
import java.sql.SQLException;
import java.util.Base64;
import java.util.Map;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** namastack-outbox, every message with a key of its own. */
public final class Namastack extends SpringContestant {
  /** Made by the service loader. */
  public Namastack() {}

  /** The application. */
  @Configuration
  @EnableAutoConfiguration
  @EnableScheduling
  public static class Application {
    /** Made by Spring. */
    public Application() {}

    /** {@return the handler} */
    @Bean
    public OutboxTypedHandler<Message> messages() {
      return new Handler();
    }
  }

  private static final class Handler implements OutboxTypedHandler<Message> {
    @Override
    public void handle(Message message, OutboxRecordMetadata metadata) {
      Receiver.receive(message);
    }
  }

  @Override
  public String name() {
    return "namastack-outbox";
  }

  @Override
  public String contract() {
    return "at least once, in order per key: partitions owned by instances, no fence, deleted one by one";
  }

  private ConfigurableApplicationContext run(Bench bench, boolean polling) {
    int threads = bench.number("threads");
    return run(
        bench,
        Application.class,
        Map.of(
            "spring.modulith.events.jdbc.schema-initialization.enabled", "false",
            "namastack.outbox.multicaster.enabled", "false",
            "namastack.outbox.polling.trigger", "fixed",
            "namastack.outbox.polling.fixed.interval",
                polling ? bench.number("pollMillis") + "ms" : "1h",
            "namastack.outbox.polling.batch-size", bench.number("batchSize"),
            "namastack.outbox.processing.delete-completed-records", "true",
            "namastack.outbox.processing.executor-core-pool-size", threads,
            "namastack.outbox.processing.executor-max-pool-size", threads,
            "namastack.outbox.processing.shutdown-timeout", "2s"),
        threads + 4);
  }

  @Override
  public void prepare(Bench bench) throws SQLException {
    try (ConfigurableApplicationContext context = run(bench, false)) {
      new TransactionTemplate(context.getBean(PlatformTransactionManager.class))
          .executeWithoutResult(
              status ->
                  context
                      .getBean(Outbox.class)
                      .schedule(
                          new Message(Base64.getEncoder().encodeToString(BatchLoad.MARKER)),
                          "key"));
    }
    BatchLoad.keepTemplate(bench, "outbox_record");
    bench.execute("delete from outbox_partition", "delete from outbox_instance");
  }

  @Override
  public void load(Bench bench, long first, long rows, int bytes) throws SQLException {
    BatchLoad.copies(
        bench,
        "outbox_record",
        "jsonb_build_object('id', gen_random_uuid()::text, 'status', 'NEW', 'failure_count', 0,"
            + " 'record_key', m.sequence::text, 'partition_no', m.sequence % 256,"
            + " 'next_retry_at', now(), 'payload', replace(t.payload, "
            + BatchLoad.marker()
            + ", m.payload))",
        first,
        rows,
        bytes);
  }

  @Override
  public String countLeft() {
    return "select count(*) from outbox_record";
  }

  @Override
  public void start(Bench bench, Sink sink) {
    Receiver.set(sink);
    keep(run(bench, true));
  }
}
