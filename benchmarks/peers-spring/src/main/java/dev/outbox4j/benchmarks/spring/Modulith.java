package dev.outbox4j.benchmarks.spring;

import dev.outbox4j.benchmarks.spi.BatchLoad;
import dev.outbox4j.benchmarks.spi.Bench;
import dev.outbox4j.benchmarks.spi.Sink;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Base64;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.modulith.events.ApplicationModuleListener;
import org.springframework.modulith.events.IncompleteEventPublications;
import org.springframework.modulith.events.ResubmissionOptions;
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** Spring Modulith's event publication registry; a backlog is what is resubmitted after a crash. */
public final class Modulith extends SpringContestant {
  private @Nullable Thread resubmitter;
  private volatile boolean running;

  /** Made by the service loader. */
  public Modulith() {}

  /** The application. */
  @Configuration
  @EnableAutoConfiguration
  @EnableAsync
  public static class Application {
    /** Made by Spring. */
    public Application() {}

    /** {@return the listener} */
    @Bean
    public Listener listener() {
      return new Listener();
    }
  }

  /** Listens to messages. */
  public static class Listener {
    /** Made by Spring. */
    public Listener() {}

    /**
     * Handles a message in a transaction of its own.
     *
     * @param message the message
     */
    @ApplicationModuleListener(id = "messages")
    public void on(Message message) {
      Receiver.receive(message);
    }
  }

  @Override
  public String name() {
    return "spring-modulith";
  }

  @Override
  public String contract() {
    return "at least once after resubmission: no competing consumers, transaction around each listener, deleted one by one";
  }

  private ConfigurableApplicationContext run(Bench bench) {
    int threads = bench.number("threads");
    return run(
        bench,
        Application.class,
        Map.of(
            "namastack.outbox.enabled", "false",
            "spring.modulith.events.jdbc.schema-initialization.enabled", "true",
            "spring.modulith.events.completion-mode", "delete",
            "spring.task.execution.pool.core-size", threads,
            "spring.task.execution.pool.max-size", threads),
        threads + 4);
  }

  @Override
  public void prepare(Bench bench) throws SQLException {
    try (ConfigurableApplicationContext context = run(bench)) {
      new TransactionTemplate(context.getBean(PlatformTransactionManager.class))
          .executeWithoutResult(
              status ->
                  ((ApplicationEventPublisher) context)
                      .publishEvent(
                          new Message(Base64.getEncoder().encodeToString(BatchLoad.MARKER))));
    }
    BatchLoad.keepTemplate(bench, "event_publication");
  }

  @Override
  public void load(Bench bench, long first, long rows, int bytes) throws SQLException {
    BatchLoad.copies(
        bench,
        "event_publication",
        "jsonb_build_object('id', gen_random_uuid(), 'status', 'FAILED', 'completion_attempts', 0,"
            + " 'last_resubmission_date', null, 'publication_date', now() - interval '1 minute',"
            + " 'serialized_event', replace(t.serialized_event, "
            + BatchLoad.marker()
            + ", m.payload))",
        first,
        rows,
        bytes);
  }

  @Override
  public String countLeft() {
    return "select count(*) from event_publication";
  }

  @Override
  public void start(Bench bench, Sink sink) {
    Receiver.set(sink);
    ConfigurableApplicationContext context = run(bench);
    keep(context);
    IncompleteEventPublications incomplete = context.getBean(IncompleteEventPublications.class);
    ResubmissionOptions options =
        ResubmissionOptions.defaults()
            .withBatchSize(bench.number("batchSize"))
            .withMaxInFlight(bench.number("maxInFlight"))
            .withMinAge(Duration.ZERO);
    Duration pause = Duration.ofMillis(bench.number("pollMillis"));
    running = true;
    Thread thread =
        new Thread(
            () -> {
              while (running) {
                incomplete.resubmitIncompletePublications(options);
                LockSupport.parkNanos(pause.toNanos());
              }
            },
            "resubmitter");
    thread.start();
    resubmitter = thread;
  }

  @Override
  public void stop() throws InterruptedException {
    running = false;
    if (resubmitter != null) {
      resubmitter.join();
    }
    super.stop();
  }
}
