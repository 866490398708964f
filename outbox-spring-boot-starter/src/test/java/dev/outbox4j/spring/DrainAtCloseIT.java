package dev.outbox4j.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.SubscriberState;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Instant;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationListener;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.event.ContextRefreshedEvent;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** What a handler of the last message still finds when the context closes. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class DrainAtCloseIT extends StarterFixture {

  DrainAtCloseIT(TestDatabase database) {
    super(database);
  }

  /** Holds its message until the test has begun to close the context. */
  static class Last {
    final CountDownLatch begun = new CountDownLatch(1);
    final CountDownLatch release = new CountDownLatch(1);

    @OutboxHandler(queue = "last", type = "sent")
    void handle(String body) throws Exception {
      begun.countDown();
      release.await();
      work();
    }

    void work() throws Exception {}
  }

  private static void publish(ApplicationContext context) {
    OutboxMessage message = OutboxMessage.to("last").type("sent").body("x").build();
    new TransactionTemplate(context.getBean(PlatformTransactionManager.class))
        .executeWithoutResult(status -> context.getBean(OutboxTemplate.class).publish(message));
  }

  /** Closes the context while the message is handled, and lets that end in the drain. */
  private static void closeWithin(ConfigurableApplicationContext context, Last last)
      throws InterruptedException {
    publish(context);
    assertThat(last.begun.await(30, TimeUnit.SECONDS)).as("handled within 30 s").isTrue();
    OutboxLifecycle lifecycle = context.getBean(OutboxLifecycle.class);
    Thread closer = new Thread(context::close, "test-closer");
    closer.start();
    await().until(() -> lifecycle.health().get(0).state() == SubscriberState.DRAINING);
    last.release.countDown();
    closer.join(30_000);
    assertThat(context.isActive()).isFalse();
    assertThat(lifecycle.isRunning()).isFalse();
  }

  /** Notes when it is closed what it would push then. */
  static final class Pushing extends SimpleMeterRegistry {
    private double pushed = -1;

    @Override
    public void close() {
      if (!isClosed()) {
        pushed = find("outbox.acked").counters().stream().mapToDouble(Counter::count).sum();
      }
      super.close();
    }
  }

  @Test
  void aMeterRegistryThatBootClosesHasTheOutcomesOfTheDrain() {
    Last last = new Last();
    Pushing registry = new Pushing();
    service()
        .withConfiguration(BootClasses.metrics())
        .withBean(Last.class, () -> last)
        .withBean(Pushing.class, () -> registry)
        .run(
            context -> {
              closeWithin(context.getSourceApplicationContext(), last);
              assertThat(registry.pushed).isEqualTo(1);
            });
  }

  /** Is of the same phase as the subscribers, and what their handlers use. */
  static class Client implements SmartLifecycle {
    volatile boolean running;

    @Override
    public void start() {
      running = true;
    }

    @Override
    public void stop() {
      running = false;
    }

    @Override
    public boolean isRunning() {
      return running;
    }
  }

  static final class Calling extends Last {
    final AtomicReference<Boolean> found = new AtomicReference<>();
    private final Client client;

    Calling(Client client) {
      this.client = client;
    }

    @Override
    void work() {
      found.set(client.running);
    }
  }

  @Test
  void whatHandlersUseStillRunsWhileTheLastMessageIsHandled() {
    service()
        .withBean(Client.class)
        .withBean(Calling.class)
        .run(
            context -> {
              Calling last = context.getBean(Calling.class);
              closeWithin(context.getSourceApplicationContext(), last);
              assertThat(last.found).hasValue(true);
            });
  }

  static final class Submitting extends Last {
    private final TaskScheduler scheduler;

    Submitting(TaskScheduler scheduler) {
      this.scheduler = scheduler;
    }

    @Override
    void work() throws Exception {
      scheduler.schedule(() -> {}, Instant.now()).get();
    }
  }

  @Test
  void aSchedulerOfTheContextTakesTasksOfTheLastMessage() {
    service()
        .withBean(ThreadPoolTaskScheduler.class)
        .withBean(Submitting.class)
        .run(
            context -> {
              Submitting last = context.getBean(Submitting.class);
              closeWithin(context.getSourceApplicationContext(), last);
              assertThat(rows("outbox")).as("rows whose handler was refused").isZero();
            });
  }

  @Test
  void runsAgainAfterAPauseOfTheContextAndIsDrainedByItsClose() {
    Last last = new Last();
    service()
        .withBean(Last.class, () -> last)
        .run(
            running -> {
              ConfigurableApplicationContext context = running.getSourceApplicationContext();
              OutboxLifecycle lifecycle = context.getBean(OutboxLifecycle.class);
              context.stop();
              assertThat(lifecycle.isRunning()).isFalse();
              assertThat(lifecycle.health().get(0).state()).isEqualTo(SubscriberState.STOPPED);
              context.start();
              assertThat(lifecycle.isRunning()).isTrue();
              closeWithin(context, last);
              assertThat(rows("outbox")).isZero();
            });
  }

  @Test
  void aContextThatFailsAfterTheStartLeavesNoSubscriberRunning() {
    AtomicReference<OutboxSubscriber> own = new AtomicReference<>();
    ApplicationListener<ContextRefreshedEvent> failing =
        event -> {
          own.set(event.getApplicationContext().getBean(OutboxSubscriber.class));
          throw new IllegalStateException("no service today");
        };
    service()
        .withUserConfiguration(OwnSubscriber.class)
        .withInitializer(context -> context.addApplicationListener(failing))
        .run(context -> assertThat(context).getFailure().hasMessageContaining("no service today"));
    assertThat(own.get().health().state()).isEqualTo(SubscriberState.STOPPED);
  }
}
